"""Which planner plans where nobody says: the one place that decides it."""

from __future__ import annotations

from collections.abc import Mapping

from casewright.planner.shipped import SHIPPED, is_shipped
from casewright.serve.planners import CASE_PLANNER

#: Of a domain. The language model that ships is a domain's default only where it is right more
#: often than the case planner on questions that took no part in making either: for the shop those
#: of ``casewright bench frozen``, whose figures the README states.
PREFERRED: Mapping[str, str] = {"shopping": CASE_PLANNER}


def default_planner(domain: str, preferred: Mapping[str, str] = PREFERRED) -> str:
    """Return the name of a domain's planner where none is asked for.

    The case planner stands in where the shipped model is preferred and is not in this
    installation.

    Args:
        domain: The domain's name.
        preferred: Planners by domain; the case planner for any other.
    """
    name = preferred.get(domain, CASE_PLANNER)
    return CASE_PLANNER if name == SHIPPED and not is_shipped() else name
