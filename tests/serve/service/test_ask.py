"""The service answers a question, at once or as a stream of events."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serve.service.helpers import (
    ACME,
    QUICK,
    Served,
    events_of,
    open_questions,
    plan,
    post_reply,
)


def test_answer_has_citations_text_and_steps(service: Served) -> None:
    with service.client() as client:
        response = client.post("/ask", json={"question": QUICK})
    answer = response.json()
    assert response.status_code == 200
    assert answer["citations"] == ["E1"]
    assert f"found for acme: {QUICK} [E1]" in answer["text"]
    assert [step["status"] for step in answer["steps"]] == ["done"]
    assert answer["thread_id"] is None


def test_stream_sends_plan_steps_tokens_and_the_whole_answer(service: Served) -> None:
    body = plan("s1 = quick(); s2 = slow(a=s1.value, b=0.01)")
    with service.client() as client, client.stream("POST", "/ask/stream", json=body) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = events_of(response)
    names = [name for name, _ in events]
    assert names[0] == "plan"
    assert names[-1] == "done"
    steps = [(data["id"], data["tool"], data["status"]) for name, data in events if name == "step"]
    assert steps == [
        ("s1", "quick", "started"),
        ("s1", "quick", "done"),
        ("s2", "slow", "started"),
        ("s2", "slow", "done"),
    ]
    finished = [data for name, data in events if name == "step" and data["status"] == "done"]
    assert finished[1]["milliseconds"] > 9
    text = "".join(data["text"] for name, data in events if name == "token")
    assert text == events[-1][1]["text"]
    assert names.count("token") > 1


def test_stream_of_an_invalid_scope_ends_with_an_error_event(service: Served) -> None:
    body = {"question": QUICK, "scope": {"customer": "nobody"}}
    with service.client() as client, client.stream("POST", "/ask/stream", json=body) as response:
        events = events_of(response)
    assert events[-1][0] == "error"
    assert events[-1][1]["status"] == 422


INVALID_BODIES: list[Any] = [
    {},
    {"question": ""},
    {"question": "  "},
    {"question": 7},
    {"question": "x" * 8001},
    {"question": "nul \0 here"},
    {"question": QUICK, "tenant": "other"},
    {"question": QUICK, "context": ["no object"]},
    {"question": QUICK, "history": [{"question": "no answer"}]},
    {"question": QUICK, "scope": {"tenant": "other"}},
    {"question": QUICK, "scope": {"customer": "C9"}},
    {"question": QUICK, "thread_id": ".."},
    {"question": QUICK, "thread_id": "a/b"},
    {"question": QUICK, "thread_id": "x" * 129},
    [],
]


@pytest.mark.parametrize("body", INVALID_BODIES, ids=range(len(INVALID_BODIES)))
def test_invalid_body_is_refused_with_422_and_a_reason(service: Served, body: Any) -> None:
    with service.client() as client:
        response = client.post("/ask", json=body)
    assert response.status_code == 422, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["title"] == "Unprocessable Entity"
    assert len(response.json()["detail"]) > 20


INVALID_JSON = [
    b"{",
    b'{"question": NaN}',
    b'{"question": "\\ud800"}',
    b'{"\\ud800": 1}',
    b"[" * 5000,
    b'{"question": "q", "context": {"n": 1' + b"0" * 5000 + b"}}",
    b"\xff\xfe",
]


@pytest.mark.parametrize("body", INVALID_JSON, ids=range(len(INVALID_JSON)))
def test_body_that_is_not_valid_json_is_refused(service: Served, body: bytes) -> None:
    with service.client() as client:
        response = client.post("/ask", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (400, 422), response.text
    assert response.json()["status"] == response.status_code


def test_errors_in_answers_threads_and_cases_contain_no_path(service: Served) -> None:
    body = {**plan("s1 = broken(); s2 = quick(a=question)"), "thread_id": "broken"}
    with service.client() as client:
        answer = client.post("/ask", json=body)
        thread = client.get("/threads/broken")
        assert thread.json()["answer"]["steps"][0]["status"] == "failed"
        retained = client.post(f"/runs/{answer.json()['run_id']}/approve").json()
        case = client.get(f"/cases/{retained['id']}")
        assert client.delete(f"/cases/{retained['id']}").status_code == 204
        with client.stream("POST", "/ask/stream", json=body) as response:
            streamed = response.read().decode()
    assert answer.json()["steps"][0]["status"] == "failed"
    for text in (answer.text, streamed, thread.text, case.text):
        assert "No such file or directory" in text
        assert "secret" not in text
        assert "nowhere" not in text
        assert "Traceback" not in text


def test_lone_surrogate_is_sent_to_the_client_as_its_escape(service: Served) -> None:
    with service.client() as client:
        response = client.post("/ask", json=plan("s1 = halved()"))
        with client.stream("POST", "/ask/stream", json=plan("s1 = halved()")) as stream:
            events = events_of(stream)
    assert response.status_code == 200
    assert response.json()["steps"][0]["reports"] == [{"seen": "half of a pair: \ud83d"}]
    assert "half of a pair: \\ud83d" in response.text
    assert ("report", {"id": "s1", "report": {"seen": "half of a pair: \ud83d"}}) in events
    assert events[-1][0] == "done"
    assert events[-1][1]["steps"][0]["reports"] == [{"seen": "half of a pair: \ud83d"}]


def test_question_of_a_tool_waits_for_a_reply_and_needs_a_thread(service: Served) -> None:
    with service.client() as client:
        waiting = client.post("/ask", json={**plan("s1 = asks()"), "thread_id": "waits"})
        assert waiting.status_code == 202
        assert open_questions(waiting.json()) == ["which one?"]
        assert client.post("/threads/waits/resume", json={}).status_code == 409
        resumed = post_reply(client, "waits", "the red one")
        assert "the user says the red one" in resumed.json()["text"]
        assert client.post("/ask", json=plan("s1 = asks()")).status_code == 409


def test_reply_answers_the_named_question_and_the_other_stays_open(
    service: Served,
) -> None:
    body = {**plan('s1 = asks(a="which phone?"); s2 = asks(a="which case?")'), "thread_id": "two"}
    with service.client() as client:
        waiting = client.post("/ask", json=body)
        assert open_questions(waiting.json()) == ["which phone?", "which case?"]
        replies = {"replies": {waiting.json()["questions"][1]["id"]: "blue"}}
        waiting = client.post("/threads/two/resume", json=replies)
        assert waiting.status_code == 202
        assert open_questions(waiting.json()) == ["which phone?"]
        assert waiting.json()["question"] == body["question"]
        assert [step["id"] for step in waiting.json()["plan_steps"]] == ["s1", "s2"]
        assert [step["id"] for step in waiting.json()["steps"]] == ["s2"]
        assert open_questions(client.get("/threads/two").json()) == ["which phone?"]
        answer = post_reply(client, "two", "red").json()
    values = [step["rows"][0]["value"] for step in answer["steps"]]
    assert values[:2] == ["the user says red", "the user says blue"]


def test_thread_and_its_resumption_return_the_steps_of_the_plan(service: Served) -> None:
    body = {**plan("s1 = quick(); s2 = asks(a=s1.value)"), "thread_id": "planned"}
    steps = [
        {"id": "s1", "tool": "quick", "call": "quick()", "needs": []},
        {"id": "s2", "tool": "asks", "call": "asks(a=s1.value)", "needs": ["s1"]},
    ]
    with service.client() as client:
        assert client.post("/ask", json=body).status_code == 202
        assert client.get("/threads/planned").json()["plan_steps"] == steps
        answer = post_reply(client, "planned", "red").json()
        assert answer["plan_steps"] == steps
        assert [step["status"] for step in answer["steps"]] == ["done", "done"]
        assert client.get("/threads/planned").json()["plan_steps"] == steps


def test_docs_page_loads_nothing_from_another_host(service: Served) -> None:
    with service.client(None) as client:
        page = client.get("/docs")
        assert page.status_code == 200
        assert "http://" not in page.text
        assert "https://" not in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        for name in ("docs.js", "docs.css"):
            asset = client.get(f"/page/{name}")
            assert asset.status_code == 200
            assert "//" not in asset.text.replace("// ", "")
        document = client.get("/openapi.json").json()
    assert {"/ask", "/ask/stream", "/threads/{thread_id}", "/cases", "/healthz", "/readyz"} <= set(
        document["paths"]
    )
    for path, methods in document["paths"].items():
        for operation in methods.values():
            protected = path not in ("/healthz", "/readyz")
            assert bool(operation.get("security")) == protected
            assert {"422", "503", "504"} <= set(operation["responses"])


def test_health_needs_no_token(service: Served) -> None:
    with service.client(None) as client:
        assert client.get("/healthz").json() == {"status": "alive"}
        assert client.get("/readyz").json() == {"status": "ready"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/openapi.json"])
def test_public_paths_answer_get_without_a_token_and_refuse_post_and_delete(
    service: Served, path: str
) -> None:
    with service.client(None) as client:
        assert client.get(path).status_code == 200
        assert client.post(path, json={}).status_code == 401
        assert client.delete(path).status_code == 401
    with service.client() as client:
        assert client.post(path, json={}).status_code == 405


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/healthz", "/readyz", "/docs"])
def test_head_returns_the_headers_of_get_without_a_body(service: Served, path: str) -> None:
    with service.client(None) as client:
        head, get = client.head(path), client.get(path)
    assert head.status_code == get.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == get.headers["content-length"] != "0"
    assert head.headers["content-type"] == get.headers["content-type"]


@pytest.mark.parametrize("token", [None, "", "wrong-token-0123456789", ACME[:-1], f"{ACME}x"])
@pytest.mark.parametrize("path", ["/ask", "/ask/stream", "/threads/t/resume", "/casewright/invoke"])
def test_request_without_a_valid_token_is_refused(
    service: Served, token: str | None, path: str
) -> None:
    with service.client(token) as client:
        response = client.post(path, json={"question": QUICK})
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"


def test_token_in_the_url_or_as_basic_authorization_is_refused(service: Served) -> None:
    with service.client(None) as client:
        body = {"question": QUICK}
        assert client.post(f"/ask?token={ACME}", json=body).status_code == 401
        assert client.get("/cases", headers={"Authorization": f"Basic {ACME}"}).status_code == 401
