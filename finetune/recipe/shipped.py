"""The packaged recipes, by their names."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from casewright.errors import InputError

FOLDER = Path(__file__).parent / "recipes"


def recipe_names() -> list[str]:
    """Return the names of the packaged recipes."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def find_recipe(name: str) -> Path:
    """Return the file of a packaged recipe by its name, or else the file of this name.

    Raises ``InputError`` if there is neither; it lists the packaged recipes.
    """
    file = Path(name).expanduser()
    names = recipe_names()
    # A packaged recipe has priority over a user's file of this name.
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
