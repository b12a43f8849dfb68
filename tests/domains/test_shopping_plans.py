from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from casewright.domains import OpenDomain
from casewright.domains.gold_plans import (
    GoldRun,
    complete_share,
    run_gold_plans,
    run_plan,
    step_counts_by_tool,
)
from casewright.domains.shopping.domain import DOMAIN
from casewright.graph import RunContext, build_graph
from casewright.planner.fixed import FixedPlanner
from casewright.stores import default_encoder
from tests.support.shipped import shop_queries

#: The customer for whom the graph's runs are compared.
ASKER = {"customer": "C001"}
#: A seventh of the annotated queries, to save minutes. ``bench evidence`` runs them all.
SAMPLE = shop_queries()[::7]


@pytest.fixture(scope="module")
def runs(shop: OpenDomain) -> list[GoldRun]:
    return run_gold_plans(replace(DOMAIN, queries=lambda: SAMPLE), shop, default_encoder())


def test_at_most_one_step_in_twenty_of_the_gold_plans_finds_nothing(runs: list[GoldRun]) -> None:
    table = step_counts_by_tool(runs)
    assert sum(row["tool"] != "all" for row in table) == 7
    for row in table:
        # A query may name items of several customers: some steps find theirs elsewhere.
        assert row["empty"] - row["elsewhere"] <= 0.05 * row["steps"], row
    assert table[-1]["empty_share"] <= 0.05
    assert complete_share(runs) >= 0.9


def test_graph_ends_gold_plans_as_running_them_step_by_step_does(
    shop: OpenDomain, runs: list[GoldRun]
) -> None:
    assert len(runs) == sum(not query.record.tools_extra for query in SAMPLE) > 500
    graph: Any = build_graph(shop.toolbox, FixedPlanner(SAMPLE[0].plan))
    for query in [run.query for run in runs][:: len(runs) // 40]:
        context = RunContext(scope=ASKER, planner=FixedPlanner(query.plan))
        request = {"question": query.query, "context": query.record.context}
        answer = graph.invoke(request, context=context)["answer"]
        statuses = [step.status for step in run_plan(shop.toolbox, query, ASKER)]
        assert [step["status"] for step in answer["steps"]] == statuses
