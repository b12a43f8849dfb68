from __future__ import annotations

from typing import Any

import pytest

from casewright.bench.dags import FixedPlanner
from casewright.domains import OpenDomain
from casewright.domains.shopping.data import records
from casewright.domains.shopping.domain import queries
from casewright.graph import Outcome, RunContext, build_graph
from casewright.graph.outcome import Status
from casewright.graph.references import Known, MissingReferenceError
from casewright.planner import AnnotatedQuery
from casewright.tools import CallContext, rows

Ends = list[Status]
CUSTOMERS = [record["id"] for record in records("customers")]


def run(shop: OpenDomain, query: AnnotatedQuery, customer: str) -> Ends:
    """How the steps of the gold plan end: as in the graph, but one after the other."""
    outcomes: dict[int, Outcome] = {}
    for number, step in enumerate(query.plan.steps, 1):
        known = Known(query.query, query.record.context, outcomes)
        tool = shop.toolbox[step.tool]
        caller = CallContext(question=query.query, scope={"customer": customer})
        try:
            assert tool.run is not None
            found = rows(tool, tool.run(known.arguments(step), caller))
            status: Status = "done" if found or not tool.results else "empty"
        except MissingReferenceError:
            found, status = [], "skipped"
        outcomes[number] = Outcome(f"s{number}", step.tool, status, rows=found)
    return [outcome.status for outcome in outcomes.values()]


@pytest.fixture(scope="module")
def ends(shop: OpenDomain) -> list[tuple[AnnotatedQuery, Ends]]:
    """How the steps of every gold plan end, for the customer for whom most end ``done``."""
    best = []
    for query in queries():
        # Who asks matters to orders alone.
        asks = CUSTOMERS if "order_lookup" in query.plan.tools else CUSTOMERS[:1]
        found: list[Ends] = []
        for customer in asks:
            found.append(run(shop, query, customer))
            if set(found[-1]) == {"done"}:
                break
        best.append((query, max(found, key=lambda statuses: statuses.count("done"))))
    return best


def test_gold_plans_find_something_at_every_step(
    ends: list[tuple[AnnotatedQuery, Ends]],
) -> None:
    short = [(query, statuses) for query, statuses in ends if set(statuses) != {"done"}]
    for query, statuses in short:
        print(query.record.id, statuses, query.query, str(query.plan), sep=" | ")
    share = 1 - len(short) / len(ends)
    print(f"{share:.3f} of {len(ends)} gold plans find something at every step")
    assert share >= 0.85


def test_graph_ends_gold_plans_as_running_them_step_by_step_does(
    shop: OpenDomain, ends: list[tuple[AnnotatedQuery, Ends]]
) -> None:
    assert len(ends) == len(queries())
    graph: Any = build_graph(shop.toolbox, FixedPlanner(queries()[0].plan))
    for query, _ in ends[::20]:
        chosen = RunContext(scope={"customer": "C001"}, planner=FixedPlanner(query.plan))
        asked = {"question": query.query, "context": query.record.context}
        answer = graph.invoke(asked, context=chosen)["answer"]
        assert [step["status"] for step in answer["steps"]] == run(shop, query, "C001")
