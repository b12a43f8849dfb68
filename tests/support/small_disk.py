"""A disk of a few megabytes, for tests of a full disk."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """Yield ``folder`` with a new file system in memory; skip the test if that is not allowed."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system")
    try:
        yield folder
    finally:
        # Lazily, because a killed process may keep a file open for a moment.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def filled(disk: Path, left: int) -> Path:
    """Write a file that leaves ``left`` bytes free; return the file."""
    file = disk / "filling"
    with file.open("wb") as opened:
        os.posix_fallocate(opened.fileno(), 0, shutil.disk_usage(disk).free - left)
    return file
