"""Defaults of a domain: its planner, and the folder of its stores."""

from __future__ import annotations

import re
from pathlib import Path

from casewright.domains import Domain
from casewright.planner.named import CASE_PLANNER, ENSEMBLE, PARSER
from casewright.planner.shipped import SHIPPED, is_runnable
from casewright.stores.paths import data_folder


def default_planner(domain: Domain) -> str:
    """Return the name of a domain's default planner.

    It is the one that the domain prefers. A packaged domain prefers the shipped language model only
    if that is right more often than the case planner on questions that neither was made with, as
    the README states for the shop. Where the model is not installed, the case planner replaces it,
    and the plan parser replaces the ensemble of both.
    """
    without_model = {SHIPPED: CASE_PLANNER, ENSEMBLE: PARSER}
    return domain.planner if is_runnable() else without_model.get(domain.planner, domain.planner)


def store_folder(domain: str, encoder: str | None = None) -> Path:
    """Return the folder of a domain's stores: each encoder but the packaged one has its own."""
    if encoder is None:
        return data_folder() / domain
    return data_folder() / f"{domain}-{re.sub(r'[^A-Za-z0-9.-]+', '-', encoder).strip('-.')}"
