"""Stores messages with their corrected plans in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from portalocker import AlreadyLocked, Lock

from casewright.errors import InputError, PlanError
from casewright.finetune.queries.annotation import checked_record
from casewright.finetune.queries.drafts import message_id, message_key
from casewright.finetune.queries.query_files import QueryFile, json_line
from casewright.stores.whole_file import write_whole
from casewright.tools import Toolbox

#: The effect of a correction on the file.
Outcome = Literal["added", "replaced", "unchanged"]
#: Maximum seconds to wait for the file's lock.
LOCK_SECONDS = 10.0


def correction_record(
    question: str,
    plan: str,
    toolbox: Toolbox,
    context: Mapping[str, Any] | None = None,
    history: Sequence[Mapping[str, object]] = (),
    tenant: str = "",
) -> dict[str, Any]:
    """Return a question with its correct plan as an annotated message's record.

    ``history`` has the turns before the question. ``tenant`` is the author's tenant, or empty; a
    correction replaces only a message with the same tenant. ``InputError`` if the question is not
    valid, or the plan is not valid for the question.
    """
    record: dict[str, Any] = {"query": question, "context": dict(context or {})}
    optional_fields = {"history": [dict(turn) for turn in history], "tenant": tenant}
    record |= {name: value for name, value in optional_fields.items() if value}
    record = {"id": message_id("c", record), **record, "plan": plan}
    try:
        return checked_record(record, toolbox, classes=())
    except PlanError as error:
        raise InputError(f"The plan cannot be run: {error}") from error


def keep_correction(file: Path, record: Mapping[str, Any], max_bytes: int | None = None) -> Outcome:
    """Add an annotated message to a file, or replace the message with the same ``message_key``.

    The file holds annotated messages as JSON Lines; a missing file is created. ``InputError`` if
    the file cannot be read or written, would grow above ``max_bytes`` bytes, or is malformed.
    """
    try:
        with Lock(file.with_name(f".{file.name}.lock"), timeout=LOCK_SECONDS):
            return _add_or_replace(file, record, max_bytes)
    except AlreadyLocked as error:
        raise InputError(f"Another process is writing to {file}. Try again.") from error
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from error


def _add_or_replace(file: Path, record: Mapping[str, Any], max_bytes: int | None) -> Outcome:
    query_file = QueryFile(file)
    if (
        max_bytes is not None
        and file.exists()
        and file.stat().st_size + len(json_line(record).encode()) > max_bytes
    ):
        raise InputError(f"{file.name} is full: the limit is {max_bytes:,} bytes. Move it away.")
    key = message_key(record)
    indices = [i for i, stored in enumerate(query_file.records) if message_key(stored) == key]
    if not indices:
        query_file.append(record)
        return "added"
    first_index, *duplicate_indices = indices
    previous = query_file.records[first_index]
    if previous.get("plan") == record["plan"]:
        return "unchanged"
    # The message keeps its id, since other files may refer to this id.
    query_file.records[first_index] = {**record, "id": previous.get("id", record["id"])}
    records = [r for i, r in enumerate(query_file.records) if i not in duplicate_indices]
    write_whole(file, "".join(map(json_line, records)))
    return "replaced"
