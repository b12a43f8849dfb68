"""Which planner plans where nobody says."""

from __future__ import annotations

from importlib.util import find_spec

from casewright.domains import Domain
from casewright.planner.language_model.smollm2 import is_installed
from casewright.planner.named import CASE_PLANNER
from casewright.planner.shipped import SHIPPED, is_shipped


def default_planner(domain: Domain) -> str:
    """Return the name of a domain's planner where none is asked for.

    It is the one that the domain prefers. A packaged domain prefers the language model that ships
    only where that is right more often than the case planner on questions that took no part in
    making either, as the README states for the shop; the case planner stands in where the model is
    not in this installation.
    """
    runs = domain.planner != SHIPPED or (is_shipped() and is_installed() and find_spec("torch"))
    return domain.planner if runs else CASE_PLANNER
