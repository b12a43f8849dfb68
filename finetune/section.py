"""The base class of a recipe's sections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo


class Section(BaseModel):
    """A section: settings that are checked when they are read, and do not change.

    A name that is not known is refused: a misspelt setting would pass for its default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


#: What a recipe is validated with: the folder that its files are named from, and whether they have
#: to be there.
FOLDER, LOOKED_FOR = "folder", "looked for"


def folder_of(info: ValidationInfo) -> Path:
    """Return the folder that a recipe's files are named from: its own, or the one that is given."""
    folder: Path = (info.context or {}).get(FOLDER, Path())
    return folder


def beside(info: ValidationInfo, name: str | Path) -> Path:
    """Return the absolute path of what a recipe names."""
    return (folder_of(info) / Path(name).expanduser()).absolute()


def looked_for(info: ValidationInfo) -> bool:
    """Return whether the files that a recipe names have to be there."""
    return bool((info.context or {}).get(LOOKED_FOR, True))


def _there(file: Path, info: ValidationInfo) -> Path:
    result = beside(info, file)
    if not looked_for(info):
        return result
    if not result.exists():
        raise ValueError(
            f'There is no file "{file}" in {folder_of(info)}. Give one that is there, from the '
            "recipe's folder, from that of --sets, or by an absolute path."
        )
    if not result.is_file():
        raise ValueError(f'"{file}" is a folder. Give a file.')
    return result


#: A file that is there, where files are looked for; an absolute path once the recipe is read.
RecipeFile = Annotated[Path, AfterValidator(_there)]
