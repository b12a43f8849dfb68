"""Asking the service: an answer, or the events on the way to it."""

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
    replied,
)


def test_answer_has_citations_text_and_steps(service: Served) -> None:
    with service.client() as client:
        reply = client.post("/ask", json={"question": QUICK})
    answer = reply.json()
    assert reply.status_code == 200
    assert answer["citations"] == ["E1"]
    assert f"found for acme: {QUICK} [E1]" in answer["text"]
    assert [step["status"] for step in answer["steps"]] == ["done"]
    assert answer["thread_id"] is None


def test_stream_sends_plan_steps_tokens_and_the_whole_answer(service: Served) -> None:
    asked = plan("s1 = quick(); s2 = slow(a=s1.value, b=0.01)")
    with service.client() as client, client.stream("POST", "/ask/stream", json=asked) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        events = events_of(reply)
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
    ends = [data for name, data in events if name == "step" and data["status"] == "done"]
    assert all(end["milliseconds"] >= 0 for end in ends)
    text = "".join(data["text"] for name, data in events if name == "token")
    assert text == events[-1][1]["text"]
    assert names.count("token") > 1


def test_stream_of_an_invalid_scope_ends_with_an_error_event(service: Served) -> None:
    asked = {"question": QUICK, "scope": {"customer": "nobody"}}
    with service.client() as client, client.stream("POST", "/ask/stream", json=asked) as reply:
        events = events_of(reply)
    assert events[-1][0] == "error"
    assert events[-1][1]["status"] == 422


UNUSABLE: list[Any] = [
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


@pytest.mark.parametrize("body", UNUSABLE, ids=range(len(UNUSABLE)))
def test_invalid_body_is_refused_with_422_and_a_reason(service: Served, body: Any) -> None:
    with service.client() as client:
        reply = client.post("/ask", json=body)
    assert reply.status_code == 422, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["title"] == "Unprocessable Entity"
    assert len(reply.json()["detail"]) > 20


NO_JSON = [
    b"{",
    b'{"question": NaN}',
    b'{"question": "\\ud800"}',
    b'{"\\ud800": 1}',
    b"[" * 5000,
    b'{"question": "q", "context": {"n": 1' + b"0" * 5000 + b"}}",
    b"\xff\xfe",
]


@pytest.mark.parametrize("body", NO_JSON, ids=range(len(NO_JSON)))
def test_body_that_is_not_valid_json_is_refused(service: Served, body: bytes) -> None:
    with service.client() as client:
        reply = client.post("/ask", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code in (400, 422), reply.text
    assert reply.json()["status"] == reply.status_code


def test_errors_in_answers_threads_and_cases_contain_no_path(service: Served) -> None:
    asked = {**plan("s1 = broken(); s2 = quick(a=question)"), "thread_id": "broken"}
    with service.client() as client:
        answer = client.post("/ask", json=asked)
        thread = client.get("/threads/broken")
        assert thread.json()["answer"]["steps"][0]["status"] == "failed"
        kept = client.post(f"/runs/{answer.json()['run_id']}/approve").json()
        case = client.get(f"/cases/{kept['id']}")
        assert client.delete(f"/cases/{kept['id']}").status_code == 204
        with client.stream("POST", "/ask/stream", json=asked) as reply:
            streamed = reply.read().decode()
    assert answer.json()["steps"][0]["status"] == "failed"
    for text in (answer.text, streamed, thread.text, case.text):
        assert "No such file or directory" in text
        assert "secret" not in text
        assert "nowhere" not in text
        assert "Traceback" not in text


def test_lone_surrogate_is_sent_to_the_client_as_its_escape(service: Served) -> None:
    with service.client() as client:
        reply = client.post("/ask", json=plan("s1 = halved()"))
        with client.stream("POST", "/ask/stream", json=plan("s1 = halved()")) as streamed:
            events = events_of(streamed)
    assert reply.status_code == 200
    assert reply.json()["steps"][0]["reports"] == [{"seen": "half of a pair: \ud83d"}]
    assert "half of a pair: \\ud83d" in reply.text
    assert ("report", {"id": "s1", "report": {"seen": "half of a pair: \ud83d"}}) in events
    assert events[-1][0] == "done"
    assert events[-1][1]["steps"][0]["reports"] == [{"seen": "half of a pair: \ud83d"}]


def test_question_of_a_tool_waits_for_a_reply_and_needs_a_thread(service: Served) -> None:
    with service.client() as client:
        asked = client.post("/ask", json={**plan("s1 = asks()"), "thread_id": "waits"})
        assert asked.status_code == 202
        assert open_questions(asked.json()) == ["which one?"]
        assert client.post("/threads/waits/resume", json={}).status_code == 409
        reply = replied(client, "waits", "the red one")
        assert "the user says the red one" in reply.json()["text"]
        assert client.post("/ask", json=plan("s1 = asks()")).status_code == 409


def test_reply_answers_the_named_question_and_the_other_is_asked_again(
    service: Served,
) -> None:
    asked = {**plan('s1 = asks(a="which phone?"); s2 = asks(a="which case?")'), "thread_id": "two"}
    with service.client() as client:
        waiting = client.post("/ask", json=asked)
        assert open_questions(waiting.json()) == ["which phone?", "which case?"]
        other = {"replies": {waiting.json()["questions"][1]["id"]: "blue"}}
        waiting = client.post("/threads/two/resume", json=other)
        assert waiting.status_code == 202
        assert open_questions(waiting.json()) == ["which phone?"]
        assert waiting.json()["question"] == asked["question"]
        assert [step["id"] for step in waiting.json()["plan_steps"]] == ["s1", "s2"]
        assert [step["id"] for step in waiting.json()["steps"]] == ["s2"]
        assert open_questions(client.get("/threads/two").json()) == ["which phone?"]
        answer = replied(client, "two", "red").json()
    values = [step["rows"][0]["value"] for step in answer["steps"]]
    assert values[:2] == ["the user says red", "the user says blue"]


def test_thread_and_its_resumption_return_the_steps_of_the_plan(service: Served) -> None:
    asked = {**plan("s1 = quick(); s2 = asks(a=s1.value)"), "thread_id": "planned"}
    steps = [
        {"id": "s1", "tool": "quick", "call": "quick()", "needs": []},
        {"id": "s2", "tool": "asks", "call": "asks(a=s1.value)", "needs": ["s1"]},
    ]
    with service.client() as client:
        assert client.post("/ask", json=asked).status_code == 202
        assert client.get("/threads/planned").json()["plan_steps"] == steps
        answer = replied(client, "planned", "red").json()
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
        for file in ("docs.js", "docs.css"):
            part = client.get(f"/page/{file}")
            assert part.status_code == 200
            assert "//" not in part.text.replace("// ", "")
        described = client.get("/openapi.json").json()
    assert {"/ask", "/ask/stream", "/threads/{thread_id}", "/cases", "/healthz", "/readyz"} <= set(
        described["paths"]
    )
    for path, methods in described["paths"].items():
        for about in methods.values():
            protected = path not in ("/healthz", "/readyz")
            assert bool(about.get("security")) == protected
            assert {"422", "503", "504"} <= set(about["responses"])


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
        told, whole = client.head(path), client.get(path)
    assert told.status_code == whole.status_code == 200
    assert told.content == b""
    assert told.headers["content-length"] == whole.headers["content-length"] != "0"
    assert told.headers["content-type"] == whole.headers["content-type"]


@pytest.mark.parametrize("token", [None, "", "wrong-token-0123456789", ACME[:-1], f"{ACME}x"])
@pytest.mark.parametrize("path", ["/ask", "/ask/stream", "/threads/t/resume", "/casewright/invoke"])
def test_request_without_a_valid_token_is_refused(
    service: Served, token: str | None, path: str
) -> None:
    with service.client(token) as client:
        reply = client.post(path, json={"question": QUICK})
    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == "Bearer"


def test_token_in_the_url_or_as_basic_authorization_is_refused(service: Served) -> None:
    with service.client(None) as client:
        asked = {"question": QUICK}
        assert client.post(f"/ask?token={ACME}", json=asked).status_code == 401
        assert client.get("/cases", headers={"Authorization": f"Basic {ACME}"}).status_code == 401
