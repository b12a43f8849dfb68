"""Messages to toolboxes that nothing was trained on, and the plan cases that planners may know."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from casewright.errors import InputError
from casewright.finetune.corpus import CorpusToolbox, Split, read_corpus
from casewright.finetune.corpus.counts import class_of, page_of
from casewright.finetune.evaluation import EvaluationItem, items_of
from casewright.finetune.instructions import tool_queries
from casewright.finetune.instructions.readers.sealtools import FILES
from casewright.planner import AnnotatedQuery
from casewright.tools import Toolbox

CORPUS, SEALTOOLS, BFCL = "corpus", "sealtools", "bfcl"
#: Seal-Tools' file of fields that its others do not have; the first is trained on.
OUT_OF_DOMAIN, IN_DOMAIN = FILES[2], FILES[:2]
APART = "no tool of the in-domain files"


@dataclass(frozen=True, slots=True)
class UnseenSet:
    """Messages to plan for, toolbox after toolbox.

    Attributes:
        name: The set's.
        items: Messages with gold plans.
        classes: Of each item: its class, and others that count it too.
        groups: Of each item a number; items of one toolbox have the same.
        known: Messages that planners may know, by their toolbox's fingerprint.
        refused: Why records of a public set are no items, and how many.
    """

    name: str
    items: Sequence[EvaluationItem]
    classes: Sequence[tuple[str, ...]]
    groups: Sequence[int]
    known: Mapping[str, Sequence[AnnotatedQuery]] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)

    def limited(self, limit: int | None, seed: int) -> UnseenSet:
        """Return at most so many of the items, drawn at random, in their order."""
        if limit is None or limit >= len(self.items):
            return self
        kept = sorted(random.Random(seed).sample(range(len(self.items)), limit))
        return replace(
            self,
            items=[self.items[number] for number in kept],
            classes=[self.classes[number] for number in kept],
            groups=[self.groups[number] for number in kept],
        )


def corpus_set(split: Split, cases: int, seed: int) -> UnseenSet:
    """Return the messages of the corpus' toolboxes of a split.

    Args:
        split: Which toolboxes.
        cases: Messages of each toolbox that planners may know, drawn at random; they are not asked.
            Those of a smaller number are among those of a greater.
        seed: Of the draw.

    Raises:
        InputError: A toolbox has too few messages for these cases.
    """
    items: list[EvaluationItem] = []
    groups: list[int] = []
    known = {}
    for number, box in enumerate(read_corpus(split)):
        taught = drawn(box, cases, seed)
        known[box.toolbox.fingerprint()] = taught
        own = items_of([query for query in box.queries if query not in taught], box.toolbox)
        items += own
        groups += [number] * len(own)
    return UnseenSet(CORPUS, items, [_classes(item.query) for item in items], groups, known)


def drawn(box: CorpusToolbox, cases: int, seed: int) -> list[AnnotatedQuery]:
    """Return messages of a toolbox that planners may know, drawn at random.

    Raises:
        InputError: It has too few.
    """
    if cases >= len(box.queries):
        raise InputError(
            f"--cases {cases} leaves nothing to ask: the toolbox {box.name} has "
            f"{len(box.queries)} messages. Give fewer."
        )
    order = random.Random(f"{seed}:{box.name}").sample(box.queries, len(box.queries))
    return order[:cases]


def public_sets(folder: Path) -> list[UnseenSet]:
    """Return Seal-Tools' out-of-domain file and BFCL, of a folder that holds a folder of each.

    Raises:
        InputError: One is not there, cannot be read, or has another form.
    """
    return [_sealtools(folder / SEALTOOLS), _bfcl(folder / BFCL)]


def _sealtools(folder: Path) -> UnseenSet:
    refused: Counter[str] = Counter()
    queries = tool_queries(SEALTOOLS, folder / OUT_OF_DOMAIN, refused)
    there = [folder / name for name in IN_DOMAIN if (folder / name).is_file()]
    taught = {
        name for file in there for _, box in tool_queries(SEALTOOLS, file) for name in box.names
    }
    data = _public(SEALTOOLS, queries, refused)
    apart = [
        (*own, APART) if there and taught.isdisjoint(item.query.plan.tools) else own
        for item, own in zip(data.items, data.classes, strict=True)
    ]
    return replace(data, classes=apart)


def _bfcl(folder: Path) -> UnseenSet:
    refused: Counter[str] = Counter()
    queries = tool_queries(BFCL, folder, refused)
    data = _public(BFCL, queries, refused)
    pairs = zip(data.classes, queries, strict=True)
    return replace(data, classes=[(*own, query.label) for own, (query, _) in pairs])


def _public(
    name: str, queries: Iterable[tuple[AnnotatedQuery, Toolbox]], refused: Mapping[str, int]
) -> UnseenSet:
    items = [item for query, toolbox in queries for item in items_of([query], toolbox)]
    classes = [_classes(item.query) for item in items]
    return UnseenSet(name, items, classes, range(len(items)), refused=refused)


def _classes(query: AnnotatedQuery) -> tuple[str, ...]:
    page = page_of(query)
    return (class_of(query), page) if page else (class_of(query),)
