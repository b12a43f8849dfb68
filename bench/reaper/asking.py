"""Asking planners a set of questions, in four ways, and the lines of tables that come of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
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
from casewright.finetune.evaluation.outcome import Outcome
from casewright.planner import CasePlanner, ModelPlanner, Planner, plan_store
from casewright.stores import CachedEncoder, CaseStore
from casewright.stores.encoders.cache import UncachedQuestions

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

Line = dict[str, Any]
TRAINED, RANDOM, CASES = "trained", "random weights", "case planner"
#: The columns of every line, in order; the first five say what it is of.
COLUMNS = (
    *("table", "row", "questions", "planner", "class", "grammar", "plan cases"),
    *("count", "tools", "low", "high", "arguments", "arguments_paper", "f1", "only_provided"),
    *("invalid", "ms_p50", "published", "examples", "tokens", "steps", "seconds", "note"),
)
#: A batch of a slow machine must not end by the clock, which would make figures the machine's.
SECONDS = 600.0
#: Questions that are decoded together where a plan's own time is not asked for.
TOGETHER = 16
#: In why a model's plan is another planner's: it raised, so there is nothing to measure.
FAILED = "It failed"


class Mode(NamedTuple):
    """How a language model is asked: under the grammar or not, with plan cases or without."""

    grammar: bool
    cases: bool


#: As it is served first; those of random weights, which write no plan without a grammar.
MODES = (Mode(True, True), Mode(True, False), Mode(False, True), Mode(False, False))
SERVED, BOUND = MODES[0], MODES[:2]


@dataclass(frozen=True, slots=True)
class Asking:
    """Questions with their plan cases in a store.

    Attributes:
        questions: What is asked.
        store: The plan cases.
        examples: How many of them a prompt shows.
        together: How many questions are decoded at once.
        seed: Of the tools that are removed.
    """

    questions: QuestionSet
    store: CaseStore
    examples: int
    together: int = TOGETHER
    seed: int = 0

    def of_model(self, model: LanguageModel, mode: Mode) -> dict[str, Any]:
        """Ask a language model; with the grammar off, with a needed tool removed too."""
        planner = ModelPlanner(
            model,
            plan_cases=self.store if mode.cases else None,
            examples=self.examples,
            seconds=SECONDS,
            batch=self.together,
            constrained=mode.grammar,
        )
        return self.of(planner, removal=not mode.grammar)

    def of(self, planner: Planner, *, removal: bool = False) -> dict[str, Any]:
        """Ask a planner, and return its figures, JSON-plain.

        A plan that a fallback gave, or that is not valid, is wrong in everything: no planner
        borrows another's accuracy.

        Args:
            planner: The planner.
            removal: Measure whether it keeps to the tools that are left when one is removed.
        """
        name = planner.name
        found = evaluate(
            self.questions.items,
            {name: planner},
            removal={name: planner} if removal else None,
            seed=self.seed,
        )
        outcomes, figures = found.outcomes[name], found.figures[name]
        _check_worked(name, outcomes)
        verdicts = [
            o.verdict if o.own else replace(o.verdict, predicted="", tools=False, arguments=False)
            for o in outcomes
        ]
        low, high = wilson(sum(verdict.tools for verdict in verdicts), len(verdicts))

        def figure(called: str, digits: int = 1) -> float | None:
            value = figures[called].value
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
    """Yield the questions with their plan cases in a store, which is closed in the end."""
    with plan_store(questions.cases, UncachedQuestions(encoder)) as store:
        yield Asking(questions, store, examples, together, seed)


def _check_worked(name: str, outcomes: Sequence[Outcome]) -> None:
    """Refuse figures of a planner that did not run: they would be kept, and look like a result."""
    failed = [o.answered.error for o in outcomes if o.answered.error]
    failed += [o.result.fallback for o in outcomes if o.result and FAILED in o.result.fallback]
    if failed:
        raise InputError(
            f"{len(failed)} of {len(outcomes)} questions were not answered by {name}, the first "
            f"since: {failed[0]} Run the same command again; nothing of this was kept."
        )


@dataclass(frozen=True, slots=True)
class RowLines:
    """Measures rows, each planner and mode once: the trained planner, and what it has to beat.

    Attributes:
        material: The domain.
        work: Trains, and keeps figures.
        start: What rows are trained from.
        examples: Plan cases in a prompt.
        seed: Of random weights, and of the tools that are removed.
    """

    material: Material
    work: Workplace
    start: Start
    examples: int
    seed: int

    def of(self, row: Row) -> list[Line]:
        """Return a row's lines; of one that cannot be trained, one that says why."""
        head = (row.table, row.name, row.questions)
        if row.training is None:
            return [line(*head, TRAINED, note=row.note)]
        made = self.work.trained(row.training, self.start)

        # Loaded when one of them is asked, and not where all figures were kept.
        @cache
        def trained() -> LanguageModel:
            from casewright.planner.language_model import load_language_model

            return load_language_model(made.folder)

        @cache
        def drawn() -> LanguageModel:
            return random_twin(trained(), self.seed)

        def asked(mode: Mode, name: str, *, own: bool) -> dict[str, Any]:
            identity = {
                **row.questions.identity,
                "seed": self.seed,
                "model": name,
                "grammar": mode.grammar,
                "examples": self.examples if mode.cases else 0,
            }
            if not mode.cases:
                # Rows that differ in their plan cases alone share what is measured without any.
                del identity["cases"]

            def measure() -> dict[str, Any]:
                with self._open(row) as asking:
                    return asking.of_model(trained() if own else drawn(), mode)

            return self.work.kept(name.rpartition("-")[0], identity, measure)

        def by_cases() -> dict[str, Any]:
            with self._open(row) as asking:
                return asking.of(CasePlanner(asking.store))

        told: dict[str, Any] = {"paper": row.paper, "trained": made, "note": row.note}
        own = [asked(mode, made.folder.name, own=True) for mode in MODES]
        random = f"random-{self.seed}-{self.start.identity}"
        others = [asked(mode, random, own=False) for mode in BOUND]
        identity = {**row.questions.identity, "seed": self.seed}
        return [
            *(line(*head, TRAINED, f, mode, **told) for f, mode in zip(own, MODES, strict=True)),
            *(line(*head, RANDOM, f, mode) for f, mode in zip(others, BOUND, strict=True)),
            line(*head, CASES, self.work.kept("case", identity, by_cases)),
        ]

    def _open(self, row: Row) -> AbstractContextManager[Asking]:
        return open_asking(row.questions, self.material.encoder, self.examples, seed=self.seed)


def line(
    table: str,
    name: str,
    questions: QuestionSet,
    planner: str,
    found: Mapping[str, Any] | None = None,
    mode: Mode | None = None,
    *,
    label: str = "all",
    paper: Published = NOTHING,
    trained: Trained | None = None,
    note: str = "",
) -> Line:
    """Return a line with all columns; what it has no figure for is ``None``.

    Args:
        table: The table.
        name: The row's.
        questions: What was asked.
        planner: Who was.
        found: As ``Asking.of`` returns it.
        mode: How a language model was asked.
        label: A class, or ``all``.
        paper: The paper's figures, shown where the line is as it is served, and for instruction
            following.
        trained: Of what training.
        note: What must be known to read it.
    """
    made: Line = dict.fromkeys(COLUMNS)
    made |= {"table": table, "row": name, "questions": questions.name, "planner": planner}
    made |= {"class": label, "count": len(questions.items), "note": note or None}
    if mode is not None:
        on, cases = ("on" if part else "off" for part in mode)
        made |= {"grammar": on, "plan cases": cases}
    if found is not None:
        figures = next(one for one in found["classes"] if one["class"] == label)
        if label == "all":
            figures = {**figures, **found}
        made |= {name: figures[name] for name in COLUMNS if name in figures}
    if trained is not None:
        metrics = trained.metrics
        # A training that was resumed tells the seconds of its last part alone.
        resumed = bool(metrics.get("resumed_after_steps"))
        made |= {
            "examples": metrics.get("examples_training"),
            "tokens": metrics.get("tokens_training"),
            "steps": metrics.get("steps"),
            "seconds": None if resumed else metrics.get("seconds_training"),
        }
    if mode is None or mode.cases:
        made["published"] = paper.told(label, grammar=mode is None or mode.grammar)
    return made
