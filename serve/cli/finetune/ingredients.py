"""Reads what a recipe's ``[data]`` names: of a domain, or of a team's own files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from casewright.domains import domain_names, find_domain
from casewright.errors import InputError
from casewright.planner import read_annotated
from casewright.tools import Toolbox, toolbox_from_file

if TYPE_CHECKING:
    from casewright.finetune.examples.data_section import DataSection
    from casewright.finetune.examples.make_training_set import Ingredients
    from casewright.stores import Encoder


def ingredients(data: DataSection, encoder: Encoder) -> Ingredients:
    """Read queries, toolbox and pools; of every domain, the queries that are for measuring.

    Raises:
        InputError: A file is wrong, or the domain has no annotated queries.
    """
    from casewright.finetune.examples.make_training_set import Ingredients
    from casewright.finetune.tool_pools import read_pools

    if data.queries is not None:
        queries = read_annotated(data.queries)
    else:
        assert data.domain is not None
        queries = find_domain(data.domain).queries()
        if not queries:
            raise InputError(
                f"data.domain: {data.domain!r} has no annotated queries. Add data.queries, a JSON "
                "Lines file of them."
            )
    if data.toolbox is not None:
        toolbox = toolbox_from_file(data.toolbox)
    else:
        assert data.domain is not None
        toolbox = domain_toolbox(data.domain, encoder)
    # Pools of a domain are for its own tools.
    own = data.domain is not None and data.toolbox is None
    pools = data.pools or (find_domain(str(data.domain)).tool_pools if own else None)
    return Ingredients(
        queries=queries,
        toolbox=toolbox,
        pools=read_pools(pools, toolbox) if pools else {},
        distractors=tuple(toolbox_from_file(data.distractors)) if data.distractors else (),
        measuring=[
            query.query
            for name in domain_names()
            for query in find_domain(name).measuring_queries()
        ],
    )


def domain_toolbox(name: str, encoder: Encoder) -> Toolbox:
    """Return a domain's tools, with nothing of theirs left open."""
    from casewright.serve.session.place import place_of

    opened = find_domain(name).open(place_of(name, None), encoder, False)
    opened.close()
    return opened.toolbox
