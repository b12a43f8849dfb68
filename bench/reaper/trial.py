"""What a run of the bench is asked for, and REAPER's own figures.

Joshi et al. 2024, arXiv:2407.18553, Tables 1 to 3. The paper's planner is a LoRA-tuned
Mistral-7B-Instruct-v0.2, its test 600 queries of a shop, the classes alike: another model on other
data, so the figures are no targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from casewright.errors import InputError
from casewright.stores.paths import cache_folder

#: The tables by the names that ``--table`` takes: the paper's three, and its generalisation
#: studies, which it tells of in words.
FIRST, SECOND, THIRD, STUDIES = "1", "2", "3", "studies"
TABLES = (FIRST, SECOND, THIRD, STUDIES)


def default_folder() -> Path:
    """Return where trainings and figures are kept where nobody says."""
    return cache_folder() / "bench-reaper"


@dataclass(frozen=True, slots=True)
class ReaperTrial:
    """A run of the bench, by the command's options; it can be pickled, for processes of their own.

    Trainings and figures are kept in ``folder``, each under a hash of what it is of, so that a run
    goes on where another one stopped.

    Raises:
        InputError: A table that there is not, or a number that is too small.
    """

    tables: tuple[str, ...] = TABLES
    folder: Path = field(default_factory=default_folder)
    recipe: str = "reaper"
    steps: int | None = None
    start: Path | None = None
    planner: Path | None = None
    instructions: Path | None = None
    #: No other class of the shop is like it.
    tool: str = "customer_support"
    limit: int = 100
    jobs: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if wrong := [name for name in self.tables if name not in TABLES]:
            raise InputError(f"There is no table {wrong[0]!r}. Tables are: {', '.join(TABLES)}.")
        if not self.tables:
            raise InputError(f"No table is asked for. Tables are: {', '.join(TABLES)}.")
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
        arguments_paper: And with every argument right, of the plans that it counts.
        only_provided: Share that follows a changed list of tools.
        ms_p50: Milliseconds a plan.
        classes: By the class of a domain like the paper's: precision, recall and F1, and what its
            training had of the class.
        trained: What it was trained on.
    """

    tools: float | None = None
    arguments_paper: float | None = None
    only_provided: float | None = None
    ms_p50: float | None = None
    classes: Mapping[str, tuple[float, float, float, str]] = field(default_factory=dict)
    trained: str = ""

    def told(self, label: str = "all", *, grammar: bool = True) -> str | None:
        """Return the figures as a cell of a table; nothing where there are none.

        Args:
            label: Of a line's class, or ``all``.
            grammar: Of a line with the grammar on: instruction following is measured with it off,
                all else as the planner is served.
        """
        if label != "all":
            if label not in self.classes or not grammar:
                return None
            precision, recall, f1, trained = self.classes[label]
            return f"precision {precision:g}, recall {recall:g}, f1 {f1:g} ({trained})"
        if grammar:
            figures = {name: getattr(self, name) for name in ("tools", "arguments_paper", "ms_p50")}
        else:
            figures = {"only_provided": self.only_provided}
        known = {name: value for name, value in figures.items() if value is not None}
        told = ", ".join(f"{name} {value:g}" for name, value in known.items())
        return f"{told} ({self.trained})" if told and self.trained else told or None


def _by_class(
    *percent: tuple[int, int, int], trained: tuple[int, ...] = ()
) -> dict[str, tuple[float, float, float, str]]:
    names = ("customer_support", "shipment_status", "prod_search", "prod_qna", "review_summary")
    told = [f"{count:,} of the class" for count in trained] or ["not tuned"] * len(percent)
    rows = zip((*names, "no_evidence"), percent, told, strict=True)
    return {name: (p / 100, r / 100, f1 / 100, text) for name, (p, r, f1), text in rows}


NOTHING = Published()
#: Table 1. The time of a plan is the text's.
UNTUNED = Published(
    tools=0.72,
    classes=_by_class(
        (90, 61, 73), (97, 72, 83), (82, 65, 72), (47, 80, 59), (79, 93, 85), (85, 67, 75)
    ),
    trained="not tuned",
)
ENSEMBLE = Published(
    0.94,
    0.88,
    classes=_by_class(
        *((95, 81, 88), (96, 96, 96), (84, 99, 91), (98, 97, 98), (99, 96, 97), (98, 99, 99)),
        trained=(24_621, 16_150, 38_683, 30_813, 9_875, 35_934),
    ),
    trained="156,076 queries",
)
REAPER = Published(
    0.96,
    0.92,
    1.0,
    207.0,
    _by_class(
        *((95, 94, 94), (98, 94, 96), (91, 100, 95), (93, 99, 96), (100, 94, 97), (100, 93, 96)),
        trained=(1_127, 996, 1_289, 1_045, 594, 1_245),
    ),
    "6,296 queries",
)
#: Table 2, by what is taken away; ``REAPER`` is its first row.
LESS = {
    "without Evolve": Published(tools=0.95, only_provided=0.76),
    "without Evolve and DQS": Published(tools=0.87, only_provided=1.0),
    "without Evolve, TEvo and DQS": Published(tools=0.91, only_provided=0.85),
}
#: Table 3, by the share of the generic instructions and the tasks of a query.
MIXED = {
    (0.0, 3): Published(0.92, None, 0.23, trained="19k tasks"),
    (1.0, 0): Published(0.2, None, 0.71, trained="147k instructions"),
    (0.4, 3): Published(0.93, None, 1.0, trained="19k tasks, 60k instructions"),
    (0.5, 3): Published(0.93, None, 1.0, trained="19k tasks, 75k instructions"),
    (0.6, 3): Published(0.9, None, 1.0, trained="19k tasks, 90k instructions"),
    (1.0, 3): Published(0.86, None, 1.0, trained="19k tasks, 147k instructions"),
    (1.0, 4): Published(0.95, None, 1.0, trained="25k tasks, 147k instructions"),
    (1.0, 5): Published(0.94, None, 1.0, trained="32k tasks, 147k instructions"),
}
