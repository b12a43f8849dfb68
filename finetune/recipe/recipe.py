"""A recipe: how a training set is made, and how a planner is trained on it, as a TOML file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Self

from pydantic import ValidationError, model_validator

from casewright.errors import InputError
from casewright.finetune.recipe.data_section import DOMAINS, DataSection
from casewright.finetune.recipe.mends import problems
from casewright.finetune.recipe.recipe_file import FOLDER, LOOKED_FOR
from casewright.finetune.recipe.section import Section
from casewright.finetune.recipe.training_rules import check_together
from casewright.finetune.recipe.training_section import LoraSection, ModelSection, TrainingSection


class Recipe(Section):
    """A recipe.

    Attributes:
        data: What the training set is made of.
        model: What is trained.
        lora: Which of its weights.
        training: How.
    """

    data: DataSection
    model: ModelSection = ModelSection()
    lora: LoraSection = LoraSection()
    training: TrainingSection = TrainingSection()

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        check_together(self.model, self.lora, self.training)
        return self

    @classmethod
    def read(
        cls,
        path: Path,
        *,
        domains: Collection[str] | None = None,
        files: bool = True,
        folder: Path | None = None,
    ) -> Self:
        """Read a recipe; nothing is loaded for it but the file.

        Files that it names are looked for beside it, or in another folder; they are absolute paths
        in what is returned.

        Args:
            path: A TOML file.
            domains: The names that ``data.domain`` may have; any by default.
            files: Whether the files that it names have to be there; a training needs none of them,
                since its set was made before, maybe elsewhere.
            folder: Where these files are, instead of beside the recipe.

        Raises:
            InputError: The recipe cannot be used; names the file, the field, what is wrong with it,
                and what to write instead.
        """
        try:
            told = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path} is no TOML: {error}. Correct that line.") from error
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{path} cannot be read: {error}. Give a recipe, a TOML file.") from (
                error
            )
        context = {FOLDER: (folder or path.parent).absolute(), LOOKED_FOR: files, DOMAINS: domains}
        try:
            # As JSON, so that types are strict (no "3" for 3) and lists may still become tuples;
            # TOML's dates, which no setting is, become texts.
            return cls.model_validate_json(
                json.dumps(told, default=str), strict=True, context=context
            )
        except ValidationError as error:
            raise InputError(f"{path}: {problems(error, cls)}") from error
