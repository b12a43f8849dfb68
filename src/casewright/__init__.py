"""Casewright: whole look-up plans in one call, run over case stores, answered with citations."""

__version__ = "0.1.0"
