"""The scope of a request within a tenant: with tokens, no field has a default."""

from __future__ import annotations

from pathlib import Path

from tests.serve.service.helpers import QUICK, plan, post_reply, served

SCOPES = {"customer": ["C1", "C2"]}


def test_service_with_tokens_requires_a_scope_in_every_request(tmp_path: Path) -> None:
    question = plan("s1 = asks(); s2 = quick(a=s1.value)")
    scope = {"scope": {"customer": "C2"}}
    with served(tmp_path, scopes=SCOPES) as server, server.client() as client:
        answer = client.post("/ask", json={"question": QUICK, **scope}).json()
        assert "found for acme C2" in answer["text"]
        for path, body in (
            ("/ask", {"question": QUICK}),
            ("/ask", {"question": QUICK, "scope": {"customer": "C9"}}),
            ("/ask", {"question": QUICK, "scope": {"tenant": "other", "customer": "C1"}}),
            ("/casewright/invoke", {"input": {"question": QUICK}}),
        ):
            assert client.post(path, json=body).status_code == 422
        assert client.post("/ask", json={**question, **scope, "thread_id": "t"}).status_code == 202
        refused = post_reply(client, "t", "red")
        assert refused.status_code == 422
        assert "customer" in refused.json()["detail"]
        answer = post_reply(client, "t", "red", **scope).json()
        assert "found for acme C2" in answer["text"]


def test_service_without_tokens_has_a_default_scope_for_questions_but_not_replies(
    tmp_path: Path,
) -> None:
    with served(tmp_path, scopes=SCOPES, tokens={}) as server, server.client(None) as client:
        answer = client.post("/ask", json={"question": QUICK}).json()
        assert "found for local C1" in answer["text"]
        body = {**plan("s1 = asks()"), "thread_id": "t", "scope": {"customer": "C2"}}
        assert client.post("/ask", json=body).status_code == 202
        assert post_reply(client, "t", "red").status_code == 422
