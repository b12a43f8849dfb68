"""The tools of a domain or of a toolbox file, with annotated queries, opened for a command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
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
    """Tools with their annotated queries, and the encoder that compares queries.

    Attributes:
        held_out: Test questions, from which no planner may learn.
        case_store: The open store of the domain's plan cases; ``None`` if the queries are a file's.
    """

    toolbox: Toolbox
    queries: Sequence[AnnotatedQuery]
    encoder: Encoder
    held_out: Sequence[str] = ()
    case_store: CaseStore | None = None


@contextmanager
def own_tools(
    domain: str | None, toolbox_file: Path | None = None, queries_file: Path | None = None
) -> Iterator[OwnTools]:
    """Open the tools of a domain or of a toolbox file, with annotated queries for them."""
    from casewright.planner import read_annotated
    from casewright.stores import default_encoder

    if (domain is None) == (toolbox_file is None):
        raise InputError("Give either --domain NAME or --toolbox FILE.")
    file_queries = read_annotated(queries_file) if queries_file is not None else []
    encoder = default_encoder()
    if toolbox_file is not None:
        from casewright.tools import toolbox_from_file

        yield OwnTools(toolbox_from_file(toolbox_file), file_queries, encoder)
        return
    from casewright.domains import find_domain
    from casewright.serve.session.defaults import open_stores

    named_domain = find_domain(str(domain))
    with closing(open_stores(named_domain)) as open_domain:
        held_out = [query.query for query in named_domain.measuring_queries()]
        if queries_file is None:
            cases = open_domain.plan_cases
            yield OwnTools(open_domain.toolbox, named_domain.queries(), encoder, held_out, cases)
        else:
            yield OwnTools(open_domain.toolbox, file_queries, encoder, held_out)
