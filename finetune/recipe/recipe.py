"""Recipes: TOML files with the settings of a training set and of its training."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self, get_args

from pydantic import BaseModel, ValidationError, model_validator
from pydantic_core import ErrorDetails

from casewright.errors import InputError
from casewright.finetune.examples.data_section import DOMAINS_KEY, DataSection
from casewright.finetune.recipe.training_section import (
    LoraSection,
    ModelSection,
    TrainingSection,
    check_together,
)
from casewright.finetune.section import BASE_FOLDER, MUST_EXIST, Section

#: Maximum number of problems in a message.
MAX_PROBLEMS = 3


class Recipe(Section):
    """The settings of a training set and of a training."""

    data: DataSection
    model: ModelSection = ModelSection()
    lora: LoraSection = LoraSection()
    training: TrainingSection = TrainingSection()

    @model_validator(mode="after")
    def _check_sections(self) -> Self:
        check_together(self.model, self.lora, self.training)
        return self

    @classmethod
    def read(
        cls,
        path: Path,
        *,
        domains: Collection[str] | None = None,
        check_files: bool = True,
        folder: Path | None = None,
    ) -> Self:
        """Return the recipe in a file; the paths that it names become absolute.

        Args:
            domains: The allowed names for ``data.domain``; by default all.
            check_files: Check that the named files exist. A training needs only its training set.
            folder: The folder of the named files; by default the recipe's folder.

        Raises:
            InputError: The recipe is invalid; the error names file, field and correction.
        """
        try:
            settings = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path} is no TOML: {error}. Correct that line.") from error
        except (OSError, ValueError, RecursionError) as error:
            message = f"{path} cannot be read: {error}. Give a recipe, a TOML file."
            raise InputError(message) from error
        base = (folder or path.parent).absolute()
        context = {BASE_FOLDER: base, MUST_EXIST: check_files, DOMAINS_KEY: domains}
        # Strict validation refuses "3" for 3. It accepts a list for a tuple in JSON, but not in
        # Python objects. JSON has no dates, so a date becomes a text.
        text = json.dumps(settings, default=str)
        try:
            return cls.model_validate_json(text, strict=True, context=context)
        except ValidationError as error:
            raise InputError(f"{path}: {_problems(error, cls)}") from error


def _problems(error: ValidationError, recipe: type[BaseModel]) -> str:
    """Return the first problems that pydantic found in a recipe, as sentences."""
    messages: dict[str, str] = {}
    for problem in error.errors():
        field = _field_of(problem)
        messages.setdefault(field, _message(field, problem, recipe))
    suffix = [f"And {len(messages) - MAX_PROBLEMS} more."] if len(messages) > MAX_PROBLEMS else []
    return " ".join([*messages.values()][:MAX_PROBLEMS] + suffix)


def _field_of(error: ErrorDetails) -> str:
    """Return the dotted name of a problem's field.

    pydantic's names for the members of a union, which are no identifiers, are left out. The name of
    an unknown field is kept, even if it is no identifier.
    """
    *outer_keys, key = error["loc"] or ("",)
    keys = [outer for outer in outer_keys if isinstance(outer, int) or outer.isidentifier()]
    if error["type"] == "extra_forbidden" or isinstance(key, int) or key.isidentifier():
        keys.append(key)
    return ".".join(map(str, keys))


def _message(field: str, error: ErrorDetails, recipe: type[BaseModel]) -> str:
    if error["type"] == "missing":
        return f"{field} is missing. Add it."
    if error["type"] == "extra_forbidden":
        return f"{field}: There is no such field. {_advice(field, recipe)}"
    if error["type"] == "value_error":
        # The text of a rule about several sections already names their fields.
        text = str(error["ctx"]["error"])
        return f"{field}: {text}" if field else text
    value = json.dumps(error["input"], ensure_ascii=False, default=str)
    return f"{field}: {value:.60} is not possible. {error['msg']}."


def _advice(field: str, recipe: type[BaseModel]) -> str:
    """Return a sentence on how to correct the name of an unknown field."""
    section, _, name = field.rpartition(".")
    fields = [valid_field.rpartition(".") for valid_field in _fields(recipe, "")]
    if sections := [valid_section for valid_section, _, valid_name in fields if valid_name == name]:
        location = f"[{sections[0]}]" if sections[0] else "the top level of the recipe"
        return f"The field belongs to {location}. Move it there."
    names = [valid_name for valid_section, _, valid_name in fields if valid_section == section]
    if similar := get_close_matches(name, names, 2):
        return f"Did you mean {' or '.join(similar)}?"
    return f"The fields here are {', '.join(names)}."


def _fields(model: type[BaseModel], section: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"{section}{name}"
        for inner in _model_types(field.annotation):
            yield from _fields(inner, f"{section}{name}.")


def _model_types(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _model_types(inner)
