"""Tests of `bench plan-cache`: its two controls, its kinds of questions and its seed."""

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
from casewright.stores import CachedEncoder
from casewright.tools import Toolbox, tool_from_function
from tests.support.encoders import HashingEncoder

THINGS = ("kettle", "lamp", "tent", "boat", "chair")


def price(thing: str) -> str:
    """The price of a thing."""
    return thing


def stock(thing: str) -> str:
    """The number of things that are there."""
    return thing


def queries() -> list[AnnotatedQuery]:
    forms = (("what does the {} cost", "price"), ("how many of the {} are there", "stock"))
    records = [
        {"query": form.format(thing), "plan": f's1 = {tool}(thing="{thing}")'}
        for form, tool in forms
        for thing in THINGS
    ]
    # The bench leaves out a query that needs the page's context.
    page = {"query": "what does it cost", "plan": "s1 = price(thing=context.thing)"}
    return [AnnotatedQuery.read(r) for r in (*records, {**page, "context": {"thing": "x"}})]


def run_bench(monkeypatch: pytest.MonkeyPatch, *options: str) -> dict[str, Any]:
    toolbox = Toolbox([tool_from_function(price), tool_from_function(stock)])
    domain = Domain(
        name="shop",
        description="Two tools.",
        questions=(),
        open=lambda *_: OpenDomain(toolbox, cast(Any, None), {}),
        queries=queries,
    )
    monkeypatch.setattr("casewright.domains.find_domain", lambda name: domain)
    monkeypatch.setattr(harness, "default_encoder", lambda: CachedEncoder(HashingEncoder()))
    monkeypatch.setattr(harness, "data_folder", Path)
    completed = CliRunner().invoke(app, ["bench", "plan-cache", "--json", *options])
    assert completed.exit_code == 0, completed.output
    report: dict[str, Any] = json.loads(completed.stdout)
    return report


def test_cache_lies_between_its_controls_and_question_kinds_sum_to_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = run_bench(monkeypatch, "--questions", "120")
    caches = {row["cache"]: row for row in report["rows"] if row["table"] == "caches"}
    kinds = [row for row in report["rows"] if row["table"] == "kinds"]
    misses, cache, hits = (caches[key] for key in ("always misses", "kept answers", "always hits"))
    assert (misses["hit_rate"], misses["tokens_saved"], misses["wrong"]) == (0, 0, 0)
    # Only the first question misses.
    assert hits["hit_rate"] == pytest.approx(119 / 120, abs=1e-4)
    assert 0.3 < cache["hit_rate"] < hits["hit_rate"]
    assert cache["wrong_reuse"] < hits["wrong_reuse"]
    assert 0 < cache["tokens"] < misses["tokens"]
    assert sum(row["questions"] for row in kinds) == 120
    assert sum(row["reused"] for row in kinds) == round(120 * cache["hit_rate"])
    assert sum(row["wrong"] for row in kinds) == round(120 * cache["wrong"])


def test_question_stream_is_the_same_for_the_same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def shares(seed: str) -> list[Any]:
        rows = run_bench(monkeypatch, "--questions", "60", "--seed", seed)["rows"]
        return [row.get("hit_rate", row.get("questions")) for row in rows]

    assert shares("1") == shares("1") != shares("2")
