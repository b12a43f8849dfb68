"""The service checks a saved run, and returns it with the steps of its plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from casewright.graph import Answer
from casewright.graph.run_file import save_run
from tests.serve.service.helpers import Served, plan

FIELDS = Answer.__slots__


def save_run_file(folder: Path, question: str, answer: dict[str, Any]) -> bytes:
    file = folder / "run.json"
    save_run(file, Answer.from_json({name: answer[name] for name in FIELDS}), question)
    return file.read_bytes()


def post_run(service: Served, body: bytes) -> httpx.Response:
    with service.client() as client:
        return client.post("/runs/read", content=body)


@pytest.fixture(scope="module")
def answer(service: Served) -> dict[str, Any]:
    with service.client() as client:
        body = plan("s1 = quick(); s2 = halved(a=s1.value)")
        answer: dict[str, Any] = client.post("/ask", json=body).json()
    return answer


def test_saved_run_is_returned_with_its_question_and_plan_steps(
    service: Served, answer: dict[str, Any], tmp_path: Path
) -> None:
    result = post_run(service, save_run_file(tmp_path, "what was asked?", answer)).json()
    assert result.keys() == {"question", "answer", "plan_steps"}
    assert result["question"] == "what was asked?"
    assert result["answer"] == {name: answer[name] for name in FIELDS}
    assert [step["needs"] for step in result["plan_steps"]] == [[], ["s1"]]
    assert post_run(service, save_run_file(tmp_path, "", answer)).json()["question"] == ""


def test_lone_surrogate_in_a_saved_run_is_returned_unchanged(
    service: Served, answer: dict[str, Any], tmp_path: Path
) -> None:
    response = post_run(service, save_run_file(tmp_path, "half: \ud800", answer))
    assert response.status_code == 200
    assert response.json()["question"] == "half: \ud800"
    assert response.json()["answer"]["steps"][1]["reports"][0]["seen"].endswith("\ud83d")


# Files of earlier versions lack ``refused``.
@pytest.mark.parametrize("field", [field for field in FIELDS if field != "refused"])
def test_file_without_a_field_of_the_answer_is_refused_as_damaged(
    service: Served, answer: dict[str, Any], tmp_path: Path, field: str
) -> None:
    run = json.loads(save_run_file(tmp_path, "", answer))
    del run["answer"][field]
    response = post_run(service, json.dumps(run).encode())
    assert response.status_code == 422
    assert f"damaged run: answer.{field}" in response.json()["detail"]


def test_saved_run_with_an_infinite_number_is_refused(
    service: Served, answer: dict[str, Any], tmp_path: Path
) -> None:
    run = json.loads(save_run_file(tmp_path, "", answer))
    run["answer"]["steps"][0]["rows"] = [{"value": 0.25}]
    response = post_run(service, json.dumps(run).replace("0.25", "-1e999").encode())
    assert response.status_code == 422
    assert "the number -1e999" in response.json()["detail"]


def test_saved_run_with_an_invalid_plan_is_refused(
    service: Served, answer: dict[str, Any], tmp_path: Path
) -> None:
    invalid = {**answer, "plan": "no plan\nat all"}
    response = post_run(service, save_run_file(tmp_path, "", invalid))
    assert response.status_code == 422
    assert "damaged run" in response.json()["detail"]


def test_saved_run_may_be_larger_than_other_requests_up_to_8_mib(
    service: Served, answer: dict[str, Any], tmp_path: Path
) -> None:
    large = save_run_file(tmp_path, "", {**answer, "text": "x" * 2_000_000})
    assert len(post_run(service, large).json()["answer"]["text"]) == 2_000_000
    with service.client() as client:
        assert client.post("/ask", content=large).status_code == 413
    response = post_run(service, large + b" " * 8_000_000)
    assert response.status_code == 413
    assert "8,388,608 bytes" in response.json()["detail"]
