"""A damaged file of threads is reported as damaged and returns no changed answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from casewright.errors import InputError
from tests.serve.service.helpers import QUICK
from tests.serve.service.in_process import service_client

pytestmark = pytest.mark.asyncio
ASKED = {"question": QUICK, "thread_id": "x"}
KEY = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}
OTHER = QUICK.replace("phone", "table")


async def answered_thread_file(folder: Path) -> Path:
    file = folder / "threads.db"
    async with service_client(folder, threads_file=file) as client:
        assert (await client.post("/ask", json=ASKED, headers=KEY)).is_success
    return file


def replaced(file: Path, table: str, column: str) -> None:
    """Replace a word of what was asked."""
    with closing(sqlite3.connect(file)) as opened:
        rows = opened.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        for row, value in rows:
            text = value.encode() if isinstance(value, str) else value
            other = text.replace(QUICK.encode(), OTHER.encode())
            opened.execute(
                f"UPDATE {table} SET {column} = ? WHERE rowid = ?",
                (other.decode() if isinstance(value, str) else other, row),
            )
        opened.commit()


def cut(file: Path, table: str, column: str) -> None:
    with closing(sqlite3.connect(file)) as opened:
        opened.execute(f"UPDATE {table} SET {column} = substr({column}, 1, length({column}) / 2)")
        opened.commit()


@pytest.mark.parametrize(
    ("damage", "column"), [(replaced, "checkpoint"), (cut, "checkpoint"), (cut, "metadata")]
)
async def test_damaged_thread_is_reported_and_can_be_deleted(
    tmp_path: Path, damage: Callable[[Path, str, str], None], column: str
) -> None:
    file = await answered_thread_file(tmp_path)
    damage(file, "checkpoints", column)
    async with service_client(tmp_path, threads_file=file) as client:
        for reply in (
            await client.get("/threads/x"),
            await client.post("/threads/x/resume", json={}),
        ):
            assert reply.status_code == 500
            assert "thread is damaged" in reply.json()["detail"]
        assert (await client.delete("/threads/x")).status_code == 204
        assert (await client.post("/ask", json=ASKED)).status_code == 200


async def test_a_damaged_answer_of_a_repeated_request_is_not_returned(tmp_path: Path) -> None:
    file = await answered_thread_file(tmp_path)
    with closing(sqlite3.connect(file)) as opened:
        opened.execute("UPDATE store SET value = replace(value, 'memory', 'mammon')")
        opened.commit()
    async with service_client(tmp_path, threads_file=file) as client:
        again = await client.post("/ask", json=ASKED, headers=KEY)
        assert again.status_code == 500
        assert "is damaged" in again.json()["detail"]


@pytest.mark.parametrize("name", [b"checkpoint BLOB", b"type TEXT"])
async def test_thread_is_reported_as_damaged_when_a_column_is_renamed(
    tmp_path: Path, name: bytes
) -> None:
    file = await answered_thread_file(tmp_path)
    file.write_bytes(file.read_bytes().replace(name, b"a" + name[1:]))
    async with service_client(tmp_path, threads_file=file) as client:
        told = await client.get("/threads/x")
    assert (told.status_code, "is damaged" in told.json()["detail"]) == (500, True)


def zeroed(data: bytearray) -> None:
    data[4096 : len(data) // 2] = bytes(len(data) // 2 - 4096)


def no_utf8(data: bytearray) -> None:
    """Break a word of the schema, which SQLite quotes as it is."""
    data[data.index(b"NOT NULL") + len(b"NOT NULL")] = 0xAC


@pytest.mark.parametrize("damage", [zeroed, no_utf8])
async def test_service_refuses_to_start_with_a_file_that_sqlite_finds_damaged(
    tmp_path: Path, damage: Callable[[bytearray], None]
) -> None:
    file = await answered_thread_file(tmp_path)
    data = bytearray(file.read_bytes())
    damage(data)
    file.write_bytes(data)
    with pytest.raises(InputError, match="is damaged: "):
        async with service_client(tmp_path, threads_file=file):
            pass
