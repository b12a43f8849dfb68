"""Revise: a solution is checked before it is kept, and may be mended first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from casewright.errors import InputError, told
from casewright.stores.case import Case

if TYPE_CHECKING:
    from casewright.stores.schema import CaseSchema

#: Given a case and what is wrong with it, another attempt; ``None`` where there is none.
Repair = Callable[[Case, str], Case | None]


@dataclass(frozen=True, slots=True)
class Revised:
    """What became of a case that was to be checked.

    Attributes:
        case: The last attempt.
        passed: Whether it may be kept.
        reasons: What was wrong with each attempt that failed, in their order.
    """

    case: Case
    passed: bool
    reasons: tuple[str, ...] = ()


def revise(
    case: Case, schema: CaseSchema, repair: Repair | None = None, *, attempts: int = 2
) -> Revised:
    """Check a case by its schema's ``verify``; let what failed be mended, told what was wrong.

    Args:
        case: A problem with a solution.
        schema: Says how cases are verified.
        repair: Makes another attempt; without it there is one. Where it fails, that is told.
        attempts: How many attempts there are, the first included.

    Raises:
        InputError: There is to be no attempt at all.
    """
    if attempts < 1:
        raise InputError(f"attempts={attempts}: a case is checked at least once.")
    reasons: list[str] = []
    while reason := verified(case, schema):
        reasons.append(reason)
        another = None
        if repair and len(reasons) < attempts:
            try:
                another = repair(case, reason)
            except Exception as error:  # noqa: BLE001
                reasons.append(f"It could not be mended: {told(error)}")
        if another is None:
            return Revised(case, False, tuple(reasons))
        case = another
    return Revised(case, True, tuple(reasons))


def verified(case: Case, schema: CaseSchema) -> str | None:
    """Return why a case may not be kept, or ``None``; a verifier that fails vouches for nothing."""
    if schema.verify is None:
        return None
    try:
        reason = schema.verify(case)
    except Exception as error:  # noqa: BLE001
        return f"It could not be verified: {told(error)}"
    if reason is None or (isinstance(reason, str) and reason):
        return reason
    # A verifier that says True or False has not been understood.
    return f"It could not be verified: the schema's verify answered {reason!r}, no text or None."
