"""Where Casewright keeps what it makes."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Return the folder for what can be made again: exported encoders, cached embeddings."""
    home = os.environ.get("CASEWRIGHT_HOME")
    return Path(home) / "cache" if home else platformdirs.user_cache_path("casewright")


def data_folder() -> Path:
    """Return the folder for case stores."""
    home = os.environ.get("CASEWRIGHT_HOME")
    return Path(home) / "data" if home else platformdirs.user_data_path("casewright")
