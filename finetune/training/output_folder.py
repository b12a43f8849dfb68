"""The folder that a training writes to, looked at before what takes long."""

from __future__ import annotations

import os
from pathlib import Path

from casewright.errors import InputError


def check_writable(folder: Path) -> None:
    """Look whether a folder is there and may be written to, or may be made; make nothing.

    Raises:
        InputError: It is a file or below one, or may not be written to.
    """
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"--output {folder}: {there} is a file. Give a folder.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            f"--output {folder} cannot be written: {there} is closed to you. "
            "Give a folder that you may write to."
        )
