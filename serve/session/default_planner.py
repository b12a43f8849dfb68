"""Which planner plans where nobody says: the one place that decides it."""

from __future__ import annotations

from collections.abc import Mapping

from casewright.domains import Domain, domain_names
from casewright.planner.language_model.smollm2 import is_installed
from casewright.planner.shipped import SHIPPED, is_shipped
from casewright.serve.planners import CASE_PLANNER, PARSER

#: Of a domain. The language model that ships is a domain's default only where it is right more
#: often than the case planner on questions that took no part in making either: for the shop those
#: of ``casewright bench frozen``, whose figures the README states.
PREFERRED: Mapping[str, str] = {"shopping": CASE_PLANNER}


def default_planner(domain: Domain, preferred: Mapping[str, str] = PREFERRED) -> str:
    """Return the name of a domain's planner where none is asked for.

    A packaged domain's is the case planner, and so is that of one with a trained reader. For other
    tools it is the plan parser, which is right more often (``casewright bench unseen``). The case
    planner stands in where the shipped adapter is preferred and is not in this installation.

    Args:
        domain: The domain.
        preferred: Planners by a domain's name, which go before.
    """
    own = domain.name not in domain_names() and domain.reader is None
    name = preferred.get(domain.name, PARSER if own else CASE_PLANNER)
    runs = name != SHIPPED or (is_shipped() and is_installed())
    return name if runs else CASE_PLANNER
