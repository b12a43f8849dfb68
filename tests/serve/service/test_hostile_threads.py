"""A file of threads is data: looking at a thread calls nothing that its checkpoint names."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import ormsgpack
import pytest

from casewright.serve.service.checkpoint_sums import BYTES
from tests.serve.service.helpers import QUICK
from tests.serve.service.in_process import service_client

pytestmark = pytest.mark.asyncio


async def test_reading_a_thread_calls_no_function_named_in_its_checkpoint(tmp_path: Path) -> None:
    file, ran = tmp_path / "threads.db", tmp_path / "ran"
    async with service_client(tmp_path, threads_file=file) as client:
        await client.post("/ask", json={"question": QUICK, "thread_id": "x"})
    call = ormsgpack.Ext(0, ormsgpack.packb(("os", "mkdir", str(ran))))
    with sqlite3.connect(file) as opened:
        rows = opened.execute("SELECT rowid, checkpoint FROM checkpoints").fetchall()
        for row, text in rows:
            whole = ormsgpack.unpackb(text[:-BYTES])
            whole["channel_values"]["question"] = call
            # As an earlier version wrote it, without a checksum.
            changed = (ormsgpack.packb(whole), row)
            opened.execute(
                "UPDATE checkpoints SET checkpoint = ?, type = 'msgpack' WHERE rowid = ?", changed
            )
    opened.close()
    async with service_client(tmp_path, threads_file=file) as client:
        told = await client.get("/threads/x")
        assert (await client.post("/threads/x/resume", json={})).status_code == 409
    assert told.status_code == 200
    assert not ran.exists()
