"""What is sent is bounded before it is parsed, so that no request holds others."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from casewright.serve.service.limits import JSON_DEPTH, JSON_PARTS, json_refusal
from tests.serve.service.helpers import QUICK, Served

MANY = b"[" + b"[1]," * 2_000_000 + b"1]"
DEEP = b'{"question": ' + b"[" * (JSON_DEPTH + 1) + b"]" * (JSON_DEPTH + 1) + b"}"


def test_what_holds_too_much_is_refused_before_it_is_parsed() -> None:
    assert f"{JSON_PARTS:,} texts" in json_refusal(MANY)
    assert f"{JSON_DEPTH} levels" in json_refusal(DEEP)
    assert "UTF-8" in json_refusal(MANY[:100].decode().encode("utf-16"))


def test_brackets_in_texts_are_text_and_what_a_run_holds_is_parsed() -> None:
    texts = ["[" * 300, '\\"[' * 300, "{[,]}\n" * 300]
    assert json_refusal(json.dumps(texts).encode()) == ""
    assert json_refusal(json.dumps([texts] * 9_000).encode()) == ""
    assert json_refusal(json.dumps([[0, [1, 2], {"a": "b"}]] * 10_000).encode()) == ""


@pytest.mark.parametrize(
    "body", [b'"\\' * 4_000_000, b'"' + b'\\"' * 4_000_000, b"]" * 8_000_000, MANY]
)
def test_looking_at_eight_million_bytes_takes_no_second(body: bytes) -> None:
    began = time.process_time()
    json_refusal(body)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("path", ["/ask", "/ask/stream", "/runs/read", "/casewright/invoke"])
def test_every_route_refuses_what_is_nested_too_deeply(service: Served, path: str) -> None:
    with service.client() as client:
        headers = {"Content-Type": "application/json"}
        reply = client.post(path, content=DEEP, headers=headers)
        assert reply.status_code == 422
        assert f"{JSON_DEPTH} levels" in reply.json()["detail"]


@pytest.mark.parametrize("what", ["values", "plan"])
def test_a_saved_run_of_millions_of_parts_stalls_nobody(service: Served, what: str) -> None:
    plan = "\n".join(f's{number} = quick(a="{"x" * 40}")' for number in range(1, 90_000))
    whole = {"format": 1, "kind": "casewright run", "answer": {"plan": plan}}
    body = MANY if what == "values" else json.dumps(whole).encode()
    with service.client() as client, ThreadPoolExecutor(4) as pool:
        sent = [pool.submit(client.post, "/runs/read", content=body) for _ in range(4)]
        slowest = 0.0
        while not all(one.done() for one in sent):
            began = time.monotonic()
            assert client.get("/healthz").status_code == 200
            slowest = max(slowest, time.monotonic() - began)
        assert {one.result().status_code for one in sent} == {422}
        assert slowest < 2
        assert client.post("/ask", json={"question": QUICK}).status_code == 200


def test_a_context_has_a_bounded_number_of_fields(service: Served) -> None:
    fields = {f"field_{number}": number for number in range(257)}
    with service.client() as client:
        assert client.post("/ask", json={"question": QUICK, "context": fields}).status_code == 422
        fields.popitem()
        assert client.post("/ask", json={"question": QUICK, "context": fields}).status_code == 200
