"""Reading of a plan from a file: the plan's text, a saved run, or a pinned plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from casewright.errors import InputError, PlanError
from casewright.graph.run_file import parse_run
from casewright.planner import Plan, parse_plan, read_pinned

#: Maximum number of bytes of a file; a saved run may be large, since it contains evidence.
MAX_BYTES = 8 * 1024 * 1024
_ADVICE = "Give a file with a plan, a saved run, or a pinned plan (.toml)."


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan from a file, with the file's data about the plan.

    Attributes:
        question: The question; empty if the file has none.
        planner: The planner's name; ``file`` if it is unknown, ``pinned:NAME`` for a pinned plan.
        confidence: The planner's probability that the plan is right; ``None`` if unknown.
        because: The reason for the confidence, as a clause; empty if unknown.
    """

    plan: Plan
    question: str = ""
    planner: str = "file"
    confidence: float | None = None
    because: str = ""


def read_plan_file(file: Path) -> SavedPlan:
    """Read a plan from its text, a run of ``casewright ask --save``, or a pinned plan (TOML).

    A pinned plan is returned with its placeholders, such as ``{product}``. Raise ``InputError`` if
    the file cannot be read or contains no plan.
    """
    if file.suffix == ".toml":
        pinned = read_pinned(file.parent, file.stem)
        return SavedPlan(pinned.plan, pinned.question, f"pinned:{pinned.name}")
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError(f"{file} has more than {MAX_BYTES:,} bytes. {_ADVICE}")
        text = content.decode("utf-8")
        if not text.lstrip().startswith("{"):
            return SavedPlan(parse_plan(text))
        run = parse_run(text, str(file))
        planning, plan = run.answer.planner, parse_plan(run.answer.plan)
        confidence, because = planning.get("confidence"), str(planning.get("because", ""))
        confidence = confidence if isinstance(confidence, float) else None
        return SavedPlan(plan, run.question, planning["name"], confidence, because)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}. {_ADVICE}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not a plan: it is not UTF-8 text. {_ADVICE}") from error
    except PlanError as error:
        raise InputError(f"{file} is not a plan: {error}") from error
