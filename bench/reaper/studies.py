"""The generalisation studies: plan shapes, a class and a tool that are not in the training.

Half of the held-out queries, in groups of similar questions, are asked; the others are shown as
plan cases or added to the training.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from casewright.bench.reaper.rows import (
    FROZEN,
    STUDIES,
    Material,
    QuestionSet,
    ReaperTrial,
    Row,
    Training,
    instruction_sources,
    mixture,
)
from casewright.errors import InputError
from casewright.finetune.evaluation import MULTI_STEP, items_of
from casewright.finetune.examples.data_section import DataSection
from casewright.finetune.folds import similarity_groups
from casewright.finetune.queries.choose import SamplingSettings, choose_queries, facility_location
from casewright.planner import AnnotatedQuery, read_annotated
from casewright.stores import Encoder
from casewright.tools import Toolbox

#: The paper's numbers: diverse examples of several steps, and queries of a new class.
DIVERSE, CLASS_QUERIES = 25, 286
#: Every fourth shape of several steps is held out, from the second most frequent on.
FIRST_SHAPE, EVERY = 1, 4

#: Questions for a tool that is in no training and only in their prompt (section 5.5). The first is
#: the paper's own; the others are this project's.
NEW_TOOL = "compatible_products"
NEW_TOOL_QUERIES = Path(__file__).with_name("compatible.jsonl")

Queries = tuple[AnnotatedQuery, ...]
Shape = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Halves:
    """Held-out queries in two halves; similar questions are in the same half."""

    questions: Queries
    rest: Queries


def held_shapes(queries: Sequence[AnnotatedQuery]) -> frozenset[Shape]:
    """Return the held-out sequences of tools: a fourth of those of several steps."""
    counts = Counter(query.plan.tools for query in queries if query.label == MULTI_STEP)
    ranked = sorted(counts, key=lambda shape: (-counts[shape], shape))
    return frozenset(ranked[FIRST_SHAPE::EVERY])


def of_shapes(queries: Sequence[AnnotatedQuery], shapes: Collection[Shape]) -> Queries:
    """Return the queries whose plans have one of these shapes."""
    return tuple(query for query in queries if query.plan.tools in shapes)


def own_tools(queries: Sequence[AnnotatedQuery], toolbox: Toolbox) -> Queries:
    """Return the queries whose plan calls a tool that only the query declares."""
    return tuple(item.query for item in items_of(queries, toolbox) if item.new_tools)


def halves(queries: Sequence[AnnotatedQuery], most: int, encoder: Encoder, seed: int) -> Halves:
    """Return queries in two halves, by groups of similar questions.

    Args:
        most: Never more than half of the queries, but for the first group.

    Raises:
        InputError: There are fewer than two groups.
    """
    by_group: dict[int, list[AnnotatedQuery]] = defaultdict(list)
    numbers = similarity_groups([query.query for query in queries], encoder)
    for query, number in zip(queries, numbers, strict=True):
        by_group[number].append(query)
    if len(by_group) < 2:
        raise InputError(
            f"Of {len(queries)} queries that a study holds out, no two differ enough to measure by "
            "one and to show the other. Give more annotated queries."
        )
    groups = list(by_group.values())
    random.Random(seed).shuffle(groups)
    most = min(most, len(queries) // 2)
    first: list[AnnotatedQuery] = []
    second: list[AnnotatedQuery] = []
    for group in groups:
        (first if not first or len(first) + len(group) <= most else second).extend(group)
    return Halves(tuple(first), tuple(second))


def held_out_queries(material: Material, trial: ReaperTrial) -> Queries:
    """Return the queries that any study asks: the base of all rows is trained without them."""
    queries = material.queries
    shapes, tool_queries = held_shapes(queries), own_tools(queries, material.toolbox)
    held_out = {id(query) for query in (*of_shapes(queries, shapes), *tool_queries)}
    return tuple(q for q in queries if id(q) in held_out or trial.tool in q.plan.tools)


def study_rows(material: Material, data: DataSection, trial: ReaperTrial) -> list[Row]:
    """Return the rows of the studies."""
    studies = _Studies(material, data, trial)
    return [*studies.shapes(), *studies.new_class(), *studies.new_tool()]


class _Studies:
    def __init__(self, material: Material, data: DataSection, trial: ReaperTrial) -> None:
        self._material = material
        self._trial = trial
        self._section = mixture(data, instruction_sources(trial.instructions))
        # Without sampling: queries are sampled before some are added.
        self._unsampled = self._section.model_copy(update={"sampling": SamplingSettings()})
        self._own = own_tools(material.queries, material.toolbox)
        excluded = {id(query) for query in self._own}
        self._without_tool = self._sampled(
            [
                query
                for query in material.queries
                if trial.tool not in (*query.plan.tools, *query.record.tools_removed)
                and id(query) not in excluded
            ]
        )
        # Not in prompts either: a tool that is never called is learned, too.
        toolbox = material.without(trial.tool)
        ingredients = material.ingredients(self._without_tool, toolbox)
        self._no_tool = Training("no-tool", self._unsampled, ingredients)

    def shapes(self) -> list[Row]:
        """Return the rows of new plan shapes: none known, as plan cases, and a few in training."""
        queries, encoder = self._material.queries, self._material.encoder
        held = held_shapes(queries)
        parts = self._halves(of_shapes(queries, held))
        learned = self._sampled([q for q in queries if q.plan.tools not in held])
        vectors = encoder.embed([query.query for query in parts.rest])
        picks = facility_location(vectors, min(DIVERSE, len(parts.rest)))
        diverse = [parts.rest[number] for number in sorted(picks)]
        without = self._training("no-shapes", learned)
        added = self._training("shapes-added", (*learned, *diverse))
        name, out = "new shapes", f"{len(held)} of the sequences of tools were held out"
        picked = f"{len(diverse)} picked by facility location"
        plan_cases = (*learned, *parts.rest)
        return [
            self._row(f"{name}, {what}", training, name, parts.questions, cases, note)
            for what, training, cases, note in (
                ("no plan case of them", without, learned, out),
                ("plan cases of them", without, plan_cases, ""),
                (f"{len(diverse)} examples added", added, plan_cases, picked),
            )
        ]

    def new_class(self) -> list[Row]:
        """Return the rows of a class that is not in the training, and with some queries added."""
        tool = self._trial.tool
        parts = self._halves([q for q in self._material.queries if q.label == tool])
        most = min(CLASS_QUERIES, len(parts.rest))
        added = random.Random(f"{self._trial.seed}:class").sample(parts.rest, most)
        known = (*self._without_tool, *added)
        name = f"class {tool}"
        rows = []
        for row, training, cases in (
            (f"{name} left out", self._no_tool, self._without_tool),
            (f"{name} added by {most} queries", self._training("class-added", known), known),
        ):
            rows.append(self._row(row, training, name, parts.questions, cases))
            frozen = QuestionSet(FROZEN, self._material.frozen, cases)
            rows.append(Row(STUDIES, row, training, frozen))
        return rows

    def new_tool(self) -> list[Row]:
        """Return the rows of tools in no training prompt, whose example the prompt shows."""
        tool, cases = self._trial.tool, self._without_tool
        items = tuple(i for i in self._material.frozen if tool in i.query.plan.tools)
        rng = random.Random(f"{self._trial.seed}:own tools")
        sample = rng.sample(self._own, min(self._trial.limit, len(self._own)))
        rows = []
        if items:
            questions = QuestionSet(f"{FROZEN}, need {tool}", items, cases)
            rows.append(Row(STUDIES, f"tool {tool} never seen", self._no_tool, questions))
        if sample:
            name = "tools of their own"
            rows.append(self._row(f"{name}, never seen", self._no_tool, name, sample, cases))
        items = tuple(items_of(read_annotated(NEW_TOOL_QUERIES), self._material.toolbox))
        questions = QuestionSet(f"need {NEW_TOOL}", items, cases)
        return [*rows, Row(STUDIES, f"tool {NEW_TOOL} never seen", self._no_tool, questions)]

    def _sampled(self, queries: Sequence[AnnotatedQuery]) -> Queries:
        """Return as many queries as other rows learn from."""
        data, encoder = self._section, self._material.encoder
        return tuple(choose_queries(queries, data.sampling, encoder, data.seed))

    def _halves(self, queries: Sequence[AnnotatedQuery]) -> Halves:
        return halves(queries, self._trial.limit, self._material.encoder, self._trial.seed)

    def _training(self, name: str, queries: Queries) -> Training:
        return Training(name, self._unsampled, self._material.ingredients(queries))

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
