"""Revise: verify a case, repair it if needed, and change a stored case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from casewright.errors import InputError, one_line
from casewright.stores.case import Case
from casewright.stores.schema import CaseSchema
from casewright.stores.tenant import TENANT

#: Returns a repaired case, or ``None``, given a case and the reason why it failed.
Repair = Callable[[Case, str], Case | None]


@dataclass(frozen=True, slots=True)
class Revised:
    """The result of ``revise``: the last attempt, and the reasons why attempts failed."""

    case: Case
    passed: bool
    reasons: tuple[str, ...] = ()


def revise(
    case: Case, schema: CaseSchema, repair: Repair | None = None, *, attempts: int = 2
) -> Revised:
    """Verify a case by its schema's ``verify``; repair it if the check fails.

    ``repair`` is called at most ``attempts - 1`` times. If it raises, its error is added to the
    reasons, and there is no further attempt. Raise ``InputError`` if ``attempts`` is below 1.
    """
    if attempts < 1:
        raise InputError(f"attempts={attempts}: a case is checked at least once.")
    reasons: list[str] = []
    while reason := refusal_reason(case, schema):
        reasons.append(reason)
        repaired_case = None
        if repair and len(reasons) < attempts:
            try:
                repaired_case = repair(case, reason)
            except Exception as error:  # noqa: BLE001
                reasons.append(f"It could not be mended: {one_line(error)}")
        if repaired_case is None:
            return Revised(case, False, tuple(reasons))
        case = repaired_case
    return Revised(case, True, tuple(reasons))


def refusal_reason(case: Case, schema: CaseSchema) -> str | None:
    """Return the reason to refuse a case, or ``None``; an error of ``verify`` is a reason."""
    if schema.verify is None:
        return None
    try:
        reason = schema.verify(case)
    except Exception as error:  # noqa: BLE001
        return f"It could not be verified: {one_line(error)}"
    if reason is None or (isinstance(reason, str) and reason):
        return reason
    return f"It could not be verified: the schema's verify returned {reason!r}, not a text or None."


class _Unchanged(Enum):
    UNCHANGED = "unchanged"


#: The value in a ``Change`` of a field that does not change.
UNCHANGED: Final = _Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True)
class Change:
    """New values of a case's fields; fields without a new value do not change.

    Attributes:
        quality: The quality, clamped to the schema's range; ``None`` if it was not measured.
        quality_by: The name of the model that measured the quality.
        result: The outcome of the solution.
        metadata: The new metadata, which replace all old metadata except the tenant.
    """

    quality: float | _Unchanged | None = UNCHANGED
    quality_by: str | _Unchanged = UNCHANGED
    result: Any = UNCHANGED
    metadata: Mapping[str, Any] | _Unchanged = UNCHANGED


def with_change(case: Case, change: Change) -> Case:
    """Return the case with a change; raise ``InputError`` if the change is invalid."""
    if not isinstance(change, Change):
        raise InputError(f"The change of case {case.id} is {change!r:.200}. Give a Change.")
    names = ("quality", "quality_by", "result", "metadata")
    values = {name: value for name in names if (value := getattr(change, name)) is not UNCHANGED}
    if "metadata" in values:
        if not isinstance(values["metadata"], Mapping):
            problem = f"The new metadata of case {case.id} are {values['metadata']!r:.200}"
            raise InputError(f"{problem}. Give a mapping.")
        tenant = {TENANT: case.metadata[TENANT]} if TENANT in case.metadata else {}
        new_metadata = {name: value for name, value in values["metadata"].items() if name != TENANT}
        values["metadata"] = new_metadata | tenant
    return replace(case, **values)
