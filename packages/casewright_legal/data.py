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

#: Names of environment variables. Their values are the path of ALQA's ``qa.jsonl`` or ALQA's name
#: on Hugging Face; the form of a case as evidence (see ``context_text``); and the extractor of
#: entities: ``offline``, or a chat model as ``provider:model``, which is called once for each case.
ALQA_VARIABLE = "CASEWRIGHT_ALQA"
CONTEXT_VARIABLE = "CASEWRIGHT_LEGAL_CONTEXT"
EXTRACTOR_VARIABLE = "CASEWRIGHT_LEGAL_EXTRACTOR"


def context_form() -> str:
    """Return the form of a case as evidence; raise ``InputError`` if there is no such form."""
    form = os.environ.get(CONTEXT_VARIABLE) or "support"
    if form not in CONTEXT_FORMS:
        raise InputError(f"{CONTEXT_VARIABLE} is {form!r}. Forms are: {', '.join(CONTEXT_FORMS)}.")
    return form


def extractor_name() -> str:
    """Return the name of the extractor of entities; raise ``InputError`` if it is unknown."""
    name = os.environ.get(EXTRACTOR_VARIABLE) or OFFLINE
    check_extractor(name, EXTRACTOR_VARIABLE)
    return name


def data_file(name: str) -> Traversable:
    """Return the path of the package's JSON Lines file with this name (without ``.jsonl``)."""
    return files("casewright_legal") / "data" / f"{name}.jsonl"


@cache
def records(name: str) -> list[dict[str, Any]]:
    """Return the records of ``data_file(name)``."""
    lines = data_file(name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def source() -> str:
    """Return the path of the cases, or their name on Hugging Face; by default, the shipped file."""
    return os.environ.get(ALQA_VARIABLE) or str(data_file("cases"))


def source_file() -> Path | None:
    """Return the file of the cases, or ``None`` for a set on Hugging Face.

    Raise ``InputError`` if the file does not exist.
    """
    location = source()
    if is_dataset(location):
        return None
    path = Path(location).expanduser()
    if not path.is_file():
        raise InputError(
            f"{ALQA_VARIABLE} is {location!r}, and there is no such file. Set it to the path of "
            "ALQA's qa.jsonl, or to ALQA's name on Hugging Face, or unset it for the shipped cases."
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
