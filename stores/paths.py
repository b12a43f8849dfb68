"""The folders of Casewright's data and caches."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

# Folders set for this process, by the end of the variable's name. The environment is not changed,
# so that a setting from a file does not look like a setting from the environment.
_overrides: dict[str, Path] = {}


def choose_folders(home: Path | None = None, cache: Path | None = None) -> None:
    """Override ``CASEWRIGHT_HOME`` and ``CASEWRIGHT_CACHE_FOLDER``; ``None`` ends an override."""
    _overrides.clear()
    folders = (("HOME", home), ("CACHE_FOLDER", cache))
    _overrides.update({name: folder for name, folder in folders if folder})


def cache_folder() -> Path:
    """Return the folder for caches, such as embeddings and converted models."""
    if cache := _folder("CACHE_FOLDER"):
        return cache
    home = _folder("HOME")
    return home / "cache" if home else platformdirs.user_cache_path("casewright")


def data_folder() -> Path:
    """Return the folder for case stores."""
    home = _folder("HOME")
    return home / "data" if home else platformdirs.user_data_path("casewright")


def _folder(name: str) -> Path | None:
    path = os.environ.get(f"CASEWRIGHT_{name}")
    return _overrides.get(name) or (Path(path) if path else None)
