"""What may change of a case that is stored: not its problem nor its solution, which are its id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from casewright.errors import InputError
from casewright.stores.case import Case
from casewright.stores.tenant import FIELD


class _Same(Enum):
    SAME = "as it is"


#: Stands for what is left as it is.
SAME: Final = _Same.SAME


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be new of a case; what is not given stays.

    Attributes:
        quality: Its quality, clamped to the schema's range; ``None`` for not measured.
        quality_by: What measured it.
        result: How its solution went.
        metadata: All of its metadata but the tenant, which stays.
    """

    quality: float | _Same | None = SAME
    quality_by: str | _Same = SAME
    result: Any = SAME
    metadata: Mapping[str, Any] | _Same = SAME


def changed(case: Case, change: Change) -> Case:
    """Return the case with the change made.

    Raises:
        InputError: It is no change, or its metadata is no mapping.
    """
    if not isinstance(change, Change):
        raise InputError(f"The case {case.id} is to become {change!r:.200}. Give a Change.")
    new = {
        name: value
        for name in ("quality", "quality_by", "result", "metadata")
        if (value := getattr(change, name)) is not SAME
    }
    if "metadata" in new:
        if not isinstance(new["metadata"], Mapping):
            raise InputError(
                f"The case {case.id} is to have the metadata {new['metadata']!r:.200}. Give a "
                "mapping."
            )
        theirs = {FIELD: case.metadata[FIELD]} if FIELD in case.metadata else {}
        new["metadata"] = {n: v for n, v in new["metadata"].items() if n != FIELD} | theirs
    return replace(case, **new)
