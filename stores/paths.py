"""Where Casewright keeps what it makes."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

# What settings chose for this process. The environment is not written to: what a command was told
# by a file must not look as if the next one had been told by the environment.
_chosen: dict[str, Path] = {}


def choose_folders(home: Path | None = None, cache: Path | None = None) -> None:
    """Say where this process keeps what it makes; ``None`` leaves it to the environment.

    Args:
        home: In place of ``CASEWRIGHT_HOME``.
        cache: In place of ``CASEWRIGHT_CACHE_FOLDER``.
    """
    _chosen.clear()
    _chosen.update({name: at for name, at in (("HOME", home), ("CACHE_FOLDER", cache)) if at})


def cache_folder() -> Path:
    """Return the folder for what can be made again: exported encoders, cached embeddings."""
    if cache := _folder("CACHE_FOLDER"):
        return cache
    home = _folder("HOME")
    return home / "cache" if home else platformdirs.user_cache_path("casewright")


def data_folder() -> Path:
    """Return the folder for case stores."""
    home = _folder("HOME")
    return home / "data" if home else platformdirs.user_data_path("casewright")


def _folder(name: str) -> Path | None:
    named = os.environ.get(f"CASEWRIGHT_{name}")
    return _chosen.get(name) or (Path(named) if named else None)
