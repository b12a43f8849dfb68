"""What readers say of records that no instruction is made of, and the files that they read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from casewright.errors import InputError

#: Told the reason for each record, or part of one, that no instruction is made of.
Refuse = Callable[[str], None]


class Unfit(Exception):  # noqa: N818 - no error: it is caught, and counted
    """A record that does not fit; its text is the reason, the same for all of its kind."""


def unquoted(text: str) -> str:
    """Return a question without the quotation marks around the whole of it, one of them lost."""
    asked = text.strip()
    inside = asked.strip('"').strip()
    return inside if '"' not in inside else asked


def files_of(path: Path, *names: str) -> list[Path]:
    """Return the path itself where it is a file, else the files of these names in the folder.

    Raises:
        InputError: There is none.
    """
    found = [path] if path.is_file() else [path / name for name in names]
    if there := [file for file in found if file.is_file()]:
        return there
    raise InputError(f"{path} has none of {list(names)}. Give the folder that holds them, or one.")
