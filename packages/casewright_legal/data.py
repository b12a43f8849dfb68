"""The legal cases (the shipped ones, or the user's ALQA), and the settings that choose them."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.planner import chat_model
from casewright.stores import Case
from casewright_legal.alqa import is_dataset, read_alqa
from casewright_legal.cases import CONTEXT_FORMS
from casewright_legal.chat_entities import OFFLINE, check_extractor, read_with_chat

#: Environment variables. ``ALQA`` is the path of ALQA's ``qa.jsonl``, or its name on Hugging Face.
#: ``CONTEXT`` is the form of a case as evidence (see ``context_text``). ``EXTRACTOR`` is
#: ``offline``, or a chat model that extracts the entities, ``provider:model``, once for each case.
ALQA = "CASEWRIGHT_ALQA"
CONTEXT = "CASEWRIGHT_LEGAL_CONTEXT"
EXTRACTOR = "CASEWRIGHT_LEGAL_EXTRACTOR"


def context_form() -> str:
    """Return the form of a case as evidence; raise ``InputError`` if the setting is unknown."""
    form = os.environ.get(CONTEXT) or "support"
    if form not in CONTEXT_FORMS:
        raise InputError(f"{CONTEXT} is {form!r}. It is one of: {', '.join(CONTEXT_FORMS)}.")
    return form


def extractor_name() -> str:
    """Return the extractor's name; raise ``InputError`` if the setting is invalid."""
    name = os.environ.get(EXTRACTOR) or OFFLINE
    check_extractor(name, EXTRACTOR)
    return name


def data_file(name: str) -> Traversable:
    """Return the path of the JSON Lines file with this name."""
    return files("casewright_legal") / "data" / f"{name}.jsonl"


@cache
def records(name: str) -> list[dict[str, Any]]:
    """Return the records of ``data_file(name)``."""
    lines = data_file(name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def source() -> str:
    """Return the path of the cases, or their name on Hugging Face; by default, the shipped file."""
    return os.environ.get(ALQA) or str(data_file("cases"))


def source_file() -> Path | None:
    """Return the file of the cases, or ``None`` for a set on Hugging Face.

    Raise ``InputError`` if the file does not exist.
    """
    name = source()
    if is_dataset(name):
        return None
    path = Path(name).expanduser()
    if not path.is_file():
        raise InputError(
            f"{ALQA} is {name!r}, and there is no such file. Set it to the path of ALQA's "
            "qa.jsonl, or to its name on Hugging Face, or unset it for the cases that ship."
        )
    return path


def legal_cases() -> list[Case]:
    """Return the cases; environment variables choose their source and the extractor of entities.

    Raises:
        InputError: The source or a setting is invalid.
        DependencyError: A package that the source or the extractor needs is not installed.
        CasewrightError: The chat model that extracts entities does not answer.
    """
    path, extractor = source_file() or source(), extractor_name()
    if extractor == OFFLINE:
        return read_alqa(path)
    return read_with_chat(path, chat_model(extractor))
