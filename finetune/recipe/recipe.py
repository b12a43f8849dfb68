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
        """Return the recipe in a file; the recipe's paths become absolute.

        Args:
            domains: The allowed names for ``data.domain``; by default all.
            check_files: Check that the recipe's files exist. A training does not read them.
            folder: The folder to which paths are relative; by default the recipe's folder.

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
        # Strict validation refuses "3" for 3, and a list for a tuple in Python objects, but not in
        # JSON. So the settings are validated as JSON. JSON has no dates, so a date becomes a text.
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


def _field_of(problem: ErrorDetails) -> str:
    """Return the dotted name of a problem's field.

    pydantic also names the members of a union. These names are no identifiers, and are left out.
    The name of an unknown field is kept, even if it is no identifier.
    """
    *outer_keys, key = problem["loc"] or ("",)
    keys = [outer for outer in outer_keys if isinstance(outer, int) or outer.isidentifier()]
    if problem["type"] == "extra_forbidden" or isinstance(key, int) or key.isidentifier():
        keys.append(key)
    return ".".join(map(str, keys))


def _message(field: str, problem: ErrorDetails, recipe: type[BaseModel]) -> str:
    if problem["type"] == "missing":
        return f"{field} is missing. Add it."
    if problem["type"] == "extra_forbidden":
        return f"{field}: There is no such field. {_advice(field, recipe)}"
    if problem["type"] == "value_error":
        # A rule about several sections has no field; its text names the fields.
        text = str(problem["ctx"]["error"])
        return f"{field}: {text}" if field else text
    value = json.dumps(problem["input"], ensure_ascii=False, default=str)
    return f"{field}: {value:.60} is not possible. {problem['msg']}."


def _advice(field: str, recipe: type[BaseModel]) -> str:
    """Return a sentence on how to correct the name of an unknown field."""
    section, _, name = field.rpartition(".")
    valid_fields = [path.rpartition(".") for path in _field_paths(recipe)]
    if sections := [s for s, _, valid_name in valid_fields if valid_name == name]:
        location = f"[{sections[0]}]" if sections[0] else "the top level of the recipe"
        return f"The field belongs to {location}. Move it there."
    names = [valid_name for s, _, valid_name in valid_fields if s == section]
    if similar := get_close_matches(name, names, 2):
        return f"Did you mean {' or '.join(similar)}?"
    return f"The fields here are {', '.join(names)}."


def _field_paths(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of a model's fields, and of the fields of the models in them."""
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        for inner_model in _models_in(field.annotation):
            yield from _field_paths(inner_model, f"{prefix}{name}.")


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
