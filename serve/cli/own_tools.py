"""The tools that a command is for: a domain's, or those of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import InputError

if TYPE_CHECKING:
    from casewright.planner import AnnotatedQuery
    from casewright.stores import CaseStore, Encoder
    from casewright.tools import Toolbox


@dataclass(frozen=True, slots=True)
class OwnTools:
    """Tools, and the annotated queries for them.

    Attributes:
        toolbox: The tools.
        queries: The annotated queries.
        encoder: What is alike is told by it.
        apart: Questions that are for measuring only: nothing may be learned from them.
        stored: The queries as plan cases, where they are in a store already.
    """

    toolbox: Toolbox
    queries: Sequence[AnnotatedQuery]
    encoder: Encoder
    apart: Sequence[str] = ()
    stored: CaseStore | None = None

    def plan_cases(self) -> CaseStore | None:
        """Return the queries as plan cases, if there are any."""
        from casewright.planner import plan_store

        if self.stored is not None or not self.queries:
            return self.stored
        return plan_store(self.queries, self.encoder)


@contextmanager
def own_tools(domain: str | None, toolbox: Path | None, queries: Path | None) -> Iterator[OwnTools]:
    """Open a domain's tools, or read those of a file, with the annotated queries for them.

    Args:
        domain: A domain's name; or
        toolbox: a file of tools.
        queries: A file of annotated queries; the domain's own by default.

    Raises:
        InputError: Both or neither were given, or a file cannot be read.
    """
    from casewright.planner import read_annotated

    if (domain is None) == (toolbox is None):
        raise InputError("Give either --domain NAME or --toolbox FILE.")
    given = read_annotated(queries) if queries is not None else []
    from casewright.stores import default_encoder

    encoder = default_encoder()
    if toolbox is not None:
        from casewright.tools import toolbox_from_file

        yield OwnTools(toolbox_from_file(toolbox), given, encoder)
        return
    from casewright.domains import find_domain
    from casewright.serve.session.place import place_of

    found = find_domain(str(domain))
    opened = found.open(place_of(found.name, None), encoder, False)
    try:
        measuring = [query.query for query in found.measuring_queries()]
        stored = opened.plan_cases if queries is None else None
        there = found.queries() if queries is None else given
        yield OwnTools(opened.toolbox, there, encoder, measuring, stored)
    finally:
        opened.close()
