"""The generalisation studies: plan shapes, a class and a tool that training has not seen.

Each holds queries out: the questions take no part in training or in its plan cases. Another half of
these queries, in groups of similar questions, is shown as plan cases or added to the training.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from casewright.bench.reaper.rows import (
    FROZEN,
    Material,
    QuestionSet,
    Row,
    Training,
    instruction_places,
    mixture,
)
from casewright.bench.reaper.trial import STUDIES, ReaperTrial
from casewright.errors import InputError
from casewright.finetune.evaluation import MULTI_STEP, items_of
from casewright.finetune.examples.data_section import DataSection
from casewright.finetune.folds import similarity_groups
from casewright.finetune.queries.choose import SamplingSettings, choose_queries, facility_location
from casewright.planner import AnnotatedQuery, read_annotated
from casewright.stores import Encoder
from casewright.tools import Toolbox

#: The paper's numbers: diverse examples of several steps, and queries that a new class came with.
DIVERSE, CLASS_QUERIES = 25, 286
#: Of the shapes of several steps, from the second most frequent on, each fourth is held out: some
#: that are frequent, and many that are not.
FIRST_SHAPE, EVERY = 1, 4

#: Questions for a tool that no training has shown, whose description and example stand in the
#: prompt (section 5.5). The first is the paper's own; the others are this project's.
NEW_TOOL = "compatible_products"
NEW_TOOL_QUERIES = Path(__file__).with_name("compatible.jsonl")

Queries = tuple[AnnotatedQuery, ...]
Shape = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Halves:
    """Queries that are held out: one half to ask, one to show or to learn from.

    Similar questions are in the same half.
    """

    asked: Queries
    shown: Queries


def held_shapes(queries: Sequence[AnnotatedQuery]) -> frozenset[Shape]:
    """Return the sequences of tools that are to be new: a fourth of those of several steps."""
    counts = Counter(query.plan.tools for query in queries if query.label == MULTI_STEP)
    ranked = sorted(counts, key=lambda shape: (-counts[shape], shape))
    return frozenset(ranked[FIRST_SHAPE::EVERY])


def of_shapes(queries: Sequence[AnnotatedQuery], shapes: Collection[Shape]) -> Queries:
    """Return the queries whose plans have one of these shapes."""
    return tuple(query for query in queries if query.plan.tools in shapes)


def own_tools(queries: Sequence[AnnotatedQuery], toolbox: Toolbox) -> Queries:
    """Return the queries whose plan calls a tool that only their record declares."""
    return tuple(item.query for item in items_of(queries, toolbox) if item.new_tools)


def halves(queries: Sequence[AnnotatedQuery], asked: int, encoder: Encoder, seed: int) -> Halves:
    """Return queries in two halves, in groups of similar questions.

    Args:
        queries: The queries.
        asked: Most questions; never more than half of the queries, but for the first group.
        encoder: Of the similarity.
        seed: Of the order of the groups.

    Raises:
        InputError: There are fewer than two groups.
    """
    members: dict[int, list[AnnotatedQuery]] = defaultdict(list)
    numbers = similarity_groups([query.query for query in queries], encoder)
    for query, number in zip(queries, numbers, strict=True):
        members[number].append(query)
    if len(members) < 2:
        raise InputError(
            f"Of {len(queries)} queries that a study holds out, no two differ enough to measure by "
            "one and to show the other. Give more annotated queries."
        )
    groups = list(members.values())
    random.Random(seed).shuffle(groups)
    most = min(asked, len(queries) // 2)
    first: list[AnnotatedQuery] = []
    second: list[AnnotatedQuery] = []
    for group in groups:
        (first if not first or len(first) + len(group) <= most else second).extend(group)
    return Halves(tuple(first), tuple(second))


def held_out_queries(material: Material, trial: ReaperTrial) -> Queries:
    """Return all queries that any study asks; the base of all rows is trained without them."""
    queries = material.queries
    shapes, own = held_shapes(queries), own_tools(queries, material.toolbox)
    out = {id(query) for query in (*of_shapes(queries, shapes), *own)}
    return tuple(q for q in queries if id(q) in out or trial.tool in q.plan.tools)


def study_rows(material: Material, data: DataSection, trial: ReaperTrial) -> list[Row]:
    """Return the rows of the studies.

    Args:
        material: The domain.
        data: The recipe's section, with the number of queries of a training.
        trial: Instructions, the tool that is left out, the size of test sets.
    """
    studies = _Studies(material, data, trial)
    return [*studies.shapes(), *studies.new_class(), *studies.new_tool()]


class _Studies:
    def __init__(self, material: Material, data: DataSection, trial: ReaperTrial) -> None:
        self._material = material
        self._trial = trial
        self._whole = mixture(data, instruction_places(trial.instructions))
        # Queries are sampled before some are added.
        self._alone = self._whole.model_copy(update={"sampling": SamplingSettings()})
        # Not in a prompt either: a tool that is there and never called is learned, too.
        self._toolbox = material.without(trial.tool)
        self._own = own_tools(material.queries, material.toolbox)
        own = {id(query) for query in self._own}
        self._without_tool = self._sampled(
            [
                query
                for query in material.queries
                if trial.tool not in query.plan.tools
                and trial.tool not in query.record.tools_removed
                and id(query) not in own
            ]
        )
        given = material.ingredients(self._without_tool, self._toolbox)
        self._no_tool = Training("no-tool", self._alone, given)

    def shapes(self) -> list[Row]:
        """Return the rows of new plan shapes: no plan case of them, some, and a few in training."""
        queries, encoder = self._material.queries, self._material.encoder
        held = held_shapes(queries)
        parts = self._halves(of_shapes(queries, held))
        learned = self._sampled([q for q in queries if q.plan.tools not in held])
        vectors = encoder.embed([query.query for query in parts.shown])
        picks = facility_location(vectors, min(DIVERSE, len(parts.shown)))
        diverse = [parts.shown[number] for number in sorted(picks)]
        without = self._training("no-shapes", learned)
        added = self._training("shapes-added", (*learned, *diverse))
        name, out = "new shapes", f"{len(held)} of the sequences of tools were held out"
        picked = f"{len(diverse)} picked by facility location"
        shown = (*learned, *parts.shown)
        return [
            self._row(f"{name}, {what}", training, name, parts.asked, cases, note)
            for what, training, cases, note in (
                ("no plan case of them", without, learned, out),
                ("plan cases of them", without, shown, ""),
                (f"{len(diverse)} examples added", added, shown, picked),
            )
        ]

    def new_class(self) -> list[Row]:
        """Return the rows of a class that training lacked, and of some queries of it added."""
        tool = self._trial.tool
        parts = self._halves([q for q in self._material.queries if q.label == tool])
        most = min(CLASS_QUERIES, len(parts.shown))
        added = random.Random(f"{self._trial.seed}:class").sample(parts.shown, most)
        known = (*self._without_tool, *added)
        name = f"class {tool}"
        rows = []
        for row, training, cases in (
            (f"{name} left out", self._no_tool, self._without_tool),
            (f"{name} added by {most} queries", self._training("class-added", known), known),
        ):
            rows.append(self._row(row, training, name, parts.asked, cases))
            frozen = QuestionSet(FROZEN, self._material.frozen, cases)
            rows.append(Row(STUDIES, row, training, frozen))
        return rows

    def new_tool(self) -> list[Row]:
        """Return the rows of tools in no training prompt, whose own example the prompt shows."""
        tool, cases = self._trial.tool, self._without_tool
        needing = tuple(i for i in self._material.frozen if tool in i.query.plan.tools)
        draw = random.Random(f"{self._trial.seed}:own tools")
        drawn = draw.sample(self._own, min(self._trial.limit, len(self._own)))
        rows = []
        if needing:
            questions = QuestionSet(f"{FROZEN}, need {tool}", needing, cases)
            rows.append(Row(STUDIES, f"tool {tool} never seen", self._no_tool, questions))
        if drawn:
            name = "tools of their own"
            rows.append(self._row(f"{name}, never seen", self._no_tool, name, drawn, cases))
        novel = tuple(items_of(read_annotated(NEW_TOOL_QUERIES), self._material.toolbox))
        questions = QuestionSet(f"need {NEW_TOOL}", novel, cases)
        return [*rows, Row(STUDIES, f"tool {NEW_TOOL} never seen", self._no_tool, questions)]

    def _sampled(self, queries: Sequence[AnnotatedQuery]) -> Queries:
        """Return as many queries as other rows learn from: added ones are then seen as often."""
        data, encoder = self._whole, self._material.encoder
        return tuple(choose_queries(queries, data.sampling, encoder, data.seed))

    def _halves(self, queries: Sequence[AnnotatedQuery]) -> Halves:
        return halves(queries, self._trial.limit, self._material.encoder, self._trial.seed)

    def _training(self, name: str, queries: Queries) -> Training:
        return Training(name, self._alone, self._material.ingredients(queries))

    def _row(
        self,
        name: str,
        training: Training,
        label: str,
        queries: Sequence[AnnotatedQuery],
        cases: Queries,
        note: str = "",
    ) -> Row:
        items = tuple(items_of(queries, self._material.toolbox))
        questions = QuestionSet(f"held out: {label}", items, cases)
        return Row(STUDIES, name, training, questions, note=note)
