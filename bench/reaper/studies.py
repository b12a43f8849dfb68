"""The generalisation studies: plan shapes, a class and a tool that training has not seen.

Each holds queries out, so that what is asked takes no part in training or in its plan cases; what
is shown or added beside is another half of them, in groups of like questions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from casewright.bench.reaper.ablations import Mixtures, instruction_places
from casewright.bench.reaper.held_out import Halves, halves, held_shapes, of_shapes, own_tools
from casewright.bench.reaper.material import Material
from casewright.bench.reaper.row import FROZEN, QuestionSet, Row, Training
from casewright.bench.reaper.trial import STUDIES, ReaperTrial
from casewright.errors import InputError
from casewright.finetune.evaluation import EvaluationItem, items_of
from casewright.finetune.queries.choose import SamplingSettings, choose_queries
from casewright.finetune.queries.facility_location import facility_location
from casewright.finetune.recipe.data_section import DataSection
from casewright.planner import AnnotatedQuery

#: The paper's numbers: diverse examples of several steps, and queries that a new class came with.
DIVERSE, CLASS_QUERIES = 25, 286

Queries = tuple[AnnotatedQuery, ...]


def study_rows(material: Material, data: DataSection, trial: ReaperTrial) -> list[Row]:
    """Return the rows of the studies.

    Args:
        material: The domain.
        data: The recipe's section; as many queries as it samples are learned from.
        trial: Instructions, the tool that is left out, the size of test sets.

    Raises:
        InputError: There is no such tool, or too few queries to hold any out.
    """
    if trial.tool not in material.toolbox:
        names = ", ".join(material.toolbox.names)
        raise InputError(f"There is no tool {trial.tool!r} to leave out. Tools are: {names}.")
    studies = _Studies(material, data, trial)
    return [*studies.shapes(), *studies.new_class(), *studies.new_tool()]


def held_out_queries(material: Material, trial: ReaperTrial) -> Queries:
    """Return all queries that any study asks by; what all rows start from is made without them."""
    queries = material.queries
    shapes, own = held_shapes(queries), own_tools(queries, material.toolbox)
    out = {id(query) for query in (*of_shapes(queries, shapes), *own)}
    return tuple(q for q in queries if id(q) in out or trial.tool in q.plan.tools)


class _Studies:
    def __init__(self, material: Material, data: DataSection, trial: ReaperTrial) -> None:
        self._material = material
        self._trial = trial
        self._whole = Mixtures(data, instruction_places(trial.instructions)).whole()
        self._own = own_tools(material.queries, material.toolbox)

    def shapes(self) -> list[Row]:
        """New shapes of plans: without a plan case of them, with some, and trained on a few."""
        held = held_shapes(self._material.queries)
        parts = self._halves(of_shapes(self._material.queries, held))
        learned = self._sampled([q for q in self._material.queries if q.plan.tools not in held])
        diverse = self._diverse(parts.shown)
        without = self._training("no-shapes", learned)
        added = self._training("shapes-added", (*learned, *diverse))
        name, count = "new shapes", len(held)
        shown = (*learned, *parts.shown)
        return [
            self._row(
                *(f"{name}, no plan case of them", without, name, parts.asked, learned),
                f"{count} of the sequences of tools were held out",
            ),
            self._row(f"{name}, plan cases of them", without, name, parts.asked, shown),
            self._row(
                *(f"{name}, {len(diverse)} examples added", added, name, parts.asked, shown),
                f"{len(diverse)} picked by facility location",
            ),
        ]

    def new_class(self) -> list[Row]:
        """A class that training lacked, then with some queries of it alone."""
        tool, queries = self._trial.tool, self._material.queries
        parts = self._halves([query for query in queries if query.label == tool])
        learned = self._without_tool()
        draw = random.Random(f"{self._trial.seed}:class")
        most = min(CLASS_QUERIES, len(parts.shown))
        added = tuple(draw.sample(parts.shown, most))
        known = (*learned, *added)
        trained = self._training("class-added", known)
        name = f"class {tool}"
        return [
            row
            for told, training, cases in (
                (f"{name} left out", self._no_tool(learned), learned),
                (f"{name} added by {most} queries", trained, known),
            )
            for row in (
                self._row(told, training, name, parts.asked, cases),
                self._frozen(told, training, cases),
            )
        ]

    def new_tool(self) -> list[Row]:
        """Tools that no training prompt has shown, whose own example the prompt shows."""
        tool, learned = self._trial.tool, self._without_tool()
        training = self._no_tool(learned)
        needing = [item for item in self._material.frozen if tool in item.query.plan.tools]
        draw = random.Random(f"{self._trial.seed}:own tools")
        asked = draw.sample(self._own, min(self._trial.limit, len(self._own)))
        rows = []
        if needing:
            questions = QuestionSet(f"{FROZEN}, need {tool}", tuple(needing), learned)
            rows.append(Row(STUDIES, f"tool {tool} never seen", training, questions))
        if asked:
            name = "tools of their own"
            rows.append(self._row(f"{name}, never seen", training, name, asked, learned))
        return rows

    def _no_tool(self, learned: Queries) -> Training:
        # Nor is it in a prompt: a tool that is there and never called is learned, too.
        toolbox = self._material.toolbox.without(self._trial.tool)
        return Training("no-tool", self._alone, self._material.ingredients(learned, toolbox))

    def _without_tool(self) -> Queries:
        own = {id(query) for query in self._own}
        tool = self._trial.tool
        return self._sampled(
            [
                query
                for query in self._material.queries
                if tool not in query.plan.tools
                and tool not in query.record.tools_removed
                and id(query) not in own
            ]
        )

    def _sampled(self, queries: Sequence[AnnotatedQuery]) -> Queries:
        """Return as many as other rows learn from: what is added is then seen as often."""
        data, encoder = self._whole, self._material.encoder
        return tuple(choose_queries(queries, data.sampling, encoder, data.seed))

    def _diverse(self, queries: Queries) -> Queries:
        vectors = self._material.encoder.embed([query.query for query in queries])
        picks = facility_location(vectors, min(DIVERSE, len(queries)))
        return tuple(queries[place] for place in sorted(picks))

    def _halves(self, queries: Sequence[AnnotatedQuery]) -> Halves:
        return halves(queries, self._trial.limit, self._material.encoder, self._trial.seed)

    @property
    def _alone(self) -> DataSection:
        # They were sampled before some were added.
        return self._whole.model_copy(update={"sampling": SamplingSettings()})

    def _training(self, name: str, queries: Queries) -> Training:
        return Training(name, self._alone, self._material.ingredients(queries))

    def _row(
        self,
        name: str,
        training: Training,
        asked: str,
        queries: Sequence[AnnotatedQuery],
        cases: Queries,
        note: str = "",
    ) -> Row:
        items: list[EvaluationItem] = items_of(queries, self._material.toolbox)
        questions = QuestionSet(f"held out: {asked}", tuple(items), cases)
        return Row(STUDIES, name, training, questions, note=note)

    def _frozen(self, name: str, training: Training, cases: Queries) -> Row:
        return Row(STUDIES, name, training, QuestionSet(FROZEN, self._material.frozen, cases))
