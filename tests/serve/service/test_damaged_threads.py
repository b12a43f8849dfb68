"""The service reports damage in a file of threads, and returns no altered answer."""

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
BODY = {"question": QUICK, "thread_id": "x"}
KEY = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}
OTHER = QUICK.replace("phone", "table")


async def write_answered_thread(folder: Path) -> Path:
    file = folder / "threads.db"
    async with service_client(folder, threads_file=file) as client:
        assert (await client.post("/ask", json=BODY, headers=KEY)).is_success
    return file


def replace_word(file: Path, table: str, column: str) -> None:
    """Replace a word of the question."""
    with closing(sqlite3.connect(file)) as database:
        rows = database.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        for row, value in rows:
            text = value.encode() if isinstance(value, str) else value
            replaced = text.replace(QUICK.encode(), OTHER.encode())
            database.execute(
                f"UPDATE {table} SET {column} = ? WHERE rowid = ?",
                (replaced.decode() if isinstance(value, str) else replaced, row),
            )
        database.commit()


def halve(file: Path, table: str, column: str) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute(f"UPDATE {table} SET {column} = substr({column}, 1, length({column}) / 2)")
        database.commit()


@pytest.mark.parametrize(
    ("damage", "column"), [(replace_word, "checkpoint"), (halve, "checkpoint"), (halve, "metadata")]
)
async def test_damaged_thread_is_reported_and_can_be_deleted(
    tmp_path: Path, damage: Callable[[Path, str, str], None], column: str
) -> None:
    file = await write_answered_thread(tmp_path)
    damage(file, "checkpoints", column)
    async with service_client(tmp_path, threads_file=file) as client:
        for response in (
            await client.get("/threads/x"),
            await client.post("/threads/x/resume", json={}),
        ):
            assert response.status_code == 500
            assert "thread is damaged" in response.json()["detail"]
        assert (await client.delete("/threads/x")).status_code == 204
        assert (await client.post("/ask", json=BODY)).status_code == 200


async def test_a_damaged_answer_of_a_repeated_request_is_not_returned(tmp_path: Path) -> None:
    file = await write_answered_thread(tmp_path)
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE store SET value = replace(value, 'memory', 'mammon')")
        database.commit()
    async with service_client(tmp_path, threads_file=file) as client:
        repeated = await client.post("/ask", json=BODY, headers=KEY)
        assert repeated.status_code == 500
        assert "is damaged" in repeated.json()["detail"]


@pytest.mark.parametrize("name", [b"checkpoint BLOB", b"type TEXT"])
async def test_thread_is_reported_as_damaged_when_a_column_is_renamed(
    tmp_path: Path, name: bytes
) -> None:
    file = await write_answered_thread(tmp_path)
    file.write_bytes(file.read_bytes().replace(name, b"a" + name[1:]))
    async with service_client(tmp_path, threads_file=file) as client:
        response = await client.get("/threads/x")
    assert (response.status_code, "is damaged" in response.json()["detail"]) == (500, True)


def zero_half(data: bytearray) -> None:
    data[4096 : len(data) // 2] = bytes(len(data) // 2 - 4096)


def break_utf8(data: bytearray) -> None:
    """Break a word of the schema, which SQLite repeats in its error."""
    data[data.index(b"NOT NULL") + len(b"NOT NULL")] = 0xAC


@pytest.mark.parametrize("damage", [zero_half, break_utf8])
async def test_service_refuses_to_start_with_a_file_that_sqlite_finds_damaged(
    tmp_path: Path, damage: Callable[[bytearray], None]
) -> None:
    file = await write_answered_thread(tmp_path)
    data = bytearray(file.read_bytes())
    damage(data)
    file.write_bytes(data)
    with pytest.raises(InputError, match="is damaged: "):
        async with service_client(tmp_path, threads_file=file):
            pass
