"""A checkpoint is data: no function that it names is called."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.graph.helpers import QUESTION, graph_of, tool

CONFIG: Any = {"configurable": {"thread_id": "one"}}


class PlainCipher:
    """A cipher that does not encrypt."""

    def encrypt(self, text: bytes) -> tuple[str, bytes]:
        return "plain", text

    def decrypt(self, name: str, text: bytes) -> bytes:
        return text


def function_call(module: str, function: str, argument: str) -> ormsgpack.Ext:
    """Return the value that LangGraph's serializer reads as a call of a function."""
    return ormsgpack.Ext(0, ormsgpack.packb((module, function, argument)))


@pytest.mark.parametrize("serde", [JsonPlusSerializer(), EncryptedSerializer(PlainCipher())])
@pytest.mark.parametrize("table", ["checkpoints", "writes"])
def test_graph_calls_no_function_that_a_checkpoint_names(
    tmp_path: Path, serde: Any, table: str
) -> None:
    file = tmp_path / "threads.db"
    marker = tmp_path / "ran"
    with SqliteSaver.from_conn_string(str(file)) as saver:
        saver.serde = serde
        graph_of([tool("quick", lambda *_: "x")], "s1 = quick()", checkpointer=saver).invoke(
            {"question": QUESTION}, CONFIG
        )
    column = "checkpoint" if table == "checkpoints" else "value"
    with sqlite3.connect(file) as connection:
        query = f"SELECT rowid, {column} FROM {table} WHERE type LIKE 'msgpack%'"
        rows = connection.execute(query).fetchall()
        assert rows
        for row_id, payload in rows:
            hostile: Any = function_call("os", "mkdir", str(marker))
            if table == "checkpoints":
                hostile = {**ormsgpack.unpackb(payload), "channel_values": {"question": hostile}}
            packed = ormsgpack.packb(hostile)
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (packed, row_id))
    connection.close()
    with SqliteSaver.from_conn_string(str(file)) as saver:
        saver.serde = serde
        graph = graph_of([tool("quick", lambda *_: "x")], "s1 = quick()", checkpointer=saver)
        graph.get_state(CONFIG)
        list(graph.get_state_history(CONFIG))
        assert not marker.exists()
        # The caller's checkpointer keeps its serializer.
        assert saver.serde is serde


def test_graph_keeps_a_serializer_with_listed_types() -> None:
    saver = InMemorySaver(
        serde=JsonPlusSerializer(allowed_msgpack_modules=[("fractions", "Fraction")])
    )
    graph = graph_of([tool("quick", lambda *_: "x")], "s1 = quick()", checkpointer=saver)
    assert graph.checkpointer.serde is saver.serde
