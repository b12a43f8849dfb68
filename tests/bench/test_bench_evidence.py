from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from casewright.bench import harness
from casewright.domains import Domain, OpenDomain
from casewright.planner import AnnotatedQuery
from casewright.serve.cli.commands import app
from casewright.tools import CallContext, Toolbox, tool_from_function
from tests.support.encoders import HashingEncoder

Bench = dict[str, Any]
OWNED = {"ann": ["kettle"], "bob": ["lamp", "tent"]}
QUERIES = {
    "where is my kettle": 's1 = mine(query="kettle")\ns2 = price(thing=s1.thing)',
    "where is my tent": 's1 = mine(query="tent")',
    "my lamp, my tent": 's1 = mine(query="lamp")\ns2 = mine(query="tent")',
    "my kettle, my lamp": 's1 = mine(query="kettle")\ns2 = mine(query="lamp")',
    "where is my boat": 's1 = mine(query="boat")\ns2 = price(thing=s1.thing)',
    "what is a lamp": 's1 = price(thing="lamp")',
    "hello": "s1 = no_evidence()",
}


class Shop:
    """A domain with two users, which records the calls of its tools."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def open(self, *_: Any) -> OpenDomain:
        def mine(query: str, call: CallContext) -> list[dict[str, str]]:
            """What the asker owns."""
            self.calls.append(f"mine {query} {call.scope['who']}")
            return [{"thing": query}] if query in OWNED[call.scope["who"]] else []

        def price(thing: str) -> str:
            """What a thing costs."""
            self.calls.append(f"price {thing}")
            return f"{thing}: 5 EUR"

        tools = [tool_from_function(mine, results=("thing",)), tool_from_function(price)]
        return OpenDomain(Toolbox(tools), cast(Any, None), {})

    def queries(self) -> list[AnnotatedQuery]:
        tool = {"name": "other", "description": "", "parameters": [], "results": ["evidence"]}
        extra = {"query": "another", "plan": "s1 = other()", "tools_extra": [tool]}
        records = [{"query": query, "plan": plan} for query, plan in QUERIES.items()]
        return [AnnotatedQuery.read(record) for record in [*records, extra]]


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    fake_shop = Shop()
    domain = Domain(
        name="two",
        description="Two.",
        questions=(),
        open=fake_shop.open,
        queries=fake_shop.queries,
        scopes={"who": tuple(OWNED)},
    )
    monkeypatch.setattr("casewright.domains.find_domain", lambda name: domain)
    monkeypatch.setattr(harness, "default_encoder", HashingEncoder)
    monkeypatch.setattr(harness, "data_folder", Path)
    return fake_shop


def run_bench() -> Bench:
    completed = CliRunner().invoke(app, ["bench", "evidence", "--json"])
    assert completed.exit_code == 0, completed.output
    report: Bench = json.loads(completed.stdout)
    return report


def test_bench_counts_every_step_once_by_tool_and_status(shop: Shop) -> None:
    rows = {row["tool"]: row for row in run_bench()["rows"]}
    assert set(rows) == {"mine", "price", "no_evidence", "all"}
    counts = {
        name: [row[status] for status in ("done", "empty", "skipped")] for name, row in rows.items()
    }
    assert counts["mine"] == [5, 2, 0]
    assert counts["price"] == [2, 0, 1]
    assert counts["no_evidence"] == [1, 0, 0]
    for row in rows.values():
        assert row["done"] + row["empty"] + row["skipped"] == row["steps"]
        assert row["empty_share"] == pytest.approx(row["empty"] / row["steps"])
    for field in ("steps", "done", "empty", "skipped", "elsewhere"):
        assert rows["all"][field] == sum(rows[name][field] for name in rows if name != "all")


def test_bench_runs_a_plan_with_the_scope_in_which_most_steps_find_something(shop: Shop) -> None:
    rows = {row["tool"]: row for row in run_bench()["rows"]}
    # Nobody owns both the kettle and the lamp, so one step is empty; nobody owns a boat.
    assert (rows["mine"]["empty"], rows["mine"]["elsewhere"]) == (2, 1)


def test_bench_leaves_out_and_counts_queries_with_additional_tools(shop: Shop) -> None:
    report = run_bench()
    assert report["bench"] == "evidence"
    assert report["settings"] == {"domain": "two", "queries": len(QUERIES), "left_out": 1}
    assert report["figures"]["whole_plans_share"] == pytest.approx(5 / 7)
    assert report["figures"]["empty_share"] == pytest.approx(2 / 11)


def test_bench_does_not_repeat_scope_independent_or_complete_plans_for_other_scopes(
    shop: Shop,
) -> None:
    run_bench()
    assert shop.calls.count("price lamp") == 1
    assert shop.calls.count("mine kettle bob") == 1, "a complete plan needs no other scope"


def test_text_table_names_every_tool(shop: Shop) -> None:
    completed = CliRunner().invoke(app, ["bench", "evidence"])
    assert completed.exit_code == 0
    names = ("mine", "price", "empty_share", "are left out")
    assert all(name in completed.stdout for name in names)
