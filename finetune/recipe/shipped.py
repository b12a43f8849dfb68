"""Recipes that ship with the package, by their names."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from casewright.errors import InputError

#: Where they are, one TOML file each.
FOLDER = Path(__file__).parent / "recipes"


def recipe_names() -> list[str]:
    """Return the names of the recipes that ship with the package."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def find_recipe(name: str) -> Path:
    """Return the file of a recipe.

    Args:
        name: A file's, or that of a recipe which ships with the package.

    Raises:
        InputError: There is neither; lists those that ship.
    """
    file = Path(name).expanduser()
    names = recipe_names()
    # A file of the user's that happens to have a recipe's name is meant by its suffix.
    if name in names:
        return FOLDER / f"{name}.toml"
    if file.is_file():
        return file
    near = get_close_matches(name, names, 1)
    raise InputError(
        f"There is no recipe {name!r}. "
        + (f"Did you mean {near[0]}? " if near else "")
        + f"Give a TOML file, or one of {', '.join(names)}."
    )
