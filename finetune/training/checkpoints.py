"""Checkpoints: which are whole, and the last one to go on from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.stores.whole_file import write_whole

#: In a checkpoint's folder, written last: its other files with their hashes.
WHOLE = "casewright-checkpoint.json"
#: Beside the checkpoints: what is trained, on what.
RUN = "run.json"
_FOLDER = re.compile(r"checkpoint-(\d+)")


def seal(checkpoint: Path) -> None:
    """Declare a checkpoint whole, once all its files are written."""
    files = sorted(file for file in checkpoint.rglob("*") if file.is_file() and file.name != WHOLE)
    hashes = {str(file.relative_to(checkpoint)): _hash(file) for file in files}
    write_whole(checkpoint / WHOLE, json.dumps(hashes, indent=1))


def is_whole(checkpoint: Path) -> bool:
    """Whether a checkpoint has every file as it was written."""
    try:
        hashes = json.loads((checkpoint / WHOLE).read_text(encoding="utf-8"))
        return bool(hashes) and all(_hash(checkpoint / n) == h for n, h in hashes.items())
    except (OSError, ValueError, AttributeError):
        return False


def last_whole(folder: Path) -> tuple[Path | None, list[Path]]:
    """Return the last checkpoint that is whole, and those after it that are not."""
    damaged: list[Path] = []
    for checkpoint in sorted(checkpoints_of(folder), key=steps_of, reverse=True):
        if is_whole(checkpoint):
            return checkpoint, damaged
        damaged.append(checkpoint)
    return None, damaged


def steps_of(checkpoint: Path) -> int:
    """Return after how many steps a checkpoint was written."""
    found = _FOLDER.fullmatch(checkpoint.name)
    assert found is not None
    return int(found[1])


def checkpoints_of(folder: Path) -> list[Path]:
    """Return all checkpoints in a folder, whole or not."""
    if not folder.is_dir():
        return []
    return [one for one in folder.iterdir() if one.is_dir() and _FOLDER.fullmatch(one.name)]


def check_run(folder: Path, run: Mapping[str, Any]) -> None:
    """Compare what is to be trained with what the checkpoints in a folder are of.

    Raises:
        InputError: They are of another training; the first difference is named.
    """
    file = folder / RUN
    if not file.is_file():
        return
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
        assert isinstance(before, dict)
    except (OSError, ValueError, AssertionError) as error:
        raise InputError(
            f"{file} cannot be read, so that nothing says what the checkpoints beside it are of. "
            "Train into another folder."
        ) from error
    # As JSON has it, since that is what is compared with.
    now = json.loads(json.dumps(run))
    for name in sorted(now.keys() | before.keys()):
        if now.get(name) != before.get(name):
            raise InputError(
                f"{str(folder.parent)!r} holds the checkpoints of another training: {name} was "
                f"{_short(before.get(name))} and is {_short(now.get(name))}. Resume with the "
                "recipe and data that it was started with, or train into another folder."
            )


def is_begun(folder: Path) -> bool:
    """Whether a training has begun to keep its checkpoints in a folder."""
    return (folder / RUN).is_file()


def write_run(folder: Path, run: Mapping[str, Any]) -> None:
    """Say what the checkpoints that will be in a folder are of."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / RUN, json.dumps(run, ensure_ascii=False, indent=1))


def _hash(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
