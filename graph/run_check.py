"""Validation of a saved answer: the types of its fields, and the consistency of its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import Field as DataclassField
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, NotRequired, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, with_config
from typing_extensions import TypedDict

from casewright.errors import PlanError
from casewright.graph.answer import Answer
from casewright.graph.evidence import Evidence
from casewright.graph.outcome import Outcome
from casewright.planner import parse_plan

_Milliseconds = Annotated[float, Field(ge=0)]
#: Fields whose values are at least 0.
_NOT_NEGATIVE = ("attempts", "started", "milliseconds")
_STRICT = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


# The checked keys of ``Answer.planner`` and ``Answer.usage``; other keys are allowed.
@with_config(_STRICT)
class _Planning(TypedDict):
    name: str
    fallback: str
    asks_back: NotRequired[bool]
    alternatives: NotRequired[list[str]]


@with_config(_STRICT)
class _Usage(TypedDict):
    planning_ms: _Milliseconds
    execution_ms: _Milliseconds
    generation_ms: _Milliseconds


def checked_answer(data: Any) -> Answer:
    """Return the answer in a file's data; raise ``ValueError`` if no run can have returned it."""
    try:
        _answer_model().model_validate(data)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        # A field of the answer itself is shown as ``answer.FIELD``.
        path = problem["loc"] if len(problem["loc"]) > 1 else ("answer", *problem["loc"])
        raise ValueError(f"{'.'.join(map(str, path))}: {problem['msg']}") from None
    answer = Answer.from_json(data)
    if contradiction := next(_contradictions(answer), ""):
        raise ValueError(contradiction)
    return answer


def _contradictions(answer: Answer) -> Iterator[str]:
    """Yield each contradiction as the end of a sentence such as "The file is damaged: …"."""
    yield from _plan_contradictions(answer)
    for number, step in enumerate(answer.steps, 1):
        if step["step"] != f"s{number}":
            yield f"its step {number} is called {step['step']!r:.40}, not 's{number}'"
        if step["status"] != "done" and step["rows"]:
            yield f"s{number} is {step['status']} and has results"
    ids = [item["id"] for item in answer.evidence]
    if duplicates := [id_ for id_, count in Counter(ids).items() if count > 1]:
        yield f"two pieces of its evidence have the id {duplicates[0]!r:.40}"
    step_names = {step["step"] for step in answer.steps}
    for item in answer.evidence:
        if item["step"] not in step_names:
            yield f"{item['id']!r:.40} is evidence of {item['step']!r:.40}, an unknown step"
    if unknown := set(answer.citations) - set(ids):
        yield f"it cites {sorted(unknown)[0]!r:.40}, an unknown id"


def _plan_contradictions(answer: Answer) -> Iterator[str]:
    run_tools = tuple(step["tool"] for step in answer.steps)
    try:
        plan_tools = parse_plan(answer.plan).tools
    except PlanError:
        # Of a plan that does not parse, only the number of lines is compared with the steps.
        plan_tools = run_tools if len(answer.plan.split("\n")) == len(run_tools) else ()
    if len(plan_tools) != len(run_tools):
        yield f"its plan does not have the {len(run_tools)} steps that were run"
    for number, (tool, run_tool) in enumerate(zip(plan_tools, run_tools, strict=False), 1):
        if tool != run_tool:
            yield f"s{number} is planned with {tool!r:.60} and was run with {run_tool!r:.60}"


def _field_default(dataclass_field: DataclassField[Any]) -> Any:
    # Boolean fields may be missing: they were added without a new version of the format.
    return dataclass_field.default if isinstance(dataclass_field.default, bool) else ...


@cache
def _answer_model() -> type[BaseModel]:
    return _strict_model(
        Answer,
        evidence=Sequence[_strict_model(Evidence)],  # type: ignore[misc]
        steps=Sequence[_strict_model(Outcome)],  # type: ignore[misc]
        planner=_Planning,
        usage=_Usage,
    )


def _strict_model(dataclass_type: type[Any], **types: Any) -> type[BaseModel]:
    """Return a strict model of a dataclass; ``types`` replaces the types of some fields."""
    hints = get_type_hints(dataclass_type) | types
    definitions: dict[str, Any] = {
        f.name: (hints[f.name], Field(ge=0) if f.name in _NOT_NEGATIVE else _field_default(f))
        for f in fields(dataclass_type)
    }
    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    return create_model(dataclass_type.__name__, __config__=config, **definitions)
