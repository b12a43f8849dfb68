"""Figures of planners on a set of questions, in four modes, and the lines of tables from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from casewright.bench.models import random_twin
from casewright.bench.reaper.rows import Material, QuestionSet, Row
from casewright.bench.reaper.trial import NOTHING, Published
from casewright.bench.reaper.workplace import Start, Trained, Workplace
from casewright.errors import InputError
from casewright.finetune.evaluation import as_row, evaluate, score_classes
from casewright.finetune.evaluation.intervals import wilson
from casewright.planner import CasePlanner, ModelPlanner, Planner, plan_store
from casewright.stores import CachedEncoder, CaseStore
from casewright.stores.encoders.cache import UncachedQuestions

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

Line = dict[str, Any]
TRAINED, RANDOM, CASES = "trained", "random weights", "case planner"
#: The columns of every line, in order; the first five identify it.
COLUMNS = (
    *("table", "row", "questions", "planner", "class", "grammar", "plan cases"),
    *("count", "tools", "low", "high", "arguments", "arguments_paper", "f1", "only_provided"),
    *("invalid", "ms_p50", "published", "examples", "tokens", "steps", "seconds", "note"),
)
#: A batch on a slow machine must not end by the clock: the figures would be the machine's.
SECONDS = 600.0
#: Questions that are decoded together where a plan's own time is not measured.
TOGETHER = 16
#: The start of a result's ``fallback`` where the planner raised: nothing was measured.
FAILED = "It failed"


class Mode(NamedTuple):
    """A way to ask a language model: under the grammar or not, with plan cases or without."""

    grammar: bool
    cases: bool


#: As it is served first; those of random weights, which write no plan without a grammar.
MODES = (Mode(True, True), Mode(True, False), Mode(False, True), Mode(False, False))
SERVED, BOUND = MODES[0], MODES[:2]


@dataclass(frozen=True, slots=True)
class Asking:
    """Questions with their plan cases in a store.

    Attributes:
        questions: The questions.
        store: The plan cases.
        examples: Plan cases in a prompt.
        together: Questions that are decoded at once.
        seed: Of the tools that are removed.
    """

    questions: QuestionSet
    store: CaseStore
    examples: int
    together: int = TOGETHER
    seed: int = 0

    def of_model(
        self,
        work: Workplace,
        name: str,
        identity: Mapping[str, Any],
        mode: Mode,
        model: Callable[[], LanguageModel],
    ) -> dict[str, Any]:
        """Return a language model's figures; with the grammar off, with a needed tool removed too.

        Args:
            work: Keeps figures.
            name: The start of the file's name.
            identity: Identifies the model's weights.
            mode: How it is asked.
            model: Returns the model; called where the figures were not kept.
        """
        key = {
            **self.questions.identity,
            **identity,
            "grammar": mode.grammar,
            "examples": self.examples if mode.cases else 0,
            "together": self.together,
            "seed": self.seed,
        }
        if not mode.cases:
            # Rows that differ in their plan cases alone share figures without any.
            del key["cases"]

        def measure() -> dict[str, Any]:
            planner = ModelPlanner(
                model(),
                plan_cases=self.store if mode.cases else None,
                examples=self.examples,
                seconds=SECONDS,
                batch=self.together,
                constrained=mode.grammar,
            )
            return self.of(planner, removal=not mode.grammar)

        return work.kept(name, key, measure)

    def of(self, planner: Planner, *, removal: bool = False) -> dict[str, Any]:
        """Return a planner's figures, JSON-plain.

        A plan that a fallback gave, or that is not valid, counts as wrong in everything: no planner
        borrows another's accuracy.

        Args:
            planner: The planner.
            removal: Also measure whether it keeps to the tools that are left when one is removed.

        Raises:
            InputError: The planner failed on a question: its figures would look like a result.
        """
        name, items = planner.name, self.questions.items
        removed = {name: planner} if removal else None
        evaluation = evaluate(items, {name: planner}, removal=removed, seed=self.seed)
        outcomes, figures = evaluation.outcomes[name], evaluation.figures[name]
        failed = [o.answered.error for o in outcomes if o.answered.error]
        failed += [o.result.fallback for o in outcomes if o.result and FAILED in o.result.fallback]
        if failed:
            raise InputError(
                f"{len(failed)} of {len(outcomes)} questions were not answered by {name}, the "
                f"first since: {failed[0]} Run the same command again; nothing of this was kept."
            )
        wrong: dict[str, Any] = {"predicted": "", "tools": False, "arguments": False}
        verdicts = [o.verdict if o.own else replace(o.verdict, **wrong) for o in outcomes]
        low, high = wilson(sum(verdict.tools for verdict in verdicts), len(verdicts))

        def figure(key: str, digits: int = 1) -> float | None:
            value = figures[key].value
            return None if value is None else round(value, digits)

        return {
            "classes": [dict(as_row(score)) for score in score_classes(verdicts)],
            "low": round(low, 4),
            "high": round(high, 4),
            "invalid": round(sum(not o.own for o in outcomes) / len(outcomes), 4),
            "only_provided": figure("only_provided", 4) if removal else None,
            "ms_p50": figure("ms_p50"),
            "output_tokens": figure("output_tokens"),
            "model_steps": figure("model_steps"),
        }


@contextmanager
def open_asking(
    questions: QuestionSet,
    encoder: CachedEncoder,
    examples: int,
    *,
    together: int = TOGETHER,
    seed: int = 0,
) -> Iterator[Asking]:
    """Yield the questions with their plan cases in a store, while the block lasts."""
    with plan_store(questions.cases, UncachedQuestions(encoder)) as store:
        yield Asking(questions, store, examples, together, seed)


@dataclass(frozen=True, slots=True)
class RowLines:
    """Measures rows, each planner and mode once: the trained planner and its baselines.

    Attributes:
        material: The domain.
        work: Trains, and keeps figures.
        start: The model that rows are trained from.
        examples: Plan cases in a prompt.
        seed: Of random weights, and of the tools that are removed.
    """

    material: Material
    work: Workplace
    start: Start
    examples: int
    seed: int

    def of(self, row: Row) -> list[Line]:
        """Return a row's lines; of a row that cannot be trained, one line that says why."""
        head = (row.table, row.name, row.questions)
        if row.training is None:
            return [line(*head, TRAINED, note=row.note)]
        trained = self.work.trained(row.training, self.start)

        # Loaded when figures are measured, and not where all of them were kept.
        @cache
        def own() -> LanguageModel:
            from casewright.planner.language_model import load_language_model

            return load_language_model(trained.folder)

        drawn = cache(lambda: random_twin(own(), self.seed))
        random = f"random-{self.seed}-{self.start.identity}"
        lines = []
        with open_asking(
            row.questions, self.material.encoder, self.examples, seed=self.seed
        ) as asking:
            more: dict[str, Any] = {"paper": row.paper, "trained": trained, "note": row.note}
            for planner, name, modes, model, beside in (
                (TRAINED, trained.folder.name, MODES, own, more),
                (RANDOM, random, BOUND, drawn, {}),
            ):
                file, identity = name.rpartition("-")[0], {"model": name}
                for mode in modes:
                    figures = asking.of_model(self.work, file, identity, mode, model)
                    lines.append(line(*head, planner, figures, mode, **beside))
            cases, key = CasePlanner(asking.store), {**row.questions.identity, "seed": self.seed}
            figures = self.work.kept("case", key, lambda: asking.of(cases))
        return [*lines, line(*head, CASES, figures)]


def line(
    table: str,
    row: str,
    questions: QuestionSet,
    planner: str,
    figures: Mapping[str, Any] | None = None,
    mode: Mode | None = None,
    *,
    label: str = "all",
    paper: Published = NOTHING,
    trained: Trained | None = None,
    note: str = "",
) -> Line:
    """Return a line with all columns; ``None`` in those that it has no figure for.

    Args:
        table: The table.
        row: The row's name.
        questions: The questions.
        planner: The planner.
        figures: As ``Asking.of`` returns them.
        mode: How a language model was asked.
        label: A class, or ``all``.
        paper: The paper's figures, shown where the line is as it is served, and for instruction
            following.
        trained: The training.
        note: A remark that a reader needs.
    """
    head = {"table": table, "row": row, "questions": questions.name, "planner": planner}
    cells: Line = dict.fromkeys(COLUMNS) | head
    cells |= {"class": label, "count": len(questions.items), "note": note or None}
    if mode is not None:
        on, cases = ("on" if part else "off" for part in mode)
        cells |= {"grammar": on, "plan cases": cases}
    if figures is not None:
        own = next(score for score in figures["classes"] if score["class"] == label)
        own = {**own, **figures} if label == "all" else own
        cells |= {name: own[name] for name in COLUMNS if name in own}
    if trained is not None:
        metrics = trained.metrics
        # The card of a training that was resumed has the seconds of its last part alone.
        resumed = bool(metrics.get("resumed_after_steps"))
        cells |= {
            "examples": metrics.get("examples_training"),
            "tokens": metrics.get("tokens_training"),
            "steps": metrics.get("steps"),
            "seconds": None if resumed else metrics.get("seconds_training"),
        }
    if mode is None or mode.cases:
        cells["published"] = paper.told(label, grammar=mode is None or mode.grammar)
    return cells
