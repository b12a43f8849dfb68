"""A recipe: how a training set is made, and how a planner is trained on it, as a TOML file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self, get_args

from pydantic import BaseModel, ValidationError, model_validator
from pydantic_core import ErrorDetails

from casewright.errors import InputError
from casewright.finetune.examples.data_section import DOMAINS, DataSection
from casewright.finetune.recipe.training_section import (
    LoraSection,
    ModelSection,
    TrainingSection,
    check_together,
)
from casewright.finetune.section import FOLDER, LOOKED_FOR, Section


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
            domains: The names that ``data.domain`` may have; any by default.
            files: Whether the files that it names have to be there; a training needs none of them,
                since its set was made before, maybe elsewhere.
            folder: Where these files are, instead of beside the recipe.

        Raises:
            InputError: The recipe cannot be used; names the file, the field, what is wrong with it,
                and what to write instead.
        """
        try:
            facts = tomllib.loads(path.read_text(encoding="utf-8"))
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
                json.dumps(facts, default=str), strict=True, context=context
            )
        except ValidationError as error:
            raise InputError(f"{path}: {problems(error, cls)}") from error


#: Problems that are told at once; of more, their number.
SHOWN = 3


def problems(error: ValidationError, recipe: type[BaseModel]) -> str:
    """Return what pydantic found wrong with a recipe, as sentences: the first few problems."""
    known = list(_places(recipe, ""))
    facts: dict[str, str] = {}
    for item in error.errors():
        field = _place(item)
        facts.setdefault(field, _problem(field, item, known))
    more = f" And {len(facts) - SHOWN} more." if len(facts) > SHOWN else ""
    return " ".join(list(facts.values())[:SHOWN]) + more


def _place(error: ErrorDetails) -> str:
    """Return where a problem is, without pydantic's names for the members of a union."""
    *above, last = error["loc"] or ("",)
    own = error["type"] == "extra_forbidden" or _is_key(last)
    return ".".join(str(key) for key in (*filter(_is_key, above), *([last] if own else [])))


def _is_key(key: str | int) -> bool:
    return isinstance(key, int) or key.isidentifier()


def _problem(place: str, error: ErrorDetails, known: Sequence[str]) -> str:
    if error["type"] == "missing":
        return f"{place} is missing. Add it."
    if error["type"] == "extra_forbidden":
        return f"{place}: There is no such field. {_mend(place, known)}"
    if error["type"] == "value_error":
        # What concerns several sections names its fields itself.
        said = str(error["ctx"]["error"])
        return f"{place}: {said}" if place else said
    shown = json.dumps(error["input"], ensure_ascii=False, default=str)
    short = shown if len(shown) <= 60 else f"{shown[:57]}…"
    return f"{place}: {short} is not possible. {error['msg']}."


def _mend(place: str, known: Sequence[str]) -> str:
    section, _, name = place.rpartition(".")
    parts = [field.rpartition(".") for field in known]
    if elsewhere := [other for other, _, own in parts if own == name]:
        return f"The field belongs to [{elsewhere[0]}]. Move it there."
    names = [own for other, _, own in parts if other == section]
    if near := get_close_matches(name, names, 2):
        return f"Did you mean {' or '.join(near)}?"
    return f"Known here are {', '.join(names)}."


def _places(model: type[BaseModel], section: str) -> Iterator[str]:
    """Yield the places of all fields, with dots between."""
    for name, field in model.model_fields.items():
        yield f"{section}{name}"
        for inner in _models(field.annotation):
            yield from _places(inner, f"{section}{name}.")


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
