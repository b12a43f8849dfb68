"""The paper's 466 puzzles with their classes, and its ten splits (Marom 2024, section 5)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from casewright.domains.math24.decomposition import Class
from casewright.domains.math24.puzzle import Problem, problem_of
from casewright.errors import InputError

CASES, SPLITS = "cases_466.jsonl", "test_splits_10x30.json"


@dataclass(frozen=True, slots=True)
class Puzzles:
    """Puzzles with their classes.

    Attributes:
        problems: The puzzles.
        classes: Those of each: larger factor, and the places of the pair that makes it.
        splits: For each run the places of its test puzzles.
    """

    problems: Sequence[Problem]
    classes: Sequence[frozenset[Class]]
    splits: Sequence[Sequence[int]]

    def training(self, run: int) -> list[int]:
        """Return the places of a run's training puzzles, which are its cases, too."""
        apart = set(self.splits[run])
        return [place for place in range(len(self.problems)) if place not in apart]


def read_puzzles(folder: Path) -> Puzzles:
    """Read the puzzles and their splits.

    Raises:
        InputError: The folder lacks a file, or it has another form.
    """
    try:
        lines = (folder / CASES).read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines if line.strip()]
        problems = [problem_of(row["problem"]) for row in rows]
        classes = [frozenset((c, i, j) for c, i, j in row["classes"]) for row in rows]
        place = {problem: number for number, problem in enumerate(problems)}
        told = json.loads((folder / SPLITS).read_text(encoding="utf-8"))["splits"]
        splits = [[place[problem_of(test)] for test in split] for split in told]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{folder} does not hold the puzzles of Math-24 as {CASES} and {SPLITS}: "
            f"{type(error).__name__}. Give the folder that has both."
        ) from error
    return Puzzles(problems, classes, splits)
