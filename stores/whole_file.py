"""Writes files atomically."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(file: Path, text: str) -> None:
    """Write a text to a file atomically: after a crash, the file has the old or the new text."""
    temporary_file = file.with_name(f"{file.name}.new")
    with temporary_file.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary_file.replace(file)
