"""Values that checkpointers or UTF-8 cannot store are refused with 422 in every request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.serve.service.helpers import QUICK, open_questions, plan
from tests.serve.service.in_process import service_client

pytestmark = pytest.mark.asyncio
JSON = {"Content-Type": "application/json"}
SURROGATE = "half of a pair: \ud83d"
VALUES = [2**63, -(2**63) - 1, 10**400, SURROGATE, [{"a": [SURROGATE]}], {SURROGATE: 1}]


def questions_with(value: Any) -> list[dict[str, Any]]:
    """Return questions with the value in every field that accepts it."""
    bodies: list[dict[str, Any]] = [{"question": QUICK, "context": {"a": value}}]
    if isinstance(value, str):
        bodies += [
            {"question": value},
            {"question": QUICK, "history": [{"question": value, "answer": "a"}]},
            {"question": QUICK, "history": [{"question": "q", "answer": value}]},
            {"question": QUICK, "scope": {"hall": value}},
        ]
    return bodies


@pytest.mark.parametrize(
    "value", VALUES, ids=lambda value: str(value)[:12].encode("ascii", "replace")
)
@pytest.mark.parametrize("thread", [{}, {"thread_id": "t"}])
async def test_value_that_cannot_be_stored_is_refused_in_every_request(
    tmp_path: Path, value: Any, thread: dict[str, str]
) -> None:
    options = {"threads_file": tmp_path / "threads.db", "langserve": True, "scopes": {"hall": []}}
    waiting = {**plan("s1 = asks()"), "thread_id": "w", "scope": {"hall": "B"}}
    async with service_client(tmp_path, **options) as client:

        async def status(path: str, body: Any) -> int:
            content = json.dumps(body).encode()
            return (await client.post(path, content=content, headers=JSON)).status_code

        for body in questions_with(value):
            complete = {"scope": {"hall": "B"}, **body, **thread}
            assert await status("/ask", complete) == 422
            assert await status("/ask/stream", complete) == 422
            assert await status("/casewright/invoke", {"input": complete}) == 422
            assert await status("/casewright/batch", {"inputs": [complete]}) == 422
        response = await client.post("/ask", json=waiting)
        replies = {
            "replies": {response.json()["questions"][0]["id"]: value},
            "scope": {"hall": "B"},
        }
        assert await status("/threads/w/resume", replies) == 422
        # The refused reply left the question open.
        assert open_questions((await client.get("/threads/w")).json()) == ["which one?"]
    assert not (tmp_path / "log").exists(), "no tool was called"


@pytest.mark.parametrize("thread", [{}, {"thread_id": "t"}])
async def test_largest_and_smallest_integers_of_64_bits_are_accepted(
    tmp_path: Path, thread: dict[str, str]
) -> None:
    context = {"most": 2**63 - 1, "least": -(2**63), "part": 1e300}
    async with service_client(tmp_path, threads_file=tmp_path / "threads.db") as client:
        body = {"question": QUICK, "context": context, **thread}
        assert (await client.post("/ask", json=body)).status_code == 200


async def test_tool_report_with_a_lone_surrogate_is_stored_with_a_thread(tmp_path: Path) -> None:
    async with service_client(tmp_path, threads_file=tmp_path / "threads.db") as client:
        response = await client.post("/ask", json={**plan("s1 = halved()"), "thread_id": "t"})
        assert response.status_code == 200, response.text
        assert response.json()["steps"][0]["status"] == "done"
        assert (await client.get("/threads/t")).json()["status"] == "answered"
