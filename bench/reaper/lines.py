"""The lines of a row: the trained planner in all modes, and beside it what it has to beat."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.bench.reaper.asking import BOUND, MODES, Asking, Mode, open_asking, whole
from casewright.bench.reaper.material import Material
from casewright.bench.reaper.paper import NOTHING, Published
from casewright.bench.reaper.random_weights import random_twin
from casewright.bench.reaper.row import QuestionSet, Row
from casewright.bench.reaper.workplace import Start, Trained, Workplace
from casewright.planner.shipped import PRIOR, SPANS

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

Line = dict[str, Any]
TRAINED, RANDOM, CASES = "trained", "random weights", "case planner"
#: The columns of every line, in order; the first five say what it is of.
COLUMNS = (
    "table",
    "row",
    "questions",
    "planner",
    "class",
    "grammar",
    "plan cases",
    "aids",
    "count",
    "tools",
    "low",
    "high",
    "arguments",
    "arguments_paper",
    "f1",
    "only_provided",
    "invalid",
    "ms_p50",
    "paper",
    "examples",
    "tokens",
    "steps",
    "seconds",
    "note",
)


@dataclass
class RowLines:
    """Measures rows, each planner and mode once.

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
        """Return a row's lines; of one that cannot be trained, one that says why.

        Raises:
            InputError: It cannot be trained.
            DependencyError: A package that training needs is not installed.
        """
        if row.training is None:
            return [line(row.table, row.name, row.questions, TRAINED, note=row.note)]
        trained = self.work.trained(row.training, self.start)
        models = _Models(trained.folder, self.seed)
        made = [
            line(
                *(row.table, row.name, row.questions, TRAINED),
                found=self._asked(row, mode, trained.folder.name, models),
                mode=mode,
                paper=row.paper,
                trained=trained,
                note=row.note,
            )
            for mode in MODES
        ]
        for mode in BOUND:
            found = self._asked(row, mode, f"random-{self.seed}-{self.start.identity}", models)
            made.append(line(*(row.table, row.name, row.questions, RANDOM), found=found, mode=mode))
        found = self.work.kept("case", self._identity(row), lambda: self._by_cases(row))
        made.append(line(row.table, row.name, row.questions, CASES, found=found))
        return made

    def _asked(self, row: Row, mode: Mode, model: str, models: _Models) -> dict[str, Any]:
        identity = {
            **self._identity(row, cases=mode.cases),
            "model": model,
            "grammar": mode.grammar,
            "examples": self.examples if mode.cases else 0,
            "aids": [PRIOR, SPANS] if mode.aids else None,
        }
        name = model.rpartition("-")[0]
        return self.work.kept(name, identity, lambda: self._by_model(row, mode, model, models))

    def _by_model(self, row: Row, mode: Mode, name: str, models: _Models) -> dict[str, Any]:
        model = models.trained if name == models.folder.name else models.random
        with self._open(row) as asking:
            return asking.of_model(model, mode)

    def _by_cases(self, row: Row) -> dict[str, Any]:
        with self._open(row) as asking:
            return asking.of_cases()

    def _open(self, row: Row) -> AbstractContextManager[Asking]:
        encoder = self.material.encoder
        return open_asking(row.questions, encoder, self.examples, seed=self.seed)

    def _identity(self, row: Row, *, cases: bool = True) -> dict[str, Any]:
        found = {**row.questions.identity, "seed": self.seed}
        if not cases:
            # Rows that differ in their plan cases alone share what is measured without any.
            del found["cases"]
        return found


class _Models:
    """The models of one row, loaded when one of them is asked."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self._seed = seed

    @cached_property
    def trained(self) -> LanguageModel:
        from casewright.planner.language_model import load_language_model

        return load_language_model(self.folder)

    @cached_property
    def random(self) -> LanguageModel:
        return random_twin(self.trained, self._seed)


def line(
    table: str,
    name: str,
    questions: QuestionSet,
    planner: str,
    *,
    found: Mapping[str, Any] | None = None,
    mode: Mode | None = None,
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
        paper: The paper's figures, shown where the line is over all classes as it is served, and
            for instruction following.
        trained: Of what training.
        note: What must be known to read it.
    """
    made: Line = dict.fromkeys(COLUMNS)
    made |= {"table": table, "row": name, "questions": questions.name, "planner": planner}
    made |= {"class": label, "count": len(questions.items), "note": note or None}
    if mode is not None:
        made |= {"grammar": _on(mode.grammar), "plan cases": _on(mode.cases)}
        made["aids"] = _on(mode.aids)
    if found is not None:
        if label == "all":
            figures = whole(dict(found))
        else:
            figures = next(one for one in found["classes"] if one["class"] == label)
        made |= {name: figures[name] for name in COLUMNS if name in figures}
    if trained is not None:
        made |= _training(trained)
    if label == "all":
        made["paper"] = paper.told(grammar=mode is None or mode.grammar)
    return made


def _training(trained: Trained) -> Line:
    metrics = trained.metrics
    # A training that was resumed tells the seconds of its last part alone.
    resumed = bool(metrics.get("resumed_after_steps"))
    return {
        "examples": metrics.get("examples_training"),
        "tokens": metrics.get("tokens_training"),
        "steps": metrics.get("steps"),
        "seconds": None if resumed else metrics.get("seconds_training"),
    }


def _on(value: bool) -> str:
    return "on" if value else "off"
