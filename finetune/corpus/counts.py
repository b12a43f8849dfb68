"""Counts of the corpus by split, and what a message asks for, read off its gold plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from casewright.finetune.corpus.corpus import SPLITS, CorpusToolbox, Reading
from casewright.finetune.evaluation.intervals import wilson
from casewright.finetune.evaluation.verdict import MULTI_STEP, plan_class
from casewright.planner import AnnotatedQuery, Literal
from casewright.planner.plan import context_fields
from casewright.tools import NO_EVIDENCE, Toolbox

ONE, CHAIN, SEVERAL, NOTHING = "one look-up", "chain of look-ups", "several asks", "unanswerable"
#: Every message is of one of these.
CLASSES: Final = (ONE, CHAIN, SEVERAL, NOTHING)
USED, DECOY = "open page used", "open page as decoy"


def class_of(query: AnnotatedQuery) -> str:
    """Return a message's class, one of ``CLASSES``.

    A chain is one ask whose last look-up needs the others; several asks have plans of several ends.
    """
    if NO_EVIDENCE.name in query.plan.tools:
        return NOTHING
    if plan_class(query.plan) == MULTI_STEP:
        return SEVERAL
    return CHAIN if len(query.plan.steps) > 1 else ONE


def page_of(query: AnnotatedQuery) -> str:
    """Return ``USED`` or ``DECOY`` for a message with an open page; empty for one without."""
    if not query.record.context:
        return ""
    return USED if context_fields(query.plan) else DECOY


CHAINS, OPTIONAL = "plans with a reference to a step", "optional arguments given"
CHOICES, NUMBERS = "choices", "numbers"


def corpus_counts(
    boxes: Sequence[CorpusToolbox], readings: Sequence[Reading] = ()
) -> dict[str, dict[str, Any]]:
    """Return what each split holds, by what is counted, and the same of ``all``.

    Optional arguments, choices and numbers are arguments of gold plans. ``mended, share`` is of the
    messages that were read a second time, with its 95 % interval (Wilson); ``None`` where none was.

    Args:
        boxes: The toolboxes.
        readings: Of the second reading; those of other toolboxes do not count.
    """
    parts: dict[str, Sequence[CorpusToolbox]] = {
        split: [box for box in boxes if box.split == split] for split in SPLITS
    }
    return {name: _counted(own, readings) for name, own in {**parts, "all": boxes}.items()}


def _counted(boxes: Sequence[CorpusToolbox], readings: Sequence[Reading]) -> dict[str, Any]:
    results: Counter[str] = Counter()
    for box in boxes:
        for query in box.queries:
            results.update(_features(query, box.toolbox))
    return {
        "toolboxes": len(boxes),
        "writers": len({box.writer for box in boxes}),
        "tools": sum(tool.name != NO_EVIDENCE.name for box in boxes for tool in box.toolbox),
        "messages": sum(len(box.queries) for box in boxes),
        **{name: results[name] for name in (*CLASSES, CHAINS, USED, DECOY)},
        **{name: results[name] for name in (OPTIONAL, CHOICES, NUMBERS)},
        **_read_again({box.name for box in boxes}, readings),
    }


def _features(query: AnnotatedQuery, toolbox: Toolbox) -> Counter[str]:
    results = Counter([class_of(query), page_of(query)])
    results[CHAINS] = any(True for step in query.plan.steps for _ in step.references())
    for step in query.plan.steps:
        for name, value in step.arguments:
            parameter = toolbox[step.tool].parameter(name)
            assert parameter is not None
            results[OPTIONAL] += not parameter.required
            results[CHOICES] += bool(parameter.choices)
            # A truth value is an int to Python.
            results[NUMBERS] += isinstance(value, Literal) and type(value.value) in (int, float)
    return results


def _read_again(names: set[str], readings: Sequence[Reading]) -> Mapping[str, Any]:
    said = Counter(reading.verdict for reading in readings if reading.toolbox in names)
    count, mended = said.total(), said["mended"]
    values = (mended / count, *wilson(mended, count)) if count else (None, None, None)
    shares = ("mended, share", "mended, low", "mended, high")
    share = {n: v if v is None else round(v, 4) for n, v in zip(shares, values, strict=True)}
    return {"read again": count, "mended": mended, "dropped": said["dropped"], **share}
