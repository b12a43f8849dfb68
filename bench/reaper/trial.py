"""The settings of a run of the bench, and REAPER's own figures (Joshi et al. 2024, Tables 1 to 3).

The paper's planner is a Mistral-7B on other data, so its figures are no targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from casewright.bench.published import published
from casewright.errors import InputError
from casewright.stores.paths import cache_folder

#: The tables by the names that ``--table`` takes: the paper's three, and its generalisation
#: studies, which the paper describes in words.
FIRST, SECOND, THIRD, STUDIES = "1", "2", "3", "studies"
TABLES = (FIRST, SECOND, THIRD, STUDIES)


@dataclass(frozen=True, slots=True)
class ReaperTrial:
    """The options of the command; it can be pickled, for processes of their own.

    Trainings and figures are kept in ``folder``, each under a hash of its settings, so that a run
    continues where another one stopped.

    Raises:
        InputError: A table does not exist, or a number is too small.
    """

    tables: tuple[str, ...] = TABLES
    folder: Path = field(default_factory=lambda: cache_folder() / "bench-reaper")
    recipe: str = "reaper"
    steps: int | None = None
    start: Path | None = None
    planner: Path | None = None
    instructions: Path | None = None
    #: No other class of the shop resembles it.
    tool: str = "customer_support"
    limit: int = 100
    jobs: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        known = f"Tables are: {', '.join(TABLES)}."
        if wrong := [name for name in self.tables if name not in TABLES]:
            raise InputError(f"There is no table {wrong[0]!r}. {known}")
        if not self.tables:
            raise InputError(f"No table is asked for. {known}")
        if self.instructions is not None and not self.instructions.is_dir():
            raise InputError(
                f"--instructions {self.instructions} is no folder. Give one with generic "
                "instructions."
            )
        for name, value in (("limit", self.limit), ("jobs", self.jobs)):
            if value < 1:
                raise InputError(f"--{name} is {value}. Give 1 at least.")


@dataclass(frozen=True, slots=True)
class Published:
    """The paper's figures of one row.

    Attributes:
        tools: Share of plans with the right tools.
        arguments_paper: Share with every argument right too, of the plans that the paper counts.
        only_provided: Share that follows a changed list of tools.
        ms_p50: Milliseconds a plan.
        trained: The training data, in words.
        classes: By class: precision, recall, F1, and the training data of the class.
    """

    tools: float | None = None
    arguments_paper: float | None = None
    only_provided: float | None = None
    ms_p50: float | None = None
    trained: str = ""
    classes: Mapping[str, tuple[float, float, float, str]] = field(default_factory=dict)

    def told(self, label: str = "all", *, grammar: bool = True) -> str | None:
        """Return the figures as a cell of a table; ``None`` where there are none.

        Args:
            label: The line's class, or ``all``.
            grammar: Whether the line has the grammar on: instruction following is measured with
                the grammar off, everything else as the planner is served.
        """
        if label != "all":
            if label not in self.classes or not grammar:
                return None
            precision, recall, f1, trained = self.classes[label]
            return f"precision {precision:g}, recall {recall:g}, f1 {f1:g} ({trained})"
        names = ("tools", "arguments_paper", "ms_p50") if grammar else ("only_provided",)
        values = [(name, getattr(self, name)) for name in names]
        text = ", ".join(f"{name} {value:g}" for name, value in values if value is not None)
        return f"{text} ({self.trained})" if text and self.trained else text or None


_PAPER = published("reaper")
NOTHING = Published()
UNTUNED, ENSEMBLE, REAPER = (
    Published(**_PAPER["table_1"][name]) for name in ("untuned", "ensemble", "reaper")
)
#: Table 2, by the parts that are left out; ``REAPER`` is its first row.
LESS = {name: Published(**figures) for name, figures in _PAPER["table_2"].items()}
#: Table 3, by the share of the generic instructions and the tasks of a query.
MIXED = {
    (float(name.split()[0]), int(name.split()[1])): Published(**figures)
    for name, figures in _PAPER["table_3"].items()
}
