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


def order_file(cases: Path, pattern: str = "shard/segments/*/segment.json") -> Path:
    (file,) = (cases / "shards" / "orders").glob(pattern)
    return file


def write_garbage(cases: Path) -> None:
    order_file(cases).write_bytes(random.Random(0).randbytes(20_000))


def truncate(cases: Path) -> None:
    pages = order_file(cases, "shard/segments/*/payload_storage/page_0.dat")
    content = pages.read_bytes()
    pages.write_bytes(content[: len(content) // 3])


def delete(cases: Path) -> None:
    order_file(cases).unlink()


def write_invalid_json(cases: Path) -> None:
    order_file(cases, "layout.json").write_text("{")


def empty(cases: Path) -> None:
    order_file(cases).write_bytes(b"")


@pytest.mark.parametrize("damage", [write_garbage, truncate, delete, write_invalid_json, empty])
def test_error_of_a_damaged_store_names_its_folder_and_the_repair(
    own_home: Path, damage: Callable[[Path], None]
) -> None:
    cases = own_home / "data" / "shopping" / "cases"
    damage(cases)
    completed = run(own_home, "ask", QUESTION, "--json")
    message = one_line_error(completed)
    assert str(cases) in message
    assert "damaged" in message
    assert "build" in message
    assert json.loads(completed.stdout)["error"]["kind"] == "StoreDamagedError"


def test_domains_build_repairs_damaged_stores(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Encoding all plan cases of the shop takes half a minute.
    queries = domain.queries()[:20]
    monkeypatch.setattr(domain, "queries", lambda: queries)
    write_garbage(own_home / "data" / "shopping" / "cases")
    report = result(run(own_home, "domains", "--build", "shopping", "--json"))
    assert report["cases"]["orders"] == sum(len(order["items"]) for order in records("orders"))
    answer = result(run(own_home, "ask", QUESTION, "--json"))
    assert [step["status"] for step in answer["steps"]] == ["done", "done"]


def test_error_names_the_stores_folder_when_it_cannot_be_created(own_home: Path) -> None:
    folder = own_home / "data" / "shopping"
    folder.rename(own_home / "data" / "old")
    folder.write_text("a file where a folder should be")
    message = one_line_error(run(own_home, "ask", QUESTION))
    assert str(folder) in message
    assert "CASEWRIGHT_HOME" in message
