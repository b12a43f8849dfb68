"""The service stores corrected plans as annotated messages in the operator's file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casewright.planner import read_annotated
from casewright.serve.service import routes
from tests.serve.service.helpers import OTHER, QUICK, Served, served

PLAN, LATER_PLAN = "s1 = slow(b=1)", "s1 = slow(b=2)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corrections")


@pytest.fixture(scope="module")
def correction_service(folder: Path) -> Iterator[Served]:
    with served(folder, corrections_file=str(folder / "learn.jsonl")) as server:
        yield server


def test_correction_changes_no_plan_and_replaces_none_of_another_tenant(
    correction_service: Served, folder: Path
) -> None:
    body: dict[str, Any] = {"question": QUICK, "plan": "s1 = quick(a=question)"}
    with correction_service.client() as client, correction_service.client(OTHER) as other:
        assert client.get("/about").json()["corrections"] is True
        added = client.post("/corrections", json=body).json()
        assert added["outcome"] == "added"
        assert client.post("/corrections", json=body).json()["outcome"] == "unchanged"
        assert other.post("/corrections", json={**body, "plan": PLAN}).json()["outcome"] == "added"
        replaced = client.post("/corrections", json={**body, "plan": LATER_PLAN}).json()
        assert (replaced["outcome"], replaced["id"]) == ("replaced", added["id"])
        with_context = {**body, "context": {"page": "x"}}
        assert client.post("/corrections", json=with_context).json()["outcome"] == "added"
        assert client.post("/ask", json={"question": QUICK}).json()["plan"] == body["plan"]
    records = [*map(json.loads, (folder / "learn.jsonl").read_text("utf-8").splitlines())]
    expected = [("acme", LATER_PLAN), ("other", PLAN), ("acme", body["plan"])]
    assert [(record["tenant"], record["plan"]) for record in records] == expected
    assert len({query.record.id for query in read_annotated(folder / "learn.jsonl")}) == 3


@pytest.mark.parametrize("plan", ["s1 = gone()", "no plan at all", "s1 = quick(zzz=1)", " "])
def test_correction_with_an_invalid_plan_is_refused(correction_service: Served, plan: str) -> None:
    with correction_service.client() as client:
        response = client.post("/corrections", json={"question": "another one", "plan": plan})
    assert response.status_code == 422
    assert "plan" in response.json()["detail"].lower()


def test_correction_is_refused_without_a_corrections_file(service: Served) -> None:
    with service.client() as client:
        assert client.get("/about").json()["corrections"] is False
        response = client.post("/corrections", json={"question": QUICK, "plan": PLAN})
    assert response.status_code == 409


def test_correction_is_refused_without_a_token(correction_service: Served) -> None:
    with correction_service.client(None) as client:
        response = client.post("/corrections", json={"question": QUICK, "plan": PLAN})
    assert response.status_code == 401


def test_corrections_file_does_not_exceed_its_size_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MAX_CORRECTION_BYTES", 150)
    file, record = tmp_path / "learn.jsonl", {"id": "c-1", "plan": PLAN, "context": {}}
    store = routes._store_correction
    assert store(file, {**record, "query": "one"}) == "added"
    assert store(file, {**record, "query": "two"}) == "added"
    before = file.read_bytes()
    with pytest.raises(Exception, match="is full"):
        store(file, {**record, "query": "three" * 10})
    assert file.read_bytes() == before


def test_size_limit_of_the_corrections_file_counts_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, record = tmp_path / "learn.jsonl", {"id": "c-1", "plan": PLAN, "context": {}}
    routes._store_correction(file, {**record, "query": "one"})
    line = json.dumps({**record, "query": "é" * 99}, ensure_ascii=False)
    monkeypatch.setattr(routes, "MAX_CORRECTION_BYTES", file.stat().st_size + len(line) + 50)
    with pytest.raises(Exception, match="is full"):
        routes._store_correction(file, json.loads(line))
