"""The base class of a recipe's sections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo


class Section(BaseModel):
    """Settings of a recipe: checked when they are read, and frozen.

    Unknown names are refused: a misspelt setting would pass for its default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


#: Context of a recipe's validation: the folder that its file names start from, and whether the
#: files must exist.
FOLDER, LOOKED_FOR = "folder", "looked for"


def folder_of(info: ValidationInfo) -> Path:
    """Return the folder that a recipe's file names start from."""
    folder: Path = (info.context or {}).get(FOLDER, Path())
    return folder


def beside(info: ValidationInfo, name: str | Path) -> Path:
    """Return the absolute path of a file that a recipe names."""
    return (folder_of(info) / Path(name).expanduser()).absolute()


def looked_for(info: ValidationInfo) -> bool:
    """Return whether the files that a recipe names must exist."""
    return bool((info.context or {}).get(LOOKED_FOR, True))


def _existing(file: Path, info: ValidationInfo) -> Path:
    path = beside(info, file)
    if looked_for(info) and not path.exists():
        raise ValueError(
            f'There is no file "{file}" in {folder_of(info)}. Give one that is there, from the '
            "recipe's folder, from that of --sets, or by an absolute path."
        )
    if looked_for(info) and not path.is_file():
        raise ValueError(f'"{file}" is a folder. Give a file.')
    return path


#: A file that must exist, where files must; an absolute path once the recipe is read.
RecipeFile = Annotated[Path, AfterValidator(_existing)]
