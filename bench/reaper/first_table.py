"""Table 1: the shipped planner by class, beside what it came from and what it has to beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.bench.planner import UncachedQuestions
from casewright.bench.reaper.asking import BOUND, MODES, SERVED, Asking, Mode, open_asking
from casewright.bench.reaper.lines import CASES, RANDOM, Line, line
from casewright.bench.reaper.material import Material
from casewright.bench.reaper.paper import NOTHING, WHOLE, Published
from casewright.bench.reaper.random_weights import random_twin
from casewright.bench.reaper.row import FROZEN, QuestionSet
from casewright.bench.reaper.trial import FIRST, ReaperTrial
from casewright.bench.reaper.workplace import Workplace, fingerprint
from casewright.planner import CasePlanner
from casewright.planner.language_model.card import CARD, read_card
from casewright.planner.plan_cases import EXAMPLES
from casewright.planner.shipped import (
    PRIOR,
    SPANS,
    load_shipped,
    shipped_examples,
    shipped_planner,
)
from casewright.serve.planners import CLASSIFIERS, make_planner
from casewright.serve.session import open_reader

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel
    from casewright.planner.numpy_model import NumpyModel

#: Networks whose weights are drawn; how good one is by luck differs from seed to seed.
SEEDS = 3
SHIPPED, BASE = "shipped planner", "its base before LoRA"
CASES_READER = "case planner with its reader"


@dataclass(frozen=True, slots=True)
class FirstTable:
    """Measures Table 1 on the frozen questions.

    Attributes:
        material: The domain.
        work: Keeps figures.
        folder: Of the planner.
        base: Of the model before the LoRA stage, if it is at hand.
        examples: Plan cases in a prompt.
        limit: Most questions.
        seed: Of random weights, and of the tools that are removed.
    """

    material: Material
    work: Workplace
    folder: Path
    base: Path | None
    examples: int
    limit: int
    seed: int

    @classmethod
    def of(cls, trial: ReaperTrial, material: Material, work: Workplace) -> FirstTable:
        """Return the table of a trial.

        Raises:
            InputError: The shipped planner is not there, and no other is given.
        """
        folder = trial.planner if trial.planner is not None else shipped_planner()
        told = shipped_examples(folder) if (folder / CARD).is_file() else EXAMPLES
        return cls(material, work, folder, trial.base, told, trial.limit, trial.seed)

    @property
    def metrics(self) -> dict[str, Any]:
        """What the planner's card tells of its training; empty without a card."""
        return dict((read_card(self.folder) or {}).get("metrics", {}))

    def lines(self) -> list[Line]:
        """Return the lines: of each planner its classes as it is served, and every mode.

        Raises:
            InputError: A model cannot be loaded.
        """
        questions = QuestionSet(FROZEN, self.material.frozen, self.material.queries)
        questions = questions.limited(self.limit, self.seed)
        encoder = self.material.encoder
        # One at a time: a plan's own milliseconds are among the figures.
        opened = open_asking(questions, encoder, self.examples, together=1, seed=self.seed)
        with opened as asking:
            made = self._of_model(asking, SHIPPED, self.folder, _served(self.folder), WHOLE)
            if self.base is None:
                note = "give it by --base FOLDER"
                made.append(line(FIRST, BASE, questions, BASE, note=note))
            else:
                made += self._of_model(asking, BASE, self.base, _load(self.base), NOTHING)
            torched = _load(self.folder)
            for seed in range(self.seed, self.seed + SEEDS):
                made += self._of_random(asking, torched, seed)
            made += self._of_others(asking)
        return made

    def _of_model(
        self,
        asking: Asking,
        name: str,
        folder: Path,
        model: LanguageModel | NumpyModel,
        paper: Published,
    ) -> list[Line]:
        made: list[Line] = []
        for mode in MODES:
            found = self._kept(asking, name, folder, mode, model)
            if mode == SERVED:
                made += _classes(asking, name, found, mode)
            made.append(
                line(FIRST, name, asking.questions, name, found=found, mode=mode, paper=paper)
            )
        return made

    def _of_random(self, asking: Asking, model: LanguageModel, seed: int) -> list[Line]:
        name = f"{RANDOM}, seed {seed}"
        twin = random_twin(model, seed)
        return [
            line(
                *(FIRST, name, asking.questions, RANDOM),
                found=self._kept(asking, name, self.folder, mode, twin),
                mode=mode,
            )
            for mode in BOUND
        ]

    def _of_others(self, asking: Asking) -> list[Line]:
        made: list[Line] = []
        material = self.material
        reader = open_reader(material.domain)
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
        for name, make in planners.items():
            found = asking.of(make())
            made += _classes(asking, name, found, None)
            made.append(line(FIRST, name, asking.questions, name, found=found))
        return made

    def _kept(
        self,
        asking: Asking,
        name: str,
        folder: Path,
        mode: Mode,
        model: LanguageModel | NumpyModel,
    ) -> dict[str, Any]:
        identity = {
            **asking.questions.identity,
            "planner": name,
            "model": fingerprint(folder),
            "grammar": mode.grammar,
            "examples": self.examples if mode.cases else 0,
            "aids": [PRIOR, SPANS] if mode.aids else None,
            "together": asking.together,
            "seed": asking.seed,
        }
        slug = name.replace(" ", "-").replace(",", "")
        return self.work.kept(slug, identity, lambda: asking.of_model(model, mode))


def _served(folder: Path) -> LanguageModel | NumpyModel:
    """Load a model as the planner that ships is loaded: its milliseconds are those of serving."""
    return load_shipped(folder) if (folder / CARD).is_file() else _load(folder)


def _load(folder: Path) -> LanguageModel:
    from casewright.planner.language_model import load_language_model

    return load_language_model(folder)


def _classes(asking: Asking, name: str, found: Mapping[str, Any], mode: Mode | None) -> list[Line]:
    labels = [one["class"] for one in found["classes"][:-1]]
    return [
        line(FIRST, name, asking.questions, name, found=found, mode=mode, label=label)
        for label in labels
    ]
