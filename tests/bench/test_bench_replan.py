"""Tests of the mending bench: answers lost by a broken tool and regained by replanning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from casewright import domains
from casewright.bench.replan import SYSTEMS, measure_replan
from casewright.errors import InputError


@pytest.mark.slow
def test_mending_regains_answers_lost_by_a_broken_tool_and_counts_its_calls(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEWRIGHT_HOME", str(home))
    shop = domains.find_domain("shopping")
    queries = [
        query
        for query in shop.measuring_queries()
        if str(query.record.id) in ("f001", "f002", "f003", "f012")
    ]
    assert len(queries) == 4
    small_shop = replace(shop, measuring_queries=lambda: queries)
    monkeypatch.setattr(domains, "find_domain", lambda name: small_shop)
    report = measure_replan("shopping", 2)
    rows = {(row["fault"], row["mend"]): row for row in report.rows}
    assert set(rows) == {(fault, name) for fault in ("none", "miss", "failure") for name in SYSTEMS}
    count = report.settings["questions"]
    assert {row["runs"] for (fault, _), row in rows.items() if fault != "none"} == {2 * count}
    assert rows["none", "off"]["answered"] > rows["miss", "off"]["answered"]
    for fault in ("miss", "failure"):
        assert rows[fault, "off"]["replanned"] == 0
        assert rows[fault, "empty"]["replanned"] == 1
        assert rows[fault, "empty"]["calls"] > rows[fault, "off"]["calls"]
    assert rows["miss", "empty"]["answered"] > rows["miss", "off"]["answered"]
    assert rows["miss", "failure"]["replanned"] == 0
    gain = rows["miss", "empty"]["answered"] - rows["miss", "off"]["answered"]
    assert report.figures["gain_miss_empty"] == pytest.approx(gain)


def test_replan_bench_refuses_a_domain_without_test_queries(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEWRIGHT_HOME", str(home))
    shop = replace(domains.find_domain("shopping"), measuring_queries=list)
    monkeypatch.setattr(domains, "find_domain", lambda name: shop)
    with pytest.raises(InputError, match="no test queries"):
        measure_replan("shopping", 1)
