"""How good plans are: tools, arguments, and classes as REAPER's Table 1 has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from casewright.planner import AnnotatedQuery, Literal, Plan
from casewright.planner.plan import Value
from casewright.planner.spans import normalized

#: The paper measures arguments only on plans that use one of these.
PAPER_ARGUMENT_TOOLS = frozenset({"prod_search", "shipment_status"})
MULTI_STEP = "multi_step"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one predicted plan compares with its annotated query.

    Attributes:
        gold: The query's class.
        predicted: The class of the predicted plan.
        tools: Its tool sequence is the gold one, or one that also counts as right.
        arguments: Tools and every argument are right.
        paper: The paper would measure this plan's arguments.
        milliseconds: Planning time.
    """

    gold: str
    predicted: str
    tools: bool
    arguments: bool
    paper: bool
    milliseconds: float


@dataclass(frozen=True, slots=True)
class ClassScore:
    """Figures of one class; each from 0 to 1, NaN where there is nothing to measure."""

    name: str
    count: int
    tool_accuracy: float
    argument_accuracy: float
    argument_accuracy_paper: float
    precision: float
    recall: float
    f1: float


def judge(query: AnnotatedQuery, plan: Plan, milliseconds: float = 0.0) -> Verdict:
    """Compare a predicted plan with the annotated query."""
    tools = plan.tools == query.plan.tools or plan.tools in query.accept
    same_tools = plan.tools == query.plan.tools
    return Verdict(
        gold=query.label,
        predicted=query.label if tools else plan_class(plan),
        tools=tools,
        arguments=tools and (not same_tools or _arguments_right(query, plan)),
        paper=bool(PAPER_ARGUMENT_TOOLS & set(query.plan.tools)),
        milliseconds=milliseconds,
    )


def plan_class(plan: Plan) -> str:
    """Return the class of a plan: the one tool whose results nothing else needs, or multi-step."""
    needed = {reference.step for step in plan.steps for reference in step.references()}
    last = [step.tool for number, step in enumerate(plan.steps, 1) if number not in needed]
    return last[0] if len(last) == 1 else MULTI_STEP


def _arguments_right(query: AnnotatedQuery, plan: Plan) -> bool:
    for number, (gold, own) in enumerate(zip(query.plan.steps, plan.steps, strict=True), 1):
        if dict(gold.arguments).keys() != dict(own.arguments).keys():
            return False
        for name, value in gold.arguments:
            words = query.must.get(f"s{number}.{name}", ())
            given = own.argument(name)
            if given is None or not _value_right(value, given, words):
                return False
    return True


def _value_right(gold: Value, given: Value, must: Sequence[str]) -> bool:
    if not isinstance(gold, Literal) or not isinstance(gold.value, str):
        return gold == given
    # The whole question holds every word, and is not the short literal that was asked for.
    if not isinstance(given, Literal) or not isinstance(given.value, str):
        return False
    text = normalized(given.value)
    return all(word in text for word in must) if must else text == normalized(gold.value)


def score_classes(verdicts: Sequence[Verdict]) -> list[ClassScore]:
    """Score every gold class, then ``all``: averages over plans, and over classes for F1."""
    names = sorted({verdict.gold for verdict in verdicts})
    scores = [_score(name, verdicts) for name in names]
    overall = ClassScore(
        "all",
        len(verdicts),
        _share([v.tools for v in verdicts]),
        _share([v.arguments for v in verdicts]),
        _share([v.arguments for v in verdicts if v.paper]),
        *(float(np.mean([getattr(s, f) for s in scores])) for f in ("precision", "recall", "f1")),
    )
    return [*scores, overall]


def _score(name: str, verdicts: Sequence[Verdict]) -> ClassScore:
    own = [v for v in verdicts if v.gold == name]
    claimed = [v for v in verdicts if v.predicted == name]
    hits = sum(v.predicted == name for v in own)
    precision = hits / len(claimed) if claimed else 0.0
    recall = hits / len(own)
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return ClassScore(
        name,
        len(own),
        _share([v.tools for v in own]),
        _share([v.arguments for v in own]),
        _share([v.arguments for v in own if v.paper]),
        precision,
        recall,
        f1,
    )


def _share(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")


def as_row(score: ClassScore) -> Mapping[str, str | int | float | None]:
    """Return a score as a JSON-plain row with short names; what was not measured is null."""
    figures = {
        "tools": score.tool_accuracy,
        "arguments": score.argument_accuracy,
        "arguments_paper": score.argument_accuracy_paper,
        "precision": score.precision,
        "recall": score.recall,
        "f1": score.f1,
    }
    shown = {name: None if np.isnan(v) else round(v, 4) for name, v in figures.items()}
    return {"class": score.name, "count": score.count, **shown}
