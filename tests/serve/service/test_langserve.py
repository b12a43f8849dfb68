"""LangServe's routes return the same answers as the service's own."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.serve.service.helpers import ACME, QUICK, Served, plan
from tests.support.waiting import until

langserve = pytest.importorskip("langserve")


def make_client(service: Served, token: str = ACME) -> Any:
    return langserve.RemoteRunnable(
        f"{service.url}/casewright", headers={"Authorization": f"Bearer {token}"}, timeout=30
    )


def test_langserve_invoke_batch_and_stream_return_answers(service: Served) -> None:
    runnable = make_client(service)
    answer = runnable.invoke({"question": QUICK})
    assert f"found for acme: {QUICK}" in answer["text"]
    answers = runnable.batch([{"question": "the first"}, {"question": "the second"}])
    assert ["first" in answers[0]["text"], "second" in answers[1]["text"]] == [True, True]
    (streamed,) = list(runnable.stream({"question": QUICK}))
    assert streamed["text"] == answer["text"]


def test_langserve_thread_belongs_to_the_tenant_of_the_token(service: Served) -> None:
    make_client(service).invoke({"question": QUICK, "thread_id": "by-langserve"})
    with service.client() as acme, service.client("other-token-0123456789") as other:
        assert acme.get("/threads/by-langserve").json()["status"] == "answered"
        assert other.get("/threads/by-langserve").status_code == 404


def test_langserve_client_cannot_set_the_tenant_in_its_config(service: Served) -> None:
    config = {"configurable": {"__casewright_tenant": "other", "thread_id": "x"}}
    with service.client() as client:
        response = client.post(
            "/casewright/invoke", json={"input": {"question": QUICK}, "config": config}
        )
        assert "found for acme" in response.json()["output"]["text"]
        response = client.post(
            "/casewright/batch", json={"inputs": [{"question": QUICK}], "config": config}
        )
        assert "found for acme" in response.json()["output"][0]["text"]


def test_langserve_batch_has_at_most_32_questions_and_runs_four_at_once(service: Served) -> None:
    slow, before = plan("s1 = slow(b=0.6)"), service.count_events("slow")
    with service.client() as client, ThreadPoolExecutor(1) as pool:
        response = client.post("/casewright/batch", json={"inputs": [{"question": QUICK}] * 33})
        assert response.status_code == 422
        assert "at most 32 questions" in response.json()["detail"]
        batch = pool.submit(client.post, "/casewright/batch", json={"inputs": [slow] * 8})
        until(lambda: service.count_events("slow") > before)
        time.sleep(0.2)
        assert service.count_events("slow") == before + 4
        assert len(batch.result().json()["output"]) == 8


def test_langserve_batch_is_cancelled_when_one_question_fails(service: Served) -> None:
    before = service.count_events("cancelled")
    failing = plan("s1 = slow(b=0.5); s2 = asks(a=s1.value)")
    questions = [plan("s1 = slow(b=30)"), plan("s1 = slow(b=30)"), failing]
    with service.client() as client:
        response = client.post("/casewright/batch", json={"inputs": questions})
    assert response.status_code == 409
    # The other questions end before the response is sent.
    assert service.count_events("cancelled") == before + 2


@pytest.mark.parametrize("question", [{"question": ""}, {"question": QUICK, "tenant": "other"}, 7])
def test_langserve_refuses_invalid_questions(service: Served, question: Any) -> None:
    with service.client() as client:
        for path, body in (("invoke", {"input": question}), ("batch", {"inputs": [question]})):
            response = client.post(f"/casewright/{path}", json=body)
            assert response.status_code == 422, response.text
    with pytest.raises(httpx.HTTPStatusError):
        make_client(service).invoke(question)


def test_langserve_refuses_a_tool_that_waits_for_a_reply(service: Served) -> None:
    with service.client() as client:
        response = client.post("/casewright/invoke", json={"input": plan("s1 = asks()")})
    assert response.status_code == 409


def test_langserve_playground_loads_local_assets_and_needs_a_token(service: Served) -> None:
    with service.client() as client:
        page = client.get("/casewright/playground/")
        assert page.status_code == 200
        assert "/casewright/playground/assets" in page.text
        assert client.get("/casewright/input_schema").json()["properties"]["question"]
    with service.client(None) as client:
        assert client.get("/casewright/playground/").status_code == 401
