"""Shipped queries and toolboxes, read once per process; tests must not change them."""

from __future__ import annotations

from functools import cache

from casewright.domains import find_domain
from casewright.finetune.corpus import CorpusToolbox, read_corpus
from casewright.planner import AnnotatedQuery


@cache
def shop_queries() -> list[AnnotatedQuery]:
    """Return the shop's annotated queries."""
    return find_domain("shopping").queries()


@cache
def validation_toolboxes() -> list[CorpusToolbox]:
    """Return the toolboxes of the corpus's validation split."""
    return read_corpus("validation")
