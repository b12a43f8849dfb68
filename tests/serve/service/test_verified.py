"""Verified answers are stored without approval; a chat model's tokens are streamed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serve.service.helpers import OTHER, QUICK, Served, events_of, plan, served

TEXT = "It has eight gigabytes [E1] and so does the other one [E9]."


@pytest.fixture(scope="module")
def chat_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service whose answers a chat model words, and that keeps those that are verified."""
    folder = tmp_path_factory.mktemp("worded")
    with served(folder, retain="verified", chat=TEXT) as running:
        yield running


def test_stream_sends_chat_model_tokens_and_then_text_without_invalid_citations(
    chat_service: Served,
) -> None:
    asked = {"question": "stream it"}
    with chat_service.client() as client, client.stream("POST", "/ask/stream", json=asked) as reply:
        events = events_of(reply)
    pieces = [data["text"] for name, data in events if name == "token"]
    assert len(pieces) > 5
    assert "".join(pieces) == TEXT
    assert events[-1][1]["text"] == "It has eight gigabytes [E1] and so does the other one."


def test_only_a_verified_answer_is_stored_without_approval(chat_service: Served) -> None:
    with chat_service.client() as client, chat_service.client(OTHER) as other:
        good = client.post("/ask", json={"question": QUICK}).json()["retained"]
        assert good["outcome"] == "added"
        assert client.get(f"/cases/{good['id']}").json()["kept_by"] == "verified"
        bad = client.post("/ask", json=plan("s1 = quick(a=question); s2 = broken(b=1)")).json()
        assert bad["retained"]["outcome"] == "refused"
        assert "found nothing" in bad["retained"]["reason"]
        # Its user may know better.
        approved = client.post(f"/runs/{bad['run_id']}/approve").json()
        assert approved["outcome"] == "added"
        listed = client.get("/cases?limit=1").json()
        assert listed["total"] >= 2
        assert len(listed["cases"]) == 1
        assert other.get("/cases").json() == {"total": 0, "cases": []}
