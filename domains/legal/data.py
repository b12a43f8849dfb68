"""The legal cases: those that ship with the package, or ALQA where the user has it."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from casewright.domains.legal.alqa import is_dataset, read_alqa
from casewright.errors import InputError
from casewright.stores import Case

#: Names another set than the shipped one: the path of ALQA's ``qa.jsonl``, or its name on Hugging
#: Face.
SETTING = "CASEWRIGHT_ALQA"


def data_file(name: str) -> Traversable:
    """Return the JSON Lines file of this name."""
    return files("casewright.domains.legal") / "data" / f"{name}.jsonl"


@cache
def records(name: str) -> list[dict[str, Any]]:
    """Return a file's records."""
    lines = data_file(name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def source() -> str:
    """Return where the cases come from: what the setting names, else the shipped file."""
    return os.environ.get(SETTING) or str(data_file("cases"))


def source_file() -> Path | None:
    """Return the file that the cases come from; ``None`` where that is a set on Hugging Face.

    Raises:
        InputError: The setting names no file that is there.
    """
    named = source()
    if is_dataset(named):
        return None
    path = Path(named).expanduser()
    if not path.is_file():
        raise InputError(
            f"{SETTING} is {named!r}, and there is no such file. Set it to the path of ALQA's "
            "qa.jsonl, or to its name on Hugging Face, or unset it for the cases that ship."
        )
    return path


def legal_cases() -> list[Case]:
    """Read the cases."""
    return read_alqa(source_file() or source())
