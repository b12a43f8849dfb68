"""What the corpus holds, counted by split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from casewright.finetune.corpus.corpus import SPLITS, CorpusToolbox
from casewright.finetune.corpus.kinds import CLASSES, DECOY, USED, class_of, page_of
from casewright.finetune.corpus.second_reading import Reading
from casewright.finetune.evaluation.intervals import wilson
from casewright.planner import AnnotatedQuery, Literal
from casewright.tools import NO_EVIDENCE, Toolbox

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
    found: Counter[str] = Counter()
    for box in boxes:
        for query in box.queries:
            found.update(_features(query, box.toolbox))
    return {
        "toolboxes": len(boxes),
        "writers": len({box.writer for box in boxes}),
        "tools": sum(tool.name != NO_EVIDENCE.name for box in boxes for tool in box.toolbox),
        "messages": sum(len(box.queries) for box in boxes),
        **{name: found[name] for name in (*CLASSES, CHAINS, USED, DECOY)},
        **{name: found[name] for name in (OPTIONAL, CHOICES, NUMBERS)},
        **_read_again({box.name for box in boxes}, readings),
    }


def _features(query: AnnotatedQuery, toolbox: Toolbox) -> Counter[str]:
    found = Counter([class_of(query), page_of(query)])
    found[CHAINS] = any(True for step in query.plan.steps for _ in step.references())
    for step in query.plan.steps:
        for name, value in step.arguments:
            parameter = toolbox[step.tool].parameter(name)
            assert parameter is not None
            found[OPTIONAL] += not parameter.required
            found[CHOICES] += bool(parameter.choices)
            # A truth value is an int to Python.
            found[NUMBERS] += isinstance(value, Literal) and type(value.value) in (int, float)
    return found


def _read_again(names: set[str], readings: Sequence[Reading]) -> Mapping[str, Any]:
    said = Counter(reading.verdict for reading in readings if reading.toolbox in names)
    count, mended = said.total(), said["mended"]
    values = (mended / count, *wilson(mended, count)) if count else (None, None, None)
    shares = ("mended, share", "mended, low", "mended, high")
    share = {n: v if v is None else round(v, 4) for n, v in zip(shares, values, strict=True)}
    return {"read again": count, "mended": mended, "dropped": said["dropped"], **share}
