"""Finds the defaults of a domain: its planner, and the folder of its stores."""

from __future__ import annotations

import re
from pathlib import Path

from casewright.domains import Domain, OpenDomain
from casewright.planner.named import CASE_PLANNER, ENSEMBLE, PARSER
from casewright.planner.shipped import SHIPPED, is_runnable
from casewright.stores.paths import data_folder


def default_planner(domain: Domain) -> str:
    """Return the name of a domain's planner, or of a substitute if the planner's model cannot run.

    The case planner replaces the packaged language model; the plan parser replaces the ensemble.
    """
    substitutes = {SHIPPED: CASE_PLANNER, ENSEMBLE: PARSER}
    return domain.planner if is_runnable() else substitutes.get(domain.planner, domain.planner)


def store_folder(domain: str, encoder: str | None = None) -> Path:
    """Return the folder of a domain's stores; each encoder has its own folder."""
    if encoder is None:
        return data_folder() / domain
    return data_folder() / f"{domain}-{re.sub(r'[^A-Za-z0-9.-]+', '-', encoder).strip('-.')}"


def open_stores(domain: Domain, *, rebuild: bool = False) -> OpenDomain:
    """Open a domain's stores with the packaged encoder; no planner is needed."""
    from casewright.stores import default_encoder

    return domain.open(store_folder(domain.name), default_encoder(), rebuild)
