"""Limits of a request's size, time and number, and runs whose client disconnects."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.serve.service.helpers import ACME, QUICK, Served, events_of, plan, served
from tests.support.waiting import until


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that works on one question, lets another wait, and gives each 2 s."""
    with served(
        tmp_path_factory.mktemp("narrow"), max_concurrency=1, request_seconds=2.0
    ) as running:
        yield running


def test_a_body_that_is_too_large_is_refused(service: Served) -> None:
    with service.client() as client:
        reply = client.post("/ask", json={"question": QUICK, "context": {"much": "x" * 30_000}})
        assert reply.status_code == 413

        def parts() -> Iterator[bytes]:
            for _ in range(30):
                yield b" " * 1000

        # Without a length, it is counted as it comes.
        reply = client.post("/ask", content=parts(), headers={"Content-Type": "application/json"})
        assert reply.status_code == 413
        assert client.post("/ask", json={"question": QUICK}).status_code == 200


@pytest.mark.parametrize("counted", [True, False])
def test_client_receives_413_while_it_still_sends_a_too_large_body(
    service: Served, counted: bool
) -> None:
    part = b" " * 65_536
    length = f"Content-Length: {32 * len(part)}" if counted else "Transfer-Encoding: chunked"
    head = f"POST /ask HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ACME}\r\n{length}\r\n"
    framed = part if counted else f"{len(part):x}\r\n".encode() + part + b"\r\n"
    address = httpx.URL(service.url)
    with socket.create_connection((address.host, address.port), timeout=10) as connection:
        connection.sendall(f"{head}\r\n".encode())
        for _ in range(32):
            # As over a slow line: what refuses at once has refused by now.
            time.sleep(0.01)
            connection.sendall(framed)
        if not counted:
            connection.sendall(b"0\r\n\r\n")
        told = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
    assert told.startswith("HTTP/1.1 413 ")
    assert "20,000 bytes" in told


def test_request_with_expect_100_continue_receives_413_before_its_body(service: Served) -> None:
    address = httpx.URL(service.url)
    with socket.create_connection((address.host, address.port), timeout=3) as connection:
        connection.sendall(
            f"POST /ask HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ACME}\r\n"
            "Content-Length: 2000000\r\nExpect: 100-continue\r\n\r\n".encode()
        )
        assert connection.recv(65_536).startswith(b"HTTP/1.1 413 ")


def test_request_above_its_time_limit_receives_504_and_is_cancelled(narrow: Served) -> None:
    before = narrow.did("cancelled")
    with narrow.client() as client:
        reply = client.post("/ask", json=plan("s1 = slow(b=30)"))
        assert reply.status_code == 504
        with client.stream("POST", "/ask/stream", json=plan("s1 = slow(b=30)")) as streamed:
            events = events_of(streamed)
    assert events[-1][0] == "error"
    assert events[-1][1]["status"] == 504
    until(lambda: narrow.did("cancelled") == before + 2)


def test_request_above_the_concurrency_limit_receives_503_with_retry_after(narrow: Served) -> None:
    with narrow.client() as client, ThreadPoolExecutor(3) as pool:
        before = narrow.did("slow")
        first = pool.submit(client.post, "/ask", json=plan("s1 = slow(b=1)"))
        until(lambda: narrow.did("slow") > before)
        others = [pool.submit(client.post, "/ask", json={"question": QUICK}) for _ in range(2)]
        replies = sorted((one.result() for one in others), key=lambda reply: reply.status_code)
        assert [reply.status_code for reply in (first.result(), *replies)] == [200, 200, 503]
        refused = replies[1]
        assert refused.headers["retry-after"] == "1"
        assert client.get("/healthz").status_code == 200
        assert client.post("/ask", json={"question": QUICK}).status_code == 200


@pytest.mark.parametrize("path", ["/ask", "/ask/stream"])
def test_run_is_cancelled_when_its_client_disconnects(narrow: Served, path: str) -> None:
    before = narrow.did("cancelled"), narrow.did("slow")
    client = narrow.client()
    with (
        pytest.raises(httpx.ReadTimeout),
        client.stream(
            "POST", path, json=plan("s1 = slow(b=30); s2 = slow(b=30)"), timeout=0.5
        ) as reply,
    ):
        reply.read()
    client.close()
    until(lambda: narrow.did("cancelled") == before[0] + 2)
    assert narrow.did("slow") == before[1] + 2
    with narrow.client() as other:
        # Its place is free again.
        assert other.post("/ask", json={"question": QUICK}).status_code == 200


def test_run_whose_client_disconnected_can_be_resumed(narrow: Served) -> None:
    asked = {**plan("s1 = quick(); s2 = slow(a=s1.value, b=0.9)"), "thread_id": "left"}
    with narrow.client() as client:
        with pytest.raises(httpx.ReadTimeout):
            client.post("/ask", json=asked, timeout=0.4)
        until(lambda: client.get("/threads/left").json().get("status") == "interrupted")
        before = narrow.did("quick")
        answer = client.post("/threads/left/resume", json={}).json()
        assert [step["status"] for step in answer["steps"]] == ["done", "done"]
        assert narrow.did("quick") == before


def test_blocking_tool_delays_neither_its_504_nor_the_next_request(narrow: Served) -> None:
    started = time.monotonic()
    with narrow.client() as client:
        assert client.post("/ask", json=plan("s1 = blocking(b=5)")).status_code == 504
        assert client.post("/ask", json={"question": QUICK}).status_code == 200
    assert time.monotonic() - started < 4


def test_busy_thread_refuses_a_second_question_and_its_deletion(service: Served) -> None:
    with service.client() as client, ThreadPoolExecutor(1) as pool:
        before = service.did("slow")
        asked = {**plan("s1 = slow(b=0.5)"), "thread_id": "busy"}
        first = pool.submit(client.post, "/ask", json=asked)
        until(lambda: service.did("slow") > before)
        assert client.get("/threads/busy").json()["status"] == "running"
        assert client.post("/ask", json={**asked, "question": QUICK}).status_code == 409
        assert client.delete("/threads/busy").status_code == 409
        assert first.result().status_code == 200


def test_unavailable_store_makes_the_service_unready_and_its_path_is_hidden(
    narrow: Served,
) -> None:
    down = narrow.log.with_name("down")
    with narrow.client(None) as client:
        down.touch()
        reply = client.get("/readyz")
        assert reply.status_code == 503
        assert str(down.parent) not in reply.text
        assert client.get("/healthz").status_code == 200
        down.unlink()
        assert client.get("/readyz").status_code == 200


def test_service_without_tokens_refuses_other_hosts_and_origins(tmp_path: Path) -> None:
    with served(tmp_path, tokens={}) as server, server.client(None) as client:
        answer = client.post("/ask", json={"question": QUICK})
        assert "found for local" in answer.json()["text"]
        assert client.get("/cases", headers={"Host": "evil.example"}).status_code == 400
        assert client.get("/cases", headers={"Host": "localhost:1"}).status_code == 200
        for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example"):
            # As a page's form or fetch can send it without asking first.
            page = {"Origin": origin, "Content-Type": "text/plain"}
            for path in ("/ask", "/casewright/invoke"):
                reply = client.post(path, content=b'{"input": {"question": "x"}}', headers=page)
                assert reply.status_code == 400, (origin, path)
        own = {"Origin": "http://localhost:8000"}
        assert client.post("/ask", json={"question": QUICK}, headers=own).status_code == 200
        # It may be sent; nobody asks for it.
        assert client.get("/cases", headers={"Authorization": ACME}).status_code == 200
