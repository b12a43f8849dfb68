"""Threads and stored answers are separate for each tenant."""

from __future__ import annotations

import uuid

import httpx
import pytest

from tests.serve.service.helpers import OTHER, QUICK, Served, plan


def ask(client: httpx.Client, question: str, thread: str) -> dict[str, object]:
    response = client.post("/ask", json={"question": question, "thread_id": thread})
    assert response.status_code == 200, response.text
    answer: dict[str, object] = response.json()
    return answer


def test_tenants_with_the_same_thread_id_have_separate_threads(service: Served) -> None:
    with service.client() as acme, service.client(OTHER) as other:
        ask(acme, "what is mine", "same")
        assert other.get("/threads/same").status_code == 404
        assert other.post("/threads/same/resume", json={}).status_code == 404
        assert other.delete("/threads/same").status_code == 404
        ask(other, "what is theirs", "same")
        assert acme.get("/threads/same").json()["question"] == "what is mine"
        assert "found for acme" in acme.get("/threads/same").text
        assert "acme" not in other.get("/threads/same").text
        assert other.delete("/threads/same").status_code == 204
        assert acme.get("/threads/same").status_code == 200
        assert other.get("/threads/same").status_code == 404


def test_thread_returns_the_state_of_its_last_run(service: Served) -> None:
    with service.client() as client:
        ask(client, QUICK, "told")
        ask(client, plan("s1 = quick(); s2 = quick(a=s1.value)")["question"], "told")
        state = client.get("/threads/told").json()
        assert state["status"] == "answered"
        assert [(step["id"], step["status"]) for step in state["steps"]] == [
            ("s1", "done"),
            ("s2", "done"),
        ]
        assert state["answer"]["plan"] == state["plan"]
        assert client.post("/threads/told/resume", json={}).status_code == 409
        assert client.get("/threads/never").status_code == 404


def test_only_the_tenant_of_a_run_can_approve_it_or_see_its_case(service: Served) -> None:
    question = f"what did I approve {uuid.uuid4().hex}"
    with service.client() as acme, service.client(OTHER) as other:
        run_id = acme.post("/ask", json={"question": question}).json()["run_id"]
        assert other.post(f"/runs/{run_id}/approve").status_code == 404
        retained = acme.post(f"/runs/{run_id}/approve").json()
        assert retained["outcome"] == "added"
        assert acme.post(f"/runs/{run_id}/approve").json()["outcome"] == "unchanged"
        case = acme.get(f"/cases/{retained['id']}").json()
        assert case["question"] == question
        assert case["kept_by"] == "approved"
        assert other.get(f"/cases/{retained['id']}").status_code == 404
        assert other.delete(f"/cases/{retained['id']}").status_code == 404
        assert retained["id"] not in other.get("/cases").text
        assert retained["id"] in acme.get("/cases").text
        assert acme.delete(f"/cases/{retained['id']}").status_code == 204
        assert acme.get(f"/cases/{retained['id']}").status_code == 404
        assert acme.post(f"/runs/{uuid.uuid4()}/approve").status_code == 404


def test_later_question_reuses_the_approved_plan_of_the_same_tenant_only(
    service: Served,
) -> None:
    first = plan("s1 = quick(a=question); s2 = quick(a=s1.value)")["question"]
    with service.client() as acme, service.client(OTHER) as other:
        run = acme.post("/ask", json={"question": first}).json()
        retained = acme.post(f"/runs/{run['run_id']}/approve").json()
        similar_question = first.replace("please ", "please, ")
        answer = acme.post("/ask", json={"question": similar_question}).json()
        assert answer["planner"]["name"] == f"earlier:{retained['id']}"
        assert answer["plan"] == run["plan"]
        answer = other.post("/ask", json={"question": similar_question}).json()
        assert answer["planner"]["name"] == "question"
        different = acme.post("/ask", json={"question": "something else entirely"}).json()
        assert different["planner"]["name"] == "question"
        for fields in (
            {"history": [{"question": "a", "answer": "b"}]},
            {"context": {"product": "P1"}},
        ):
            answer = acme.post("/ask", json={"question": similar_question, **fields}).json()
            assert answer["planner"]["name"] == "question"
            assert acme.post(f"/runs/{answer['run_id']}/approve").status_code == 404
        acme.delete(f"/cases/{retained['id']}")


@pytest.mark.parametrize("path", ["/cases/not-a-uuid", "/cases?limit=0", "/cases?offset=-1"])
def test_invalid_case_id_limit_or_offset_is_refused(service: Served, path: str) -> None:
    with service.client() as client:
        assert client.get(path).status_code == 422
