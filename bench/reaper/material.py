"""What every row is made of: the domain's tools, its annotated queries, its frozen questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from casewright.domains import Domain
from casewright.errors import InputError
from casewright.finetune.evaluation import EvaluationItem, items_of
from casewright.finetune.examples.make_training_set import Ingredients
from casewright.finetune.examples.query_pool import query_pool
from casewright.finetune.examples.tool_pools import ToolPool, read_pools
from casewright.planner import AnnotatedQuery
from casewright.stores import CachedEncoder, default_encoder
from casewright.stores.paths import data_folder
from casewright.tools import Toolbox


@dataclass(frozen=True, slots=True)
class Material:
    """A domain, read.

    Attributes:
        domain: The domain.
        toolbox: Its tools; nothing is looked up with them.
        queries: Annotated queries to learn from, none of them a frozen one.
        frozen: The questions that take no part in training, plan cases or tuning.
        pools: Other names and descriptions, by tool.
        encoder: Embeds questions.
    """

    domain: Domain
    toolbox: Toolbox
    queries: tuple[AnnotatedQuery, ...]
    frozen: tuple[EvaluationItem, ...]
    pools: Mapping[str, ToolPool]
    encoder: CachedEncoder

    def ingredients(
        self, queries: Sequence[AnnotatedQuery], toolbox: Toolbox | None = None
    ) -> Ingredients:
        """Return what a training set of some of the queries is made of.

        Args:
            queries: To learn from.
            toolbox: Fewer tools than the domain's, where some must not be seen.
        """
        tools = self.toolbox if toolbox is None else toolbox
        return Ingredients(
            queries=queries,
            toolbox=tools,
            pools={name: pool for name, pool in self.pools.items() if name in tools},
            measuring=[item.query.query for item in self.frozen],
        )


def open_material(domain_name: str | None) -> Material:
    """Read a domain.

    Raises:
        InputError: There is no such domain, or it has no queries to learn from or to measure by.
    """
    from casewright.domains import find_domain

    if domain_name is None:
        raise InputError("The recipe names no domain. Write domain in its [data].")
    domain, encoder = find_domain(domain_name), default_encoder()
    kept = domain.measuring_queries()
    if not kept:
        raise InputError(
            f"Domain {domain.name!r} has no queries for measuring only. Take one that has, such "
            "as shopping."
        )
    opened = domain.open(data_folder() / domain.name, encoder, False)
    opened.close()
    toolbox = opened.toolbox
    pool = query_pool(domain.queries(), toolbox, [query.query for query in kept])
    pools = read_pools(domain.tool_pools, toolbox) if domain.tool_pools else {}
    # A class is what a query has, or what its plan says.
    labelled = tuple(item.query for item in items_of(pool.queries, toolbox))
    return Material(domain, toolbox, labelled, tuple(items_of(kept, toolbox)), pools, encoder)
