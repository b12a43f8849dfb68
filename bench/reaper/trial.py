"""What a run of the bench is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from casewright.errors import InputError
from casewright.stores.paths import cache_folder

#: The tables by the names that ``--table`` takes: the paper's three, and its generalisation
#: studies, which it tells of in words.
FIRST, SECOND, THIRD, STUDIES = "1", "2", "3", "studies"
TABLES = (FIRST, SECOND, THIRD, STUDIES)
#: A class of the shop that no other is like; see ``studies``.
LEFT_OUT_TOOL = "customer_support"


def default_folder() -> Path:
    """Return where trainings and figures are kept where nobody says."""
    return cache_folder() / "bench-reaper"


@dataclass(frozen=True, slots=True)
class ReaperTrial:
    """A run of the bench; it can be pickled, for trainings in processes of their own.

    Attributes:
        tables: Which of ``TABLES``.
        folder: Trainings and figures are kept there, each under a hash of what it is of, so that a
            run goes on where another one stopped.
        recipe: Of all trainings: a file, or the name of one that ships.
        steps: Optimiser steps of each training; the recipe's by default.
        start: Folder of a model that all trainings start from, instead of the recipe's; it must
            not have been trained with the domain's tools.
        planner: Folder of the planner of Table 1; the one that ships by default.
        base: Folder of the model that it was before the LoRA stage; without it, no row.
        instructions: Folder of generic instructions, for the rows with a share of them.
        tool: The tool that studies leave out, and the class that it alone answers.
        limit: Most questions of a test set.
        jobs: Trainings at once, each in a process.
        seed: Of every draw that the recipe does not make.

    Raises:
        InputError: A table that there is not, or a number that is too small.
    """

    tables: tuple[str, ...] = TABLES
    folder: Path = field(default_factory=default_folder)
    recipe: str = "reaper"
    steps: int | None = None
    start: Path | None = None
    planner: Path | None = None
    base: Path | None = None
    instructions: Path | None = None
    tool: str = LEFT_OUT_TOOL
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
