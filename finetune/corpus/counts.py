"""Counts of the corpus by split, and the classes of messages, which follow from gold plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from casewright.finetune.corpus.corpus import SPLITS, CorpusToolbox, Reading
from casewright.finetune.evaluation.intervals import wilson
from casewright.finetune.plan_shape import MULTI_STEP, plan_class
from casewright.planner import AnnotatedQuery, Literal
from casewright.planner.plan import context_fields
from casewright.tools import NO_EVIDENCE, Toolbox

#: The classes of messages.
ONE, CHAIN, SEVERAL, NO_TOOL = "one look-up", "chain of look-ups", "several asks", "unanswerable"
CLASSES = (ONE, CHAIN, SEVERAL, NO_TOOL)
#: Other features that are counted; a decoy is an open page that the plan does not use.
USED, DECOY = "open page used", "open page as decoy"
FOLLOW_UP = "follow-ups of a conversation"
WITH_REFERENCE, OPTIONAL_GIVEN = "plans with a reference to a step", "optional arguments given"
CHOICES, NUMBERS = "choices", "numbers"
#: Keys of the share of mended plans, and of the bounds of its 95 % interval.
SHARES = ("mended, share", "mended, low", "mended, high")


def class_of(query: AnnotatedQuery) -> str:
    """Return a message's class; in a chain, the last step depends on all other steps."""
    if NO_EVIDENCE.name in query.plan.tools:
        return NO_TOOL
    if plan_class(query.plan) == MULTI_STEP:
        return SEVERAL
    return CHAIN if len(query.plan.steps) > 1 else ONE


def page_of(query: AnnotatedQuery) -> str:
    """Return ``USED`` or ``DECOY`` if a message has a context, its open page, else ""."""
    if not query.record.context:
        return ""
    return USED if context_fields(query.plan) else DECOY


def corpus_counts(
    boxes: Sequence[CorpusToolbox], readings: Sequence[Reading] = ()
) -> dict[str, dict[str, Any]]:
    """Return the counts of each split, and with the key ``all`` those of all toolboxes.

    ``mended, share`` is the share of messages whose plan a second reading corrected, among the
    messages with a second reading. ``mended, low`` and ``mended, high`` bound its 95 % interval
    (Wilson). All three are ``None`` without second readings.
    """
    counts: dict[str, dict[str, Any]] = {
        split: _counts([box for box in boxes if box.split == split], readings) for split in SPLITS
    }
    return {**counts, "all": _counts(boxes, readings)}


def _counts(boxes: Sequence[CorpusToolbox], readings: Sequence[Reading]) -> dict[str, Any]:
    totals: Counter[str] = Counter()
    for box in boxes:
        for query in box.queries:
            totals.update(_features(query, box.toolbox))
    box_names = {box.name for box in boxes}
    verdicts = Counter(reading.verdict for reading in readings if reading.toolbox in box_names)
    count, mended = verdicts.total(), verdicts["mended"]
    figures = (mended / count, *wilson(mended, count)) if count else ()
    shares: list[float | None] = [round(figure, 4) for figure in figures] or [None] * 3
    return {
        "toolboxes": len(boxes),
        "writers": len({box.writer for box in boxes}),
        "tools": sum(tool.name != NO_EVIDENCE.name for box in boxes for tool in box.toolbox),
        "messages": sum(len(box.queries) for box in boxes),
        **{name: totals[name] for name in (*CLASSES, WITH_REFERENCE, USED, DECOY, FOLLOW_UP)},
        **{name: totals[name] for name in (OPTIONAL_GIVEN, CHOICES, NUMBERS)},
        "read again": count,
        "mended": mended,
        "dropped": verdicts["dropped"],
        **dict(zip(SHARES, shares, strict=True)),
    }


def _features(query: AnnotatedQuery, toolbox: Toolbox) -> Counter[str]:
    """Return the counts of a message: its features, and three kinds of arguments in its plan."""
    counts = Counter([class_of(query), page_of(query)])
    counts[FOLLOW_UP] = bool(query.record.history)
    counts[WITH_REFERENCE] = any(True for step in query.plan.steps for _ in step.references())
    for step in query.plan.steps:
        for name, value in step.arguments:
            parameter = toolbox[step.tool].parameter(name)
            assert parameter is not None
            counts[OPTIONAL_GIVEN] += not parameter.required
            counts[CHOICES] += bool(parameter.choices)
            # isinstance would count a bool, which is an int.
            counts[NUMBERS] += isinstance(value, Literal) and type(value.value) in (int, float)
    return counts
