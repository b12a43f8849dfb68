"""A file of threads is data: reading it calls no function that it names."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import ormsgpack
import pytest

from casewright.serve.service.checkpoint_sums import CHECKSUM_BYTES
from tests.serve.service.helpers import QUICK
from tests.serve.service.in_process import service_client

pytestmark = pytest.mark.asyncio


async def test_reading_a_thread_calls_no_function_named_in_its_checkpoint(tmp_path: Path) -> None:
    file, marker = tmp_path / "threads.db", tmp_path / "ran"
    async with service_client(tmp_path, threads_file=file) as client:
        await client.post("/ask", json={"question": QUICK, "thread_id": "x"})
    call = ormsgpack.Ext(0, ormsgpack.packb(("os", "mkdir", str(marker))))
    with sqlite3.connect(file) as database:
        rows = database.execute("SELECT rowid, checkpoint FROM checkpoints").fetchall()
        for row, text in rows:
            checkpoint = ormsgpack.unpackb(text[:-CHECKSUM_BYTES])
            checkpoint["channel_values"]["question"] = call
            # Without a checksum, as an earlier version wrote it.
            values = (ormsgpack.packb(checkpoint), row)
            database.execute(
                "UPDATE checkpoints SET checkpoint = ?, type = 'msgpack' WHERE rowid = ?", values
            )
    database.close()
    async with service_client(tmp_path, threads_file=file) as client:
        response = await client.get("/threads/x")
        assert (await client.post("/threads/x/resume", json={})).status_code == 409
    assert response.status_code == 200
    assert not marker.exists()
