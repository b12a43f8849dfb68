"""The base class of a recipe's sections, and the validation of a recipe's paths."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo

#: Keys of pydantic's validation context: the folder to which a recipe's paths are relative, and a
#: flag that is true if the recipe's files must exist.
BASE_FOLDER, MUST_EXIST = "base folder", "must exist"


class Section(BaseModel):
    """Settings of a recipe, validated and frozen.

    Unknown names are refused, since a misspelt setting would silently keep its default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


def folder_of(info: ValidationInfo) -> Path:
    """Return the folder to which a recipe's paths are relative."""
    folder: Path = (info.context or {}).get(BASE_FOLDER, Path())
    return folder


def recipe_path(info: ValidationInfo, name: str | Path) -> Path:
    """Return the absolute path of a file that a recipe names."""
    return (folder_of(info) / Path(name).expanduser()).absolute()


def must_exist(info: ValidationInfo) -> bool:
    """Return True if the files that a recipe names must exist."""
    return bool((info.context or {}).get(MUST_EXIST, True))


def _absolute_file(file: Path, info: ValidationInfo) -> Path:
    """Return the absolute path of a file; ``ValueError`` if the file must exist and does not."""
    path = recipe_path(info, file)
    if path.is_file() or not must_exist(info):
        return path
    if path.exists():
        raise ValueError(f'"{file}" is a folder. Give a file.')
    raise ValueError(
        f'There is no file "{file}" in {folder_of(info)}. Give an existing file: an '
        "absolute path, or a path relative to the recipe (with --sets DIR: relative to DIR)."
    )


#: A file that a recipe names; validation makes its path absolute.
RecipeFile = Annotated[Path, AfterValidator(_absolute_file)]
