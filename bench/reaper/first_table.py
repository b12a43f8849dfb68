"""Table 1: the shipped planner by class, beside what it came from and what it has to beat."""

from __future__ import annotations

from collections.abc import Mapping
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
from casewright.bench.reaper.trial import (
    ENSEMBLE,
    FIRST,
    NOTHING,
    REAPER,
    UNTUNED,
    Published,
    ReaperTrial,
)
from casewright.bench.reaper.workplace import Workplace, fingerprint
from casewright.planner import CasePlanner
from casewright.planner.language_model.card import read_card
from casewright.planner.language_model.source import find_source
from casewright.planner.named import CLASSIFIERS, make_planner
from casewright.planner.plan_cases import EXAMPLES
from casewright.planner.shipped import is_shipped, shipped_examples, shipped_planner
from casewright.stores.encoders.cache import UncachedQuestions

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Networks whose weights are drawn; how good one is by luck differs from seed to seed.
SEEDS = 3
SHIPPED, BASE = "shipped planner", "its base, not tuned"
CASES_READER = "case planner with its reader"


@dataclass(frozen=True, slots=True)
class FirstTable:
    """Measures Table 1 on the frozen questions.

    Attributes:
        trial: Of the run.
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
    def metrics(self) -> dict[str, Any]:
        """What the planner's card tells of its training; empty without a card."""
        return dict((read_card(self.folder) or {}).get("metrics", {}))

    def lines(self) -> list[Line]:
        """Return the lines: of each planner its classes as it is served, and every mode."""
        from casewright.planner.language_model import load_language_model

        questions = QuestionSet(FROZEN, self.material.frozen, self.material.queries)
        questions = questions.limited(self.trial.limit, self.trial.seed)
        encoder, seed = self.material.encoder, self.trial.seed
        # One at a time: a plan's own milliseconds are among the figures.
        with open_asking(questions, encoder, self.examples, together=1, seed=seed) as asking:
            tuned = load_language_model(self.folder)
            made = self._of_model(asking, SHIPPED, self.folder, tuned, REAPER)
            if self.base is None:
                note = "the planner is no adapter, which would name its base"
                made.append(line(FIRST, BASE, questions, BASE, note=note))
            else:
                base = load_language_model(self.base)
                made += self._of_model(asking, BASE, self.base, base, UNTUNED)
            for number in range(seed, seed + SEEDS):
                twin, name = random_twin(tuned, number), f"{RANDOM}, seed {number}"
                for mode in BOUND:
                    found = self._kept(asking, name, self.folder, mode, twin)
                    made.append(line(FIRST, name, questions, RANDOM, found, mode))
            made += self._of_others(asking)
        return made

    def _of_model(
        self,
        asking: Asking,
        name: str,
        folder: Path,
        model: LanguageModel,
        paper: Published,
    ) -> list[Line]:
        made: list[Line] = []
        for mode in MODES:
            found = self._kept(asking, name, folder, mode, model)
            own = _lines(asking, name, found, mode, paper)
            made += own if mode == SERVED else own[-1:]
        return made

    def _of_others(self, asking: Asking) -> list[Line]:
        material = self.material
        reader = material.domain.open_reader()
        planners: dict[str, Any] = {CASES: lambda: CasePlanner(asking.store)}
        if reader is not None:
            planners = {CASES_READER: lambda: CasePlanner(asking.store, reader), **planners}
        if find_spec("sklearn") is not None:
            planners[CLASSIFIERS] = lambda: make_planner(
                CLASSIFIERS,
                asking.store,
                queries=lambda: material.queries,
                encoder=UncachedQuestions(material.encoder),
            )
        return [
            one
            for name, make in planners.items()
            for one in _lines(
                asking, name, asking.of(make()), None, ENSEMBLE if name == CLASSIFIERS else NOTHING
            )
        ]

    def _kept(
        self,
        asking: Asking,
        name: str,
        folder: Path,
        mode: Mode,
        model: LanguageModel,
    ) -> dict[str, Any]:
        identity = {
            **asking.questions.identity,
            "planner": name,
            "model": fingerprint(folder),
            "grammar": mode.grammar,
            "examples": self.examples if mode.cases else 0,
            "together": asking.together,
            "seed": asking.seed,
        }
        slug = name.replace(" ", "-").replace(",", "")
        return self.work.kept(slug, identity, lambda: asking.of_model(model, mode))


def _lines(
    asking: Asking, name: str, found: Mapping[str, Any], mode: Mode | None, paper: Published
) -> list[Line]:
    """Return a line a class, and last that of all."""
    return [
        line(FIRST, name, asking.questions, name, found, mode, label=one["class"], paper=paper)
        for one in found["classes"]
    ]
