"""The check of a saved answer: can its parts be what one run returned?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, with_config
from typing_extensions import TypedDict

from casewright.errors import PlanError
from casewright.graph.answer import Answer
from casewright.graph.evidence import Evidence
from casewright.graph.outcome import Outcome
from casewright.planner import parse_plan

_Milliseconds = Annotated[float, Field(ge=0)]
#: What no clock and no counter shows is refused.
_NOT_NEGATIVE = ("attempts", "started", "milliseconds")


@with_config(ConfigDict(strict=True, extra="allow", allow_inf_nan=False))
class _Planning(TypedDict):
    name: str
    fallback: str


@with_config(ConfigDict(strict=True, extra="allow", allow_inf_nan=False))
class _Usage(TypedDict):
    planning_ms: _Milliseconds
    execution_ms: _Milliseconds
    generation_ms: _Milliseconds


def checked_answer(data: Any) -> Answer:
    """Return the answer that a file's data is.

    Raises:
        ValueError: It is none that a run returned; says what is wrong.
    """
    try:
        _written().model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = first["loc"] if len(first["loc"]) > 1 else ("answer", *first["loc"])
        raise ValueError(f"{'.'.join(map(str, path))}: {first['msg']}") from None
    answer = Answer.from_json(data)
    for wrong in _contradictions(answer):
        raise ValueError(wrong)
    return answer


def _contradictions(answer: Answer) -> Iterator[str]:
    """Yield what cannot be true of one run, though each part has its form."""
    yield from _unlike_its_plan(answer)
    for number, step in enumerate(answer.steps, 1):
        if step["step"] != f"s{number}":
            yield f"its step {number} is called {step['step']!r:.40}, not 's{number}'"
        if step["status"] != "done" and step["rows"]:
            yield f"s{number} is {step['status']} and has results"
    ids = [item["id"] for item in answer.evidence]
    if twice := [one for one, times in Counter(ids).items() if times > 1]:
        yield f"two pieces of its evidence are called {twice[0]!r:.40}"
    known = {step["step"] for step in answer.steps}
    for item in answer.evidence:
        if item["step"] not in known:
            yield f"{item['id']!r:.40} is evidence of {item['step']!r:.40}, which is no step"
    if unknown := set(answer.citations) - set(ids):
        yield f"it cites {sorted(unknown)[0]!r:.40}, which is no evidence"


def _unlike_its_plan(answer: Answer) -> Iterator[str]:
    """Yield where other steps were run than the plan has."""
    run = tuple(step["tool"] for step in answer.steps)
    try:
        planned = parse_plan(answer.plan).tools
    except PlanError:
        # It is shown as the text that it is, a line a step.
        planned = run if len(answer.plan.split("\n")) == len(run) else ()
    if len(planned) != len(run):
        yield f"its plan does not have the {len(run)} steps that were run"
    for number, (tool, other) in enumerate(zip(planned, run, strict=False), 1):
        if tool != other:
            yield f"s{number} is planned with {tool!r:.60} and was run with {other!r:.60}"


@cache
def _written() -> type[BaseModel]:
    """Return the strict model of an answer as it is written."""
    return _form(
        Answer,
        evidence=Sequence[_form(Evidence)],  # type: ignore[misc]
        steps=Sequence[_form(Outcome)],  # type: ignore[misc]
        planner=_Planning,
        usage=_Usage,
    )


def _form(kind: type[Any], **parts: Any) -> type[BaseModel]:
    """Return a strict model of a dataclass: what is written is checked by what is read.

    A field that has a default is written too: a file without it is no whole one.

    Args:
        kind: The dataclass.
        parts: Types of its fields that it leaves open.
    """
    hints = get_type_hints(kind) | parts
    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    given: dict[str, Any] = {
        one.name: (hints[one.name], Field(ge=0) if one.name in _NOT_NEGATIVE else ...)
        for one in fields(kind)
    }
    return create_model(kind.__name__, __config__=config, **given)
