"""Verified answers are stored without approval; a chat model's tokens are streamed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serve.service.helpers import OTHER, QUICK, Served, events_of, plan, served

TEXT = "It has eight gigabytes [E1] and so does the other one [E9]."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield a service with a chat model, which retains verified answers."""
    folder = tmp_path_factory.mktemp("worded")
    with served(folder, retain="verified", chat=TEXT) as server:
        yield server


def test_stream_sends_chat_model_tokens_and_then_text_without_invalid_citations(
    server: Served,
) -> None:
    body = {"question": "stream it"}
    with server.client() as client, client.stream("POST", "/ask/stream", json=body) as response:
        events = events_of(response)
    pieces = [data["text"] for name, data in events if name == "token"]
    assert len(pieces) > 5
    assert "".join(pieces) == TEXT
    assert events[-1][1]["text"] == "It has eight gigabytes [E1] and so does the other one."


def test_only_a_verified_answer_is_stored_without_approval(server: Served) -> None:
    with server.client() as client, server.client(OTHER) as other:
        retained = client.post("/ask", json={"question": QUICK}).json()["retained"]
        assert retained["outcome"] == "added"
        assert client.get(f"/cases/{retained['id']}").json()["kept_by"] == "verified"
        partial = client.post("/ask", json=plan("s1 = quick(a=question); s2 = broken(b=1)")).json()
        assert partial["retained"]["outcome"] == "refused"
        assert "found nothing" in partial["retained"]["reason"]
        # A user can approve an answer that was not verified.
        approved = client.post(f"/runs/{partial['run_id']}/approve").json()
        assert approved["outcome"] == "added"
        listed = client.get("/cases?limit=1").json()
        assert listed["total"] >= 2
        assert len(listed["cases"]) == 1
        assert other.get("/cases").json() == {"total": 0, "cases": []}
