"""The rows of Tables 2 and 3: parts of the data taken away, and mixtures (section 4.3)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from casewright.bench.reaper.material import Material
from casewright.bench.reaper.paper import (
    NOTHING,
    WHOLE,
    WITH_INSTRUCTIONS,
    WITHOUT_INSTRUCTIONS,
    Published,
)
from casewright.bench.reaper.row import FROZEN, QuestionSet, Row, Training
from casewright.bench.reaper.trial import SECOND, THIRD
from casewright.errors import InputError
from casewright.finetune.instructions.readers.registry import HUGGING_FACE, READERS
from casewright.finetune.queries.choose import choose_queries
from casewright.finetune.recipe.data_section import DataSection, InstructionPlace

#: Of generic instructions in the whole set. The paper's shares were not to be had; Table 3 here
#: has none, this one and half.
SHARE = 0.2
#: Tasks of a query, planning itself counted, in Table 3 and in every other row; 0 is planning
#: alone.
TASKS, OTHER_TASKS = 3, (0, 4, 5)
_NONE_GIVEN = "no instructions were given (--instructions FOLDER)"


def instruction_places(folder: Path | None) -> tuple[InstructionPlace, ...]:
    """Return the sources of generic instructions that lie in a folder; of none, nothing.

    Raises:
        InputError: The folder holds none.
    """
    if folder is None:
        return ()
    found = tuple(
        InstructionPlace(reader=name, path=str(folder / reader.files))
        for name, reader in READERS.items()
        if name != HUGGING_FACE and (folder / reader.files).is_file()
    )
    if not found:
        names = sorted(reader.files for reader in READERS.values() if "." in reader.files)
        raise InputError(
            f"--instructions {folder} holds no file of generic instructions. Known are: "
            f"{', '.join(names)}."
        )
    return found


class Mixtures:
    """Makes the data sections of rows from the recipe's.

    Args:
        data: The recipe's.
        places: Sources of instructions; without any, no row has a share of them.
    """

    def __init__(self, data: DataSection, places: tuple[InstructionPlace, ...]) -> None:
        self._data = data
        self._places = places

    @property
    def instructed(self) -> bool:
        """Whether there are instructions."""
        return bool(self._places)

    def whole(
        self,
        *,
        share: float = SHARE,
        tasks: int = TASKS,
        evolved: bool = True,
        sampled: bool = True,
        tools_evolved: bool = True,
    ) -> DataSection:
        """Return the section with all parts, but for those that are left out.

        Args:
            share: Of instructions.
            tasks: Of a query.
            evolved: Some instructions are given constraints; else all are plain.
            sampled: Queries are sampled as the recipe says; else as many are drawn at random.
            tools_evolved: Tools, names and descriptions vary; else they are those of serving.
        """
        given: dict[str, Any] = {"sources": self._places, "share": share}
        if not self._places:
            given = {"sources": (), "share": 0.0}
        if not evolved:
            given["evolved"] = 0.0
        return _changed(
            self._data,
            {
                "instructions": given,
                "ttg": {"tasks_per_query": tasks},
                "sampling": {} if sampled else {"method": "random"},
                "tevo": {"enabled": tools_evolved},
            },
        )


def ablation_rows(material: Material, data: DataSection, folder: Path | None) -> list[Row]:
    """Return the rows of Tables 2 and 3; Table 2's are cumulative.

    Args:
        material: The domain.
        data: The recipe's section.
        folder: Of generic instructions.
    """
    mixtures = Mixtures(data, instruction_places(folder))
    whole = mixtures.whole()
    rows = _Rows(material, mixtures)
    rows.add(SECOND, "all parts", "all-parts", whole, WHOLE)
    less: dict[str, bool] = {}
    for name, slug, part in (
        ("without Evolve", "no-evolve", "evolved"),
        ("without Evolve and DQS", "no-evolve-dqs", "sampled"),
        ("without Evolve, TEvo and DQS", "no-evolve-dqs-tevo", "tools_evolved"),
    ):
        less[part] = False
        rows.add(SECOND, name, slug, mixtures.whole(**less), needed=list(less) == ["evolved"])
    rows.add(
        *(THIRD, f"IFT 0, {TASKS} tasks", "ift-0", mixtures.whole(share=0.0)),
        WITHOUT_INSTRUCTIONS,
    )
    rows.add(
        *(THIRD, f"IFT {SHARE:g}, {TASKS} tasks", "all-parts", whole, WITH_INSTRUCTIONS),
        needed=True,
    )
    rows.add(
        *(THIRD, f"IFT 0.5, {TASKS} tasks", "ift-half", mixtures.whole(share=0.5)), needed=True
    )
    share = SHARE if mixtures.instructed else 0.0
    for tasks in OTHER_TASKS:
        name = f"IFT {share:g}, {tasks} tasks"
        rows.add(THIRD, name, f"tasks-{tasks}", mixtures.whole(tasks=tasks))
    return rows.made


class _Rows:
    def __init__(self, material: Material, mixtures: Mixtures) -> None:
        self._material = material
        self._mixtures = mixtures
        self.made: list[Row] = []

    def add(
        self,
        table: str,
        name: str,
        slug: str,
        data: DataSection,
        paper: Published = NOTHING,
        *,
        needed: bool = False,
    ) -> None:
        """Add a row.

        Args:
            table: The table.
            name: In words.
            slug: Of its training.
            data: Of its training.
            paper: The paper's figures.
            needed: Without instructions it would be another row again.
        """
        material, note = self._material, "" if self._mixtures.instructed else _NONE_GIVEN
        # The plan cases are what it may learn from, and nothing else.
        cases = choose_queries(material.queries, data.sampling, material.encoder, data.seed)
        training = Training(slug, data, material.ingredients(material.queries))
        left_out = needed and not self._mixtures.instructed
        if slug == "ift-0":
            note = ""
        questions = QuestionSet(FROZEN, material.frozen, tuple(cases))
        self.made.append(Row(table, name, None if left_out else training, questions, paper, note))


def _changed(data: DataSection, changes: Mapping[str, Mapping[str, Any]]) -> DataSection:
    made = {
        name: getattr(data, name).model_copy(update=dict(change))
        for name, change in changes.items()
    }
    return data.model_copy(update=made)
