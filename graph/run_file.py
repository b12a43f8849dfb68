"""A run as a file: its answer with plan, steps and evidence, to be looked at later.

The file holds what ``Answer`` holds and nothing that the run was given beside it: neither context
nor scope. What tools were called with and what they found is in the steps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model, with_config
from typing_extensions import TypedDict

from casewright.errors import InputError, cleaned
from casewright.graph.answer import Answer
from casewright.graph.evidence import Evidence
from casewright.graph.outcome import Outcome
from casewright.stores.whole_file import write_whole

#: Of the file. Raised whenever older readers could not read a newer file.
FORMAT = 1
KIND = "casewright run"
# Half of a surrogate pair: JSON can hold it, UTF-8 cannot.
_SURROGATE = re.compile("[\ud800-\udfff]")


@with_config(ConfigDict(strict=True, extra="allow", allow_inf_nan=False))
class _Planning(TypedDict):
    name: str
    fallback: str


@with_config(ConfigDict(strict=True, extra="allow", allow_inf_nan=False))
class _Usage(TypedDict):
    planning_ms: float
    execution_ms: float
    generation_ms: float


def save_run(file: Path, answer: Answer) -> None:
    """Save a run; the file is written whole or not at all.

    Args:
        file: It is made, or replaced.
        answer: What the run returned.

    Raises:
        InputError: The file cannot be written, or the answer holds what JSON cannot.
    """
    whole = {"format": FORMAT, "kind": KIND, "answer": answer.to_json()}
    try:
        text = json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"The run cannot be saved in {file}: JSON cannot hold it ({error}). Let tools return "
            "JSON-plain values."
        ) from error
    try:
        write_whole(file, _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text) + "\n")
    except OSError as error:
        raise InputError(
            f"The run cannot be saved in {file}: {error.strerror}. Give a file that can be written."
        ) from error


def read_run(file: Path) -> Answer:
    """Read a run that ``save_run`` saved.

    Raises:
        InputError: The file cannot be read, is no saved run or a damaged one, or a newer Casewright
            wrote it.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{file} cannot be read: {error.strerror}. Give what casewright ask --save wrote."
        ) from error
    except UnicodeDecodeError as error:
        raise _no_run(file, error) from error
    return parse_run(text, str(file))


def parse_run(text: str, name: str) -> Answer:
    """Read a run from the text of a file that ``save_run`` saved.

    Args:
        text: The whole file.
        name: How errors call it.

    Raises:
        InputError: As ``read_run`` does.
    """
    try:
        whole = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise _no_run(name, error) from error
    if not isinstance(whole, dict) or whole.get("kind") != KIND:
        raise InputError(f"{name} is no saved run. Give what casewright ask --save wrote.")
    if whole.get("format") != FORMAT:
        raise InputError(
            f"{name} is a saved run of format {str(whole.get('format'))[:20]!r}; this Casewright "
            f"reads {FORMAT}. Open it with the Casewright that saved it, or ask again."
        )
    return _checked(name, whole.get("answer"))


def _checked(name: str, data: Any) -> Answer:
    try:
        for part, kind in _parts().items():
            kind.validate_python(data if part == "answer" else data[part])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in (part, *first["loc"]))
        raise _damaged(name, f"{where}: {first['msg']}") from None
    answer = Answer.from_json(data)
    if len(answer.plan.split("\n")) != len(answer.steps):
        raise _damaged(name, f"its plan does not have the {len(answer.steps)} steps that were run")
    if unknown := set(answer.citations) - {item["id"] for item in answer.evidence}:
        raise _damaged(name, f"it cites {sorted(unknown)[0]!r}, which is no evidence")
    return answer


@cache
def _parts() -> Mapping[str, TypeAdapter[Any]]:
    """Return what checks an answer, and of its parts those that it leaves open."""
    return {
        "answer": TypeAdapter(_form(Answer)),
        "evidence": TypeAdapter(Sequence[_form(Evidence)]),  # type: ignore[misc, arg-type]
        "steps": TypeAdapter(Sequence[_form(Outcome)]),  # type: ignore[misc, arg-type]
        "planner": TypeAdapter(_Planning),
        "usage": TypeAdapter(_Usage),
    }


def _form(kind: type[Any]) -> type[BaseModel]:
    """Return a strict model of a dataclass: what is written is checked by what is read."""
    hints = get_type_hints(kind)
    required = {f.name for f in fields(kind) if f.default is f.default_factory is MISSING}
    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    given: dict[str, Any] = {n: (hints[n], ... if n in required else None) for n in hints}
    return create_model(kind.__name__, __config__=config, **given)


def _no_run(name: object, error: Exception) -> InputError:
    return InputError(
        f"{name} is no saved run: it is not JSON, or cut short ({cleaned(str(error), 120)}). "
        "Give what casewright ask --save wrote."
    )


def _damaged(name: str, what: str) -> InputError:
    return InputError(
        f"{name} is a damaged run: {cleaned(what, 200)}. Give what casewright ask --save wrote."
    )


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
