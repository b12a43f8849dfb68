"""The lines of the tables: planners' figures on a set of questions, in four modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from casewright.bench.models import random_twin
from casewright.bench.reaper.rows import (
    ENSEMBLE,
    FIRST,
    FROZEN,
    NOTHING,
    REAPER,
    UNTUNED,
    Material,
    Published,
    QuestionSet,
    ReaperTrial,
    Row,
)
from casewright.bench.reaper.workplace import Trained, Workplace, digest, fingerprint
from casewright.errors import InputError
from casewright.finetune.evaluation import as_row, evaluate, score_classes
from casewright.finetune.evaluation.intervals import wilson
from casewright.planner import CasePlanner, ModelPlanner, Planner, plan_store
from casewright.planner.language_model.card import read_card
from casewright.planner.language_model.source import find_source
from casewright.planner.named import CLASSIFIERS, make_planner
from casewright.planner.plan_cases import EXAMPLES
from casewright.planner.shipped import is_shipped, shipped_examples, shipped_planner
from casewright.stores import CaseStore
from casewright.stores.encoders.cache import UncachedQuestions

if TYPE_CHECKING:
    from casewright.finetune.recipe.training_section import ModelSection
    from casewright.planner.language_model import LanguageModel

Line = dict[str, Any]
TRAINED, RANDOM, CASES = "trained", "random weights", "case planner"
#: The columns of every line, in order; the first five identify it.
COLUMNS = (
    *("table", "row", "questions", "planner", "class", "grammar", "plan cases"),
    *("count", "tools", "low", "high", "arguments", "arguments_paper", "f1", "only_provided"),
    *("invalid", "ms_p50", "published", "examples", "tokens", "steps", "seconds", "note"),
)
#: Seconds until a batch times out, on slow machines too: figures must not depend on the machine.
SECONDS = 600.0
#: Questions of a batch, unless a plan's own time is measured.
BATCH = 16
#: The start of a result's ``fallback`` if the planner raised: nothing was measured.
FAILED = "It failed"


class Mode(NamedTuple):
    """A mode of a language model: with the grammar or without, with plan cases or without."""

    grammar: bool
    cases: bool


#: The mode as served comes first; random weights write no plan without a grammar.
MODES = (Mode(True, True), Mode(True, False), Mode(False, True), Mode(False, False))
SERVED, BOUND = MODES[0], MODES[:2]


@dataclass(frozen=True, slots=True)
class Asking:
    """Questions with their plan cases in a store; ``examples`` of them are in a prompt."""

    questions: QuestionSet
    store: CaseStore
    examples: int
    batch: int = BATCH
    seed: int = 0

    def of_model(
        self,
        work: Workplace,
        name: str,
        identity: Mapping[str, Any],
        mode: Mode,
        model: Callable[[], LanguageModel],
    ) -> dict[str, Any]:
        """Return a language model's figures, cached under ``name`` and the weights' ``identity``.

        Without the grammar, they are also measured with a needed tool removed.
        """
        key = {
            **self.questions.identity,
            **identity,
            "grammar": mode.grammar,
            "examples": self.examples if mode.cases else 0,
            "together": self.batch,
            "seed": self.seed,
        }
        if not mode.cases:
            # Rows that differ only in their plan cases share the figures without any.
            del key["cases"]

        def measure() -> dict[str, Any]:
            planner = ModelPlanner(
                model(),
                plan_cases=self.store if mode.cases else None,
                examples=self.examples,
                seconds=SECONDS,
                batch=self.batch,
                constrained=mode.grammar,
            )
            return self.of(planner, removal=not mode.grammar)

        return work.cached(name, key, measure)

    def of(self, planner: Planner, *, removal: bool = False) -> dict[str, Any]:
        """Return a planner's figures, JSON-plain; a fallback's or invalid plan counts as wrong.

        Args:
            removal: Also measure whether it keeps to the other tools when one is removed.

        Raises:
            InputError: The planner failed on a question.
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


@dataclass(frozen=True, slots=True)
class RowLines:
    """The lines of rows of a training: the trained planner and its baselines."""

    material: Material
    work: Workplace
    model: ModelSection
    examples: int
    seed: int

    def of(self, row: Row) -> list[Line]:
        """Return a row's lines; one line with the reason if it cannot be trained."""
        head = (row.table, row.name, row.questions)
        if row.training is None:
            return [line(*head, TRAINED, note=row.note)]
        trained = self.work.trained(row.training)

        # Loaded only if some figures are not cached.
        @cache
        def trained_model() -> LanguageModel:
            from casewright.planner.language_model import load_language_model

            return load_language_model(trained.folder)

        random_model = cache(lambda: random_twin(trained_model(), self.seed))
        # All rows have one base, but for new ones.
        base = trained.folder.name if self.model.made else self.model.base
        random = f"random-{self.seed}-{digest(base)}"
        lines = []
        encoder = UncachedQuestions(self.material.encoder)
        with plan_store(row.questions.cases, encoder) as store:
            asking = Asking(row.questions, store, self.examples, seed=self.seed)
            remarks: dict[str, Any] = {"paper": row.paper, "trained": trained, "note": row.note}
            for planner, name, modes, model, more in (
                (TRAINED, trained.folder.name, MODES, trained_model, remarks),
                (RANDOM, random, BOUND, random_model, {}),
            ):
                file, identity = name.rpartition("-")[0], {"model": name}
                for mode in modes:
                    figures = asking.of_model(self.work, file, identity, mode, model)
                    lines.append(line(*head, planner, figures, mode, **more))
            cases, key = CasePlanner(store), {**row.questions.identity, "seed": self.seed}
            figures = self.work.cached("case", key, lambda: asking.of(cases))
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
    """Return a line with all columns, ``None`` where it has no figure.

    The paper's figures are shown for the mode as served, and for instruction following.
    """
    head = {"table": table, "row": row, "questions": questions.name, "planner": planner}
    cells: Line = dict.fromkeys(COLUMNS) | head
    cells |= {"class": label, "count": len(questions.items), "note": note or None}
    if mode is not None:
        on, cases = ("on" if part else "off" for part in mode)
        cells |= {"grammar": on, "plan cases": cases}
    if figures is not None:
        score = next(score for score in figures["classes"] if score["class"] == label)
        score = {**score, **figures} if label == "all" else score
        cells |= {name: score[name] for name in COLUMNS if name in score}
    if trained is not None:
        metrics = trained.metrics
        # The card of a resumed training has the seconds of its last part alone.
        resumed = bool(metrics.get("resumed_after_steps"))
        cells |= {
            "examples": metrics.get("examples_training"),
            "tokens": metrics.get("tokens_training"),
            "steps": metrics.get("steps"),
            "seconds": None if resumed else metrics.get("seconds_training"),
        }
    if mode is None or mode.cases:
        cells["published"] = paper.cell(label, grammar=mode is None or mode.grammar)
    return cells


#: Random networks in Table 1: their accuracy differs from seed to seed.
SEEDS = 3
SHIPPED, BASE = "shipped planner", "its base, not tuned"


@dataclass(frozen=True, slots=True)
class FirstTable:
    """Table 1, on the frozen questions: the shipped planner by class, and baselines.

    Attributes:
        folder: The planner's.
        base: The base model's folder; ``None`` if the planner is no adapter.
    """

    trial: ReaperTrial
    material: Material
    work: Workplace
    folder: Path
    base: Path | None
    examples: int

    @classmethod
    def of(cls, trial: ReaperTrial, material: Material, work: Workplace) -> FirstTable:
        """Return the table of a trial."""
        folder = trial.planner if trial.planner is not None else shipped_planner()
        source = find_source(folder, None)
        base = None if source.adapter is None else source.base
        examples = shipped_examples(folder) if is_shipped(folder) else EXAMPLES
        return cls(trial, material, work, folder, base, examples)

    @property
    def settings(self) -> dict[str, Any]:
        """The planner's settings in the report, with the metrics of its card."""
        metrics = dict((read_card(self.folder) or {}).get("metrics", {}))
        return {"shipped": metrics, "shipped_plan_cases_in_a_prompt": self.examples}

    def lines(self) -> list[Line]:
        """Return each planner's lines: every mode, and every class in the mode as served."""
        from casewright.planner.language_model import load_language_model

        questions = QuestionSet(FROZEN, self.material.frozen, self.material.queries)
        questions = questions.limited(self.trial.limit, self.trial.seed)
        encoder, seed = UncachedQuestions(self.material.encoder), self.trial.seed
        with plan_store(questions.cases, encoder) as store:
            # Not in batches: a plan's own milliseconds are among the figures.
            asking = Asking(questions, store, self.examples, batch=1, seed=seed)
            tuned = load_language_model(self.folder)
            models = [(SHIPPED, self.folder, tuned, REAPER)]
            if self.base is not None:
                models.append((BASE, self.base, load_language_model(self.base), UNTUNED))
            lines = []
            for name, folder, model, paper in models:
                for mode in MODES:
                    figures = self._of_model(asking, name, folder, mode, model)
                    classes = figures["classes"] if mode == SERVED else figures["classes"][-1:]
                    labels = [score["class"] for score in classes]
                    head = (FIRST, name, questions, name, figures, mode)
                    lines += [line(*head, label=label, paper=paper) for label in labels]
            if self.base is None:
                note = "the planner is no adapter, which would name its base"
                lines.append(line(FIRST, BASE, questions, BASE, note=note))
            for number in range(seed, seed + SEEDS):
                twin, name = random_twin(tuned, number), f"{RANDOM}, seed {number}"
                for mode in BOUND:
                    figures = self._of_model(asking, name, self.folder, mode, twin)
                    lines.append(line(FIRST, name, questions, RANDOM, figures, mode))
            for name, planner in self._others(asking).items():
                figures, paper = asking.of(planner), ENSEMBLE if name == CLASSIFIERS else NOTHING
                lines += [
                    line(FIRST, name, questions, name, figures, label=score["class"], paper=paper)
                    for score in figures["classes"]
                ]
        return lines

    def _others(self, asking: Asking) -> dict[str, Planner]:
        """Return the case planner with its reader and without, and the classifiers."""
        planners: dict[str, Planner] = {}
        if (reader := self.material.domain.open_reader()) is not None:
            planners["case planner with its reader"] = CasePlanner(asking.store, reader)
        planners[CASES] = CasePlanner(asking.store)
        if find_spec("sklearn") is not None:
            planners[CLASSIFIERS] = make_planner(
                CLASSIFIERS,
                asking.store,
                queries=lambda: self.material.queries,
                encoder=UncachedQuestions(self.material.encoder),
            )
        return planners

    def _of_model(
        self, asking: Asking, name: str, folder: Path, mode: Mode, model: LanguageModel
    ) -> dict[str, Any]:
        identity = {"planner": name, "model": fingerprint(folder)}
        slug = name.replace(" ", "-").replace(",", "")
        return asking.of_model(self.work, slug, identity, mode, lambda: model)
