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
from casewright.domains.legal.chat_reading import OFFLINE, read_with_chat
from casewright.domains.legal.settings import ALQA, extractor_name
from casewright.errors import InputError
from casewright.planner import chat_model
from casewright.stores import Case


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
    return os.environ.get(ALQA) or str(data_file("cases"))


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
            f"{ALQA} is {named!r}, and there is no such file. Set it to the path of ALQA's "
            "qa.jsonl, or to its name on Hugging Face, or unset it for the cases that ship."
        )
    return path


def legal_cases() -> list[Case]:
    """Read the cases, their entities extracted by whom the setting names.

    Raises:
        InputError: The source or a setting cannot be used.
        DependencyError: A package that one of them needs is not installed.
        CasewrightError: The chat model that is to extract entities does not answer.
    """
    place, extractor = source_file() or source(), extractor_name()
    if extractor == OFFLINE:
        return read_alqa(place)
    return read_with_chat(place, chat_model(extractor))
