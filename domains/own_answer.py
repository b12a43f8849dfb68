"""What a domain says of an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ImageAnswer:
    """An answer about an image, ready to be shown.

    Attributes:
        lines: For people, a line each: what was read, the cases, the answer, the check.
        told: For machines, JSON-plain.
        page: As one HTML document with its images.
        right: Whether the answer is proved.
    """

    lines: Sequence[str]
    told: dict[str, Any]
    page: str
    right: bool
