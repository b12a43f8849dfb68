"""A saved run's file is read by the service: checked, and returned with its plan's steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from casewright.graph import Answer
from casewright.graph.run_file import save_run
from tests.serve.service.helpers import Served, plan

PARTS = Answer.__slots__


def saved_file(folder: Path, question: str, answer: dict[str, Any]) -> bytes:
    file = folder / "run.json"
    save_run(file, Answer.from_json({name: answer[name] for name in PARTS}), question)
    return file.read_bytes()


def post_run(service: Served, body: bytes) -> httpx.Response:
    with service.client() as client:
        return client.post("/runs/read", content=body)


@pytest.fixture(scope="module")
def answer(service: Served) -> dict[str, Any]:
    with service.client() as client:
        asked = plan("s1 = quick(); s2 = halved(a=s1.value)")
        found: dict[str, Any] = client.post("/ask", json=asked).json()
    return found


def test_saved_run_is_returned_with_its_question_and_plan_steps(
    service: Served, answer: dict[str, Any], tmp_path: Path
) -> None:
    read = post_run(service, saved_file(tmp_path, "what was asked?", answer)).json()
    assert read.keys() == {"question", "answer", "plan_steps"}
    assert read["question"] == "what was asked?"
    assert read["answer"] == {name: answer[name] for name in PARTS}
    assert [step["needs"] for step in read["plan_steps"]] == [[], ["s1"]]
    assert post_run(service, saved_file(tmp_path, "", answer)).json()["question"] == ""


def test_lone_surrogate_in_a_saved_run_is_returned_unchanged(
    service: Served, answer: dict[str, Any], tmp_path: Path
) -> None:
    reply = post_run(service, saved_file(tmp_path, "half: \ud800", answer))
    assert reply.status_code == 200
    assert reply.json()["question"] == "half: \ud800"
    assert reply.json()["answer"]["steps"][1]["reports"][0]["seen"].endswith("\ud83d")


# Files of earlier versions lack ``refused``.
@pytest.mark.parametrize("part", [part for part in PARTS if part != "refused"])
def test_a_file_without_a_part_of_the_answer_is_refused_as_damaged(
    service: Served, answer: dict[str, Any], tmp_path: Path, part: str
) -> None:
    whole = json.loads(saved_file(tmp_path, "", answer))
    del whole["answer"][part]
    reply = post_run(service, json.dumps(whole).encode())
    assert reply.status_code == 422
    assert f"damaged run: answer.{part}" in reply.json()["detail"]


def test_saved_run_with_an_infinite_number_is_refused(
    service: Served, answer: dict[str, Any], tmp_path: Path
) -> None:
    whole = json.loads(saved_file(tmp_path, "", answer))
    whole["answer"]["steps"][0]["rows"] = [{"value": 0.25}]
    reply = post_run(service, json.dumps(whole).replace("0.25", "-1e999").encode())
    assert reply.status_code == 422
    assert "the number -1e999" in reply.json()["detail"]


def test_saved_run_with_an_invalid_plan_is_refused(
    service: Served, answer: dict[str, Any], tmp_path: Path
) -> None:
    told = {**answer, "plan": "no plan\nat all"}
    reply = post_run(service, saved_file(tmp_path, "", told))
    assert reply.status_code == 422
    assert "damaged run" in reply.json()["detail"]


def test_saved_run_may_be_larger_than_other_requests_up_to_8_mib(
    service: Served, answer: dict[str, Any], tmp_path: Path
) -> None:
    large = saved_file(tmp_path, "", {**answer, "text": "x" * 2_000_000})
    assert len(post_run(service, large).json()["answer"]["text"]) == 2_000_000
    with service.client() as client:
        assert client.post("/ask", content=large).status_code == 413
    reply = post_run(service, large + b" " * 8_000_000)
    assert reply.status_code == 413
    assert "8,388,608 bytes" in reply.json()["detail"]
