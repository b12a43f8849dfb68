"""The size of JSON is limited before it is parsed, so that no request delays others."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from casewright.serve.service.limits import MAX_JSON_DEPTH, MAX_JSON_PARTS, json_refusal
from tests.serve.service.helpers import QUICK, Served

MANY_PARTS = b"[" + b"[1]," * 2_000_000 + b"1]"
DEEP_QUESTION = b'{"question": ' + b"[" * (MAX_JSON_DEPTH + 1) + b"]" * (MAX_JSON_DEPTH + 1) + b"}"


def test_json_that_is_too_large_too_deep_or_utf_16_is_refused() -> None:
    assert f"{MAX_JSON_PARTS:,} texts" in json_refusal(MANY_PARTS)
    assert f"{MAX_JSON_DEPTH} levels" in json_refusal(DEEP_QUESTION)
    assert "UTF-8" in json_refusal(MANY_PARTS[:100].decode().encode("utf-16"))


def test_json_of_large_runs_and_texts_with_brackets_is_accepted() -> None:
    texts = ["[" * 300, '\\"[' * 300, "{[,]}\n" * 300]
    assert json_refusal(json.dumps(texts).encode()) == ""
    assert json_refusal(json.dumps([texts] * 9_000).encode()) == ""
    assert json_refusal(json.dumps([[0, [1, 2], {"a": "b"}]] * 10_000).encode()) == ""


@pytest.mark.parametrize(
    "body", [b'"\\' * 4_000_000, b'"' + b'\\"' * 4_000_000, b"]" * 8_000_000, MANY_PARTS]
)
def test_checking_eight_million_bytes_of_json_takes_less_than_a_second(body: bytes) -> None:
    start = time.process_time()
    json_refusal(body)
    assert time.process_time() - start < 1


@pytest.mark.parametrize("path", ["/ask", "/ask/stream", "/runs/read", "/casewright/invoke"])
def test_routes_refuse_json_that_is_nested_too_deeply(service: Served, path: str) -> None:
    with service.client() as client:
        headers = {"Content-Type": "application/json"}
        response = client.post(path, content=DEEP_QUESTION, headers=headers)
        assert response.status_code == 422
        assert f"{MAX_JSON_DEPTH} levels" in response.json()["detail"]


@pytest.mark.parametrize("large_part", ["values", "plan"])
def test_saved_run_with_millions_of_parts_does_not_delay_other_requests(
    service: Served, large_part: str
) -> None:
    plan = "\n".join(f's{number} = quick(a="{"x" * 40}")' for number in range(1, 90_000))
    run = {"format": 1, "kind": "casewright run", "answer": {"plan": plan}}
    body = MANY_PARTS if large_part == "values" else json.dumps(run).encode()
    with service.client() as client, ThreadPoolExecutor(4) as pool:
        requests = [pool.submit(client.post, "/runs/read", content=body) for _ in range(4)]
        slowest = 0.0
        while not all(request.done() for request in requests):
            start = time.monotonic()
            assert client.get("/healthz").status_code == 200
            slowest = max(slowest, time.monotonic() - start)
        assert {request.result().status_code for request in requests} == {422}
        assert slowest < 2
        assert client.post("/ask", json={"question": QUICK}).status_code == 200


def test_context_has_at_most_256_fields(service: Served) -> None:
    fields = {f"field_{number}": number for number in range(257)}
    with service.client() as client:
        assert client.post("/ask", json={"question": QUICK, "context": fields}).status_code == 422
        fields.popitem()
        assert client.post("/ask", json={"question": QUICK, "context": fields}).status_code == 200
