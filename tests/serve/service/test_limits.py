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
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield a service with one slot, one queued question, and a limit of 2 seconds."""
    with served(
        tmp_path_factory.mktemp("narrow"), max_concurrency=1, request_seconds=2.0
    ) as server:
        yield server


def test_body_that_is_too_large_is_refused(service: Served) -> None:
    with service.client() as client:
        response = client.post("/ask", json={"question": QUICK, "context": {"much": "x" * 30_000}})
        assert response.status_code == 413

        def body() -> Iterator[bytes]:
            for _ in range(30):
                yield b" " * 1000

        # Without a Content-Length, the service counts the bytes that arrive.
        response = client.post("/ask", content=body(), headers={"Content-Type": "application/json"})
        assert response.status_code == 413
        assert client.post("/ask", json={"question": QUICK}).status_code == 200


@pytest.mark.parametrize("has_length", [True, False])
def test_client_receives_413_while_it_still_sends_a_too_large_body(
    service: Served, has_length: bool
) -> None:
    part = b" " * 65_536
    length = f"Content-Length: {32 * len(part)}" if has_length else "Transfer-Encoding: chunked"
    head = f"POST /ask HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ACME}\r\n{length}\r\n"
    chunk = part if has_length else f"{len(part):x}\r\n".encode() + part + b"\r\n"
    address = httpx.URL(service.url)
    with socket.create_connection((address.host, address.port), timeout=10) as connection:
        connection.sendall(f"{head}\r\n".encode())
        for _ in range(32):
            # The pause gives the service time to refuse before the body ends.
            time.sleep(0.01)
            connection.sendall(chunk)
        if not has_length:
            connection.sendall(b"0\r\n\r\n")
        text = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
    assert text.startswith("HTTP/1.1 413 ")
    assert "20,000 bytes" in text


def test_request_with_expect_100_continue_receives_413_before_its_body(service: Served) -> None:
    address = httpx.URL(service.url)
    with socket.create_connection((address.host, address.port), timeout=3) as connection:
        connection.sendall(
            f"POST /ask HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ACME}\r\n"
            "Content-Length: 2000000\r\nExpect: 100-continue\r\n\r\n".encode()
        )
        assert connection.recv(65_536).startswith(b"HTTP/1.1 413 ")


def test_request_above_its_time_limit_receives_504_and_is_cancelled(limited: Served) -> None:
    before = limited.count_events("cancelled")
    with limited.client() as client:
        response = client.post("/ask", json=plan("s1 = slow(b=30)"))
        assert response.status_code == 504
        with client.stream("POST", "/ask/stream", json=plan("s1 = slow(b=30)")) as stream:
            events = events_of(stream)
    assert events[-1][0] == "error"
    assert events[-1][1]["status"] == 504
    until(lambda: limited.count_events("cancelled") == before + 2)


def test_request_above_the_concurrency_limit_receives_503_with_retry_after(limited: Served) -> None:
    with limited.client() as client, ThreadPoolExecutor(3) as pool:
        before = limited.count_events("slow")
        first = pool.submit(client.post, "/ask", json=plan("s1 = slow(b=1)"))
        until(lambda: limited.count_events("slow") > before)
        others = [pool.submit(client.post, "/ask", json={"question": QUICK}) for _ in range(2)]
        codes = sorted(other.result().status_code for other in others)
        assert [first.result().status_code, *codes] == [200, 200, 503]
        refused = max((other.result() for other in others), key=lambda other: other.status_code)
        assert refused.headers["retry-after"] == "1"
        assert client.get("/healthz").status_code == 200
        assert client.post("/ask", json={"question": QUICK}).status_code == 200


@pytest.mark.parametrize("path", ["/ask", "/ask/stream"])
def test_run_is_cancelled_when_its_client_disconnects(limited: Served, path: str) -> None:
    before = limited.count_events("cancelled"), limited.count_events("slow")
    client = limited.client()
    with (
        pytest.raises(httpx.ReadTimeout),
        client.stream(
            "POST", path, json=plan("s1 = slow(b=30); s2 = slow(b=30)"), timeout=0.5
        ) as response,
    ):
        response.read()
    client.close()
    until(lambda: limited.count_events("cancelled") == before[0] + 2)
    assert limited.count_events("slow") == before[1] + 2
    with limited.client() as other:
        # The slot is free again.
        assert other.post("/ask", json={"question": QUICK}).status_code == 200


def test_run_whose_client_disconnected_can_be_resumed(limited: Served) -> None:
    body = {**plan("s1 = quick(); s2 = slow(a=s1.value, b=0.9)"), "thread_id": "left"}
    with limited.client() as client:
        with pytest.raises(httpx.ReadTimeout):
            client.post("/ask", json=body, timeout=0.4)
        until(lambda: client.get("/threads/left").json().get("status") == "interrupted")
        before = limited.count_events("quick")
        answer = client.post("/threads/left/resume", json={}).json()
        assert [step["status"] for step in answer["steps"]] == ["done", "done"]
        assert limited.count_events("quick") == before


def test_blocking_tool_delays_neither_its_504_nor_the_next_request(limited: Served) -> None:
    started = time.monotonic()
    with limited.client() as client:
        assert client.post("/ask", json=plan("s1 = blocking(b=5)")).status_code == 504
        assert client.post("/ask", json={"question": QUICK}).status_code == 200
    assert time.monotonic() - started < 4


def test_busy_thread_refuses_a_second_question_and_its_deletion(service: Served) -> None:
    with service.client() as client, ThreadPoolExecutor(1) as pool:
        before = service.count_events("slow")
        body = {**plan("s1 = slow(b=0.5)"), "thread_id": "busy"}
        first = pool.submit(client.post, "/ask", json=body)
        until(lambda: service.count_events("slow") > before)
        assert client.get("/threads/busy").json()["status"] == "running"
        assert client.post("/ask", json={**body, "question": QUICK}).status_code == 409
        assert client.delete("/threads/busy").status_code == 409
        assert first.result().status_code == 200


def test_unavailable_store_makes_the_service_unready_and_its_path_is_hidden(
    limited: Served,
) -> None:
    down = limited.log.with_name("down")
    with limited.client(None) as client:
        down.touch()
        response = client.get("/readyz")
        assert response.status_code == 503
        assert str(down.parent) not in response.text
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
            # A page can send such a request without a preflight.
            page = {"Origin": origin, "Content-Type": "text/plain"}
            for path in ("/ask", "/casewright/invoke"):
                response = client.post(path, content=b'{"input": {"question": "x"}}', headers=page)
                assert response.status_code == 400, (origin, path)
        headers = {"Origin": "http://localhost:8000"}
        assert client.post("/ask", json={"question": QUICK}, headers=headers).status_code == 200
        # The service ignores a token.
        assert client.get("/cases", headers={"Authorization": ACME}).status_code == 200
