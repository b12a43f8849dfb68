"""Where the cases are kept that a command's encoder embedded."""

from __future__ import annotations

import re
from pathlib import Path


def place_of(domain: str, encoder: str | None) -> Path:
    """Return a domain's folder: each encoder has one of its own.

    Args:
        domain: The domain's name.
        encoder: A sentence-transformers model; ``None`` for the packaged encoder.
    """
    from casewright.stores.paths import data_folder

    if encoder is None:
        return data_folder() / domain
    return data_folder() / f"{domain}-{re.sub(r'[^A-Za-z0-9.-]+', '-', encoder).strip('-.')}"
