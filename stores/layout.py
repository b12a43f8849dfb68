"""What a collection remembers of its making: its schema, and how it stores quality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from casewright.errors import SchemaMismatchError, StoreDamagedError
from casewright.stores.quality import QualityScale
from casewright.stores.schema import CaseSchema


def layout_of(schema: CaseSchema, scale: QualityScale) -> dict[str, Any]:
    """Return what a new collection is to remember."""
    return {**schema.layout(), "quality": asdict(scale)}


def scale_of(kept: Mapping[str, Any], schema: CaseSchema, location: str) -> QualityScale:
    """Return the quality scale that a collection remembers, where it agrees with the schema.

    Raises:
        SchemaMismatchError: The collection was built with another schema.
        StoreDamagedError: It does not remember its scale.
    """
    wanted = schema.layout()
    differing = [key for key in wanted if kept.get(key) != wanted[key]]
    if differing:
        told = "; ".join(f"{key} is {kept.get(key)} there, {wanted[key]} here" for key in differing)
        raise SchemaMismatchError(
            f"The collection {schema.name!r} at {location} was built with another schema: {told}. "
            "Open it with the schema that built it, or build it anew in another place."
        )
    try:
        return QualityScale(**kept["quality"])
    except (KeyError, TypeError) as error:
        raise StoreDamagedError(
            f"The collection {schema.name!r} at {location} has lost its quality scale. "
            "Build it anew."
        ) from error
