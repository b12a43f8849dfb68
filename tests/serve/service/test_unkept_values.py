"""Values that checkpointers or UTF-8 cannot store are refused with 422 in every request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.serve.service.helpers import QUICK, open_questions, plan
from tests.serve.service.in_process import service_client

pytestmark = pytest.mark.asyncio
HALF = "half of a pair: \ud83d"
VALUES = [2**63, -(2**63) - 1, 10**400, HALF, [{"a": [HALF]}], {HALF: 1}]


def bodies(value: Any) -> list[dict[str, Any]]:
    """Questions that hold a value wherever one may stand."""
    made: list[dict[str, Any]] = [{"question": QUICK, "context": {"a": value}}]
    if isinstance(value, str):
        made += [
            {"question": value},
            {"question": QUICK, "history": [{"question": value, "answer": "a"}]},
            {"question": QUICK, "history": [{"question": "q", "answer": value}]},
            {"question": QUICK, "scope": {"hall": value}},
        ]
    return made


@pytest.mark.parametrize(
    "value", VALUES, ids=lambda value: str(value)[:12].encode("ascii", "replace")
)
@pytest.mark.parametrize("thread", [{}, {"thread_id": "t"}])
async def test_value_that_cannot_be_stored_is_refused_in_every_request(
    tmp_path: Path, value: Any, thread: dict[str, str]
) -> None:
    served = {"threads_file": tmp_path / "threads.db", "langserve": True, "scopes": {"hall": []}}
    waits = {**plan("s1 = asks()"), "thread_id": "w", "scope": {"hall": "B"}}
    async with service_client(tmp_path, **served) as client:

        async def status(path: str, body: Any) -> int:
            sent = json.dumps(body).encode()
            return (await client.post(path, content=sent, headers=JSON)).status_code

        for body in bodies(value):
            whole = {"scope": {"hall": "B"}, **body, **thread}
            assert await status("/ask", whole) == 422
            assert await status("/ask/stream", whole) == 422
            assert await status("/casewright/invoke", {"input": whole}) == 422
            assert await status("/casewright/batch", {"inputs": [whole]}) == 422
        told = await client.post("/ask", json=waits)
        reply = {
            "replies": {told.json()["questions"][0]["id"]: value},
            "scope": {"hall": "B"},
        }
        assert await status("/threads/w/resume", reply) == 422
        # It was not given: the question is open.
        assert open_questions((await client.get("/threads/w")).json()) == ["which one?"]
    assert not (tmp_path / "log").exists(), "no tool was called"


JSON = {"Content-Type": "application/json"}


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
        told = await client.post("/ask", json={**plan("s1 = halved()"), "thread_id": "t"})
        assert told.status_code == 200, told.text
        assert told.json()["steps"][0]["status"] == "done"
        assert (await client.get("/threads/t")).json()["status"] == "answered"
