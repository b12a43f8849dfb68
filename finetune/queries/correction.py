"""Corrected plans, kept as annotated messages in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from portalocker import AlreadyLocked, Lock

from casewright.errors import InputError, PlanError
from casewright.finetune.queries.annotation import checked_record
from casewright.finetune.queries.drafts import message_id, message_key
from casewright.finetune.queries.query_files import ResumedLines, json_line
from casewright.stores.whole_file import write_whole
from casewright.tools import Toolbox

Outcome = Literal["added", "replaced", "unchanged"]
#: How long to wait for the file's lock.
SECONDS = 10.0


def corrected(
    question: str,
    plan: str,
    toolbox: Toolbox,
    context: Mapping[str, Any] | None = None,
    history: Sequence[Mapping[str, object]] = (),
    tenant: str = "",
) -> dict[str, Any]:
    """Return a question with its correct plan as an annotated message's record.

    Raises ``InputError`` if the plan is not valid for the question, or the question is not valid.

    Args:
        plan: The plan's text.
        history: The turns before the question.
        tenant: The author, or empty. A correction replaces only messages of its own tenant.
    """
    record: dict[str, Any] = {"query": question, "context": dict(context or {})}
    record |= {"history": [dict(turn) for turn in history]} if history else {}
    record |= {"tenant": tenant} if tenant else {}
    try:
        return checked_record({"id": message_id("c", record), **record, "plan": plan}, toolbox, ())
    except PlanError as error:
        raise InputError(f"The plan cannot be run: {error}") from error


def keep_correction(file: Path, record: Mapping[str, Any], most: int | None = None) -> Outcome:
    """Add an annotated message to a file, or replace the message with the same ``message_key``.

    Raises ``InputError`` if the file cannot be read or written, is full, or has a line that is no
    annotated message.

    Args:
        file: JSON Lines of annotated messages; created if missing.
        most: Largest size of the file, in bytes.
    """
    try:
        with Lock(file.with_name(f".{file.name}.lock"), timeout=SECONDS):
            return _keep(file, record, most)
    except AlreadyLocked as error:
        raise InputError(f"{file} is written by another process. Try again.") from error
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from error


def _keep(file: Path, record: Mapping[str, Any], most: int | None) -> Outcome:
    lines = ResumedLines(file)
    if most is not None and file.exists() and file.stat().st_size + len(json_line(record)) > most:
        raise InputError(f"{file.name} is full: it may have {most:,} bytes. Move it away.")
    key = message_key(record)
    same = [index for index, item in enumerate(lines.records) if message_key(item) == key]
    if not same:
        lines.append(record)
        return "added"
    before = lines.records[same[0]]
    if before.get("plan") == record["plan"]:
        return "unchanged"
    # The id stays: other files may refer to it.
    lines.records[same[0]] = {**record, "id": before.get("id", record["id"])}
    records = [item for index, item in enumerate(lines.records) if index not in same[1:]]
    write_whole(file, "".join(map(json_line, records)))
    return "replaced"
