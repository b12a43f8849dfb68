"""Any data set of the ``datasets`` library: by its name, or a local folder or file."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from casewright.errors import DependencyError, InputError, told
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers.columns import columns_of, pair_of
from casewright.finetune.instructions.readers.records import Refuse

#: The library's builder for files of each ending.
_BUILDERS = {
    ".jsonl": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
}


def read_hugging_face(
    path: Path | str,
    refuse: Refuse,
    *,
    split: str = "train",
    columns: Mapping[str, str] | None = None,
    licence: str = "",
) -> Iterator[Instruction]:
    """Yield the rows of a data set, as a stream: nothing is kept but what is looked at.

    The library runs no code of a data set's repository (since its version 4, it cannot).

    Args:
        path: A name on the hub such as ``tatsu-lab/alpaca``, a folder, or a file of JSON Lines,
            JSON, Parquet, CSV or Arrow.
        refuse: Told of rows without prompt or answer.
        split: Which part of it.
        columns: Which column holds the ``prompt``, its ``input`` and the ``answer``, or the
            ``messages``; by default the usual names are looked for.
        licence: The data set's licence, as its page says.

    Raises:
        InputError: There is no such data set, it cannot be reached or read, or its columns have
            other names.
        DependencyError: The library is not installed.
    """
    rows = iter(_load(str(path), split))
    found: Mapping[str, str] | None = None
    name = Path(path).name if Path(path).exists() else str(path)
    number = 0
    while (row := _next(rows, path)) is not None:
        number += 1
        try:
            found = found or columns_of(list(row), columns or {})
            prompt, answer = pair_of(row, found)
        except InputError as error:
            raise InputError(f"{path}, row {number}: {error}") from error
        if not prompt or not answer:
            refuse("empty answer" if prompt else "empty prompt")
            continue
        id_ = f"hugging_face:{name}:{split}:{number}"
        yield Instruction(id_, id_, licence or "as its page says", prompt, answer)


def _load(path: str, split: str) -> Any:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise DependencyError(
            "Data sets by name need the library datasets. Run: pip install 'casewright[finetune]'"
        ) from error
    local = Path(path)
    try:
        if local.is_file():
            if (builder := _BUILDERS.get(local.suffix.lower())) is None:
                raise InputError(
                    f"{path} ends in none of {sorted(_BUILDERS)}. Give a file of one of these "
                    "forms, a folder, or a data set's name."
                )
            return load_dataset(builder, data_files=path, split=split, streaming=True)
        if not local.exists() and (local.is_absolute() or local.suffix.lower() in _BUILDERS):
            raise InputError(f"{path} does not exist. Give a file, a folder, or a data set's name.")
        return load_dataset(path, split=split, streaming=True)
    except InputError:
        raise
    except Exception as error:  # the library raises whatever network, files and formats give
        raise InputError(
            f"The data set {path!r} (split {split!r}) cannot be read: {_said(error)}. Give a "
            "name such as tatsu-lab/alpaca with access to the hub, or a local folder or file."
        ) from error


def _next(rows: Iterator[Any], path: Path | str) -> Mapping[str, Any] | None:
    try:
        with _silent():
            row = next(rows, None)
    except Exception as error:  # as above: it reads as it goes
        raise InputError(f"The data set {str(path)!r} cannot be read: {_said(error)}.") from error
    return row if row is None else dict(row)


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the library from logging what it also raises."""
    logger = logging.getLogger("datasets")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _said(error: Exception) -> str:
    return told(error).rstrip(".")
