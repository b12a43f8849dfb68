"""Table 1: the shipped planner by class, beside its base and the baselines."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.bench.models import random_twin
from casewright.bench.reaper.asking import (
    BOUND,
    CASES,
    MODES,
    RANDOM,
    SERVED,
    Asking,
    Line,
    Mode,
    line,
    open_asking,
)
from casewright.bench.reaper.rows import FROZEN, Material, QuestionSet
from casewright.bench.reaper.trial import ENSEMBLE, FIRST, NOTHING, REAPER, UNTUNED, ReaperTrial
from casewright.bench.reaper.workplace import Workplace, fingerprint
from casewright.planner import CasePlanner, Planner
from casewright.planner.language_model.card import read_card
from casewright.planner.language_model.source import find_source
from casewright.planner.named import CLASSIFIERS, make_planner
from casewright.planner.plan_cases import EXAMPLES
from casewright.planner.shipped import is_shipped, shipped_examples, shipped_planner
from casewright.stores.encoders.cache import UncachedQuestions

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Networks whose weights are drawn; their accuracy by luck differs from seed to seed.
SEEDS = 3
SHIPPED, BASE = "shipped planner", "its base, not tuned"


@dataclass(frozen=True, slots=True)
class FirstTable:
    """Measures Table 1 on the frozen questions.

    Attributes:
        trial: The settings of the run.
        material: The domain.
        work: Keeps figures.
        folder: Of the planner.
        base: Of the model that its adapter is for; ``None`` where it is no adapter.
        examples: Plan cases in a prompt.
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
        """The report's settings of the planner; without a card, it has no metrics."""
        metrics = dict((read_card(self.folder) or {}).get("metrics", {}))
        return {"shipped": metrics, "shipped_plan_cases_in_a_prompt": self.examples}

    def lines(self) -> list[Line]:
        """Return the lines: of each planner its classes as it is served, and every mode."""
        from casewright.planner.language_model import load_language_model

        questions = QuestionSet(FROZEN, self.material.frozen, self.material.queries)
        questions = questions.limited(self.trial.limit, self.trial.seed)
        encoder, seed = self.material.encoder, self.trial.seed
        # One question at a time: a plan's own milliseconds are among the figures.
        with open_asking(questions, encoder, self.examples, together=1, seed=seed) as asking:
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
        """Return the baselines: the case planner with its reader and without, the classifiers."""
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
