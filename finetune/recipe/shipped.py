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
    """Return the file of the packaged recipe ``name``, or else the file at the path ``name``.

    ``InputError`` if there is neither; the error lists the packaged recipes.
    """
    file, names = Path(name).expanduser(), recipe_names()
    if name in names:
        return FOLDER / f"{name}.toml"
    if file.is_file():
        return file
    advice = "".join(f"Did you mean {similar}? " for similar in get_close_matches(name, names, 1))
    raise InputError(
        f"There is no recipe {name!r}. {advice}Give a TOML file, or one of {', '.join(names)}."
    )
