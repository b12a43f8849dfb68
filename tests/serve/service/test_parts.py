"""Parts of the service, tested without a server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from casewright.errors import InputError, StoreDamagedError, StoreUnavailableError
from casewright.serve.service.checkpoints import RecentThreads, thread_key
from casewright.serve.service.events import Event, event_lines
from casewright.serve.service.problems import status_and_detail, without_paths
from casewright.serve.service.recent import TenantLru
from casewright.serve.service.tokens import Tokens, is_loopback
from casewright.serve.settings.tokens import Grant

TEXTS_WITH_PATHS = [
    "No such file: '/home/me/a b/c.txt'",
    'File "/srv/data/x.py", line 3',
    "at /var/lib/casewright/cases: locked",
    r"C:\Users\me\data is gone",
    "~/data/cases",
    "file:///srv/data/me.txt is missing",
    "file://here/srv/data/me.txt",
    "sqlite:////srv/data/me.db",
    "is missing:/srv/data/me",
    "'/data' is no folder",
    "/data: permission denied",
    "~/data",
    r"C:\data is gone",
]


@pytest.mark.parametrize("text", TEXTS_WITH_PATHS)
def test_paths_are_removed_from_error_texts(text: str) -> None:
    result = without_paths(text)
    assert "…" in result
    assert not any(part in result for part in ("me", "srv", "var", "data"))


@pytest.mark.parametrize(
    "text",
    [
        "and/or",
        "see https://example.org/a/b",
        "see 'https://example.org/a/b'",
        "3/4 of it",
        "3 /4 of it",
        "a - b",
        r"unexpected '\n'",
        "'/'",
    ],
)
def test_texts_without_paths_stay_unchanged(text: str) -> None:
    assert without_paths(text) == text


def test_errors_have_a_status_by_type_and_contain_no_path(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "casewright.service")
    assert status_and_detail(InputError("Ask something.")) == (422, "Ask something.")
    assert status_and_detail(StoreUnavailableError("http://10.0.0.1:6333"))[0] == 503
    assert status_and_detail(TimeoutError())[0] == 504
    for error in (StoreDamagedError("/srv/cases/x"), ValueError("/srv/cases/x")):
        status, detail = status_and_detail(error)
        assert status == 500
        assert "srv" not in detail


def test_thread_keys_of_different_domains_tenants_or_threads_differ() -> None:
    owners = [("d", "a", "b"), ("d", "b", "a"), ("d", "a,b", ""), ("d", "", "a,b"), ("e", "a", "b")]
    assert len({thread_key(*owner) for owner in owners}) == len(owners)


def test_only_a_whole_token_identifies_its_tenant() -> None:
    tokens = Tokens({"one-token-0123456789": Grant("a"), "two-token-0123456789": Grant("b")})
    assert tokens.tenant("two-token-0123456789") == "b"
    for token in ("", "one-token", "one-token-0123456789 ", "one-token-0123456789\udcff"):
        assert tokens.tenant(token) is None


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("localhost", True), ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True)]
    + [(host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", "", "127.1")],
)
def test_loopback_addresses_are_recognized(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_runs_to_approve_are_limited_and_separate_for_each_tenant() -> None:
    runs: TenantLru[str] = TenantLru(limit=2)
    runs.put("b", "few", "run")
    for number in range(3):
        runs.put("a", str(number), "run")
    assert [runs.get("a", str(number)) for number in range(3)] == [None, None, "run"]
    assert runs.get("b", "few") == "run"
    assert runs.get("b", "2") is None


def test_threads_in_memory_are_limited_and_running_ones_are_kept() -> None:
    class Saver(InMemorySaver):
        deleted: list[str]

        async def adelete_thread(self, thread_id: str) -> None:
            self.deleted.append(thread_id)

    async def deleted_threads(bounded: bool, running: set[str]) -> list[str]:
        saver = Saver()
        saver.deleted = []
        threads = RecentThreads(saver, bounded=bounded, limit=3)
        await threads.mark_used("other", "z")
        for key in ("a", "b", "a", "c"):
            await threads.mark_used("tenant", key, running)
        return saver.deleted

    assert asyncio.run(deleted_threads(True, set())) == ["b"]
    assert asyncio.run(deleted_threads(True, {"b"})) == ["a"]
    assert asyncio.run(deleted_threads(True, {"a", "b", "c", "z"})) == []
    assert asyncio.run(deleted_threads(False, set())) == []


def test_idle_stream_sends_keep_alive_lines_and_ends_with_an_error_event() -> None:
    async def events() -> AsyncGenerator[Event, None]:
        await asyncio.sleep(0.12)
        yield Event("plan", {"plan": "s1 = ü"})
        raise ValueError("/srv/secret/file")

    async def read() -> list[bytes]:
        deadline = asyncio.get_running_loop().time() + 5
        return [line async for line in event_lines(events(), deadline, keep_alive=0.05)]

    lines = asyncio.run(read())
    assert lines[0].startswith(b":")
    assert 'event: plan\ndata: {"plan": "s1 = ü"}\n\n'.encode() in lines
    assert lines[-1].startswith(b"event: error\n")
    assert b"secret" not in lines[-1]
