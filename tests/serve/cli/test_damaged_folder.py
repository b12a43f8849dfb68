from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from casewright.domains.shopping import domain
from casewright.domains.shopping.data import records
from tests.serve.helpers import one_line_error, result, run

QUESTION = "Where is my tablet?"


def orders(cases: Path, pattern: str = "shard/segments/*/segment.json") -> Path:
    (found,) = (cases / "shards" / "orders").glob(pattern)
    return found


def garbage(cases: Path) -> None:
    orders(cases).write_bytes(random.Random(0).randbytes(20_000))


def cut_off(cases: Path) -> None:
    pages = orders(cases, "shard/segments/*/payload_storage/page_0.dat")
    whole = pages.read_bytes()
    pages.write_bytes(whole[: len(whole) // 3])


def missing(cases: Path) -> None:
    orders(cases).unlink()


def no_json(cases: Path) -> None:
    orders(cases, "layout.json").write_text("{")


def emptied(cases: Path) -> None:
    orders(cases).write_bytes(b"")


@pytest.mark.parametrize("damage", [garbage, cut_off, missing, no_json, emptied])
def test_error_of_a_damaged_store_names_its_folder_and_the_repair(
    own_home: Path, damage: Callable[[Path], None]
) -> None:
    cases = own_home / "data" / "shopping" / "cases"
    damage(cases)
    done = run(own_home, "ask", QUESTION, "--json")
    line = one_line_error(done)
    assert str(cases) in line
    assert "damaged" in line
    assert "build" in line
    assert json.loads(done.stdout)["error"]["kind"] == "StoreDamagedError"


def test_domains_build_repairs_damaged_stores(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To encode all its plan cases takes half a minute.
    some = domain.queries()[:20]
    monkeypatch.setattr(domain, "queries", lambda: some)
    garbage(own_home / "data" / "shopping" / "cases")
    built = result(run(own_home, "domains", "--build", "shopping", "--json"))
    assert built["cases"]["orders"] == sum(len(order["items"]) for order in records("orders"))
    answer = result(run(own_home, "ask", QUESTION, "--json"))
    assert [step["status"] for step in answer["steps"]] == ["done", "done"]


def test_error_names_the_stores_folder_when_it_cannot_be_created(own_home: Path) -> None:
    place = own_home / "data" / "shopping"
    place.rename(own_home / "data" / "old")
    place.write_text("a file where a folder should be")
    line = one_line_error(run(own_home, "ask", QUESTION))
    assert str(place) in line
    assert "CASEWRIGHT_HOME" in line
