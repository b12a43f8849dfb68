"""What no checkpointer and no UTF-8 can keep is refused with 422, whatever the request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.serve.service.helpers import QUICK, asked_of, plan
from tests.serve.service.in_process import asking

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
async def test_a_value_that_cannot_be_kept_is_refused_in_every_request(
    tmp_path: Path, value: Any, thread: dict[str, str]
) -> None:
    served = {"threads_file": tmp_path / "threads.db", "langserve": True, "scopes": {"hall": []}}
    waits = {**plan("s1 = asks()"), "thread_id": "w", "scope": {"hall": "B"}}
    async with asking(tmp_path, **served) as client:

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
        assert asked_of((await client.get("/threads/w")).json()) == ["which one?"]
    assert not (tmp_path / "log").exists(), "no tool was called"


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("thread", [{}, {"thread_id": "t"}])
async def test_the_largest_numbers_that_are_kept_are_taken(
    tmp_path: Path, thread: dict[str, str]
) -> None:
    context = {"most": 2**63 - 1, "least": -(2**63), "part": 1e300}
    async with asking(tmp_path, threads_file=tmp_path / "threads.db") as client:
        body = {"question": QUICK, "context": context, **thread}
        assert (await client.post("/ask", json=body)).status_code == 200


async def test_what_a_tool_tells_is_kept_with_a_thread_too(tmp_path: Path) -> None:
    async with asking(tmp_path, threads_file=tmp_path / "threads.db") as client:
        told = await client.post("/ask", json={**plan("s1 = halved()"), "thread_id": "t"})
        assert told.status_code == 200, told.text
        assert told.json()["steps"][0]["status"] == "done"
        assert (await client.get("/threads/t")).json()["status"] == "answered"
