"""A wrong plan put right: an annotated message, added to a file of them or in its place there."""

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
#: How long another process is waited for.
SECONDS = 10.0


def corrected(
    question: str,
    plan: str,
    toolbox: Toolbox,
    context: Mapping[str, Any] | None = None,
    history: Sequence[Mapping[str, object]] = (),
    tenant: str = "",
) -> dict[str, Any]:
    """Return the annotated message of a question and its right plan, as a record.

    Args:
        question: What was asked.
        plan: The right plan's text.
        toolbox: The tools that it may use.
        context: What was known beside the question.
        history: The turns before it.
        tenant: Who puts it right, where several do: none takes the place of another's.

    Raises:
        InputError: The plan cannot be run for the question, or the question is unusable.
    """
    record: dict[str, Any] = {"query": question, "context": dict(context or {})}
    if history:
        record["history"] = [dict(turn) for turn in history]
    if tenant:
        record["tenant"] = tenant
    try:
        return checked_record({"id": message_id("c", record), **record, "plan": plan}, toolbox, ())
    except PlanError as error:
        raise InputError(f"The plan cannot be run: {error}") from error


def keep_correction(file: Path, record: Mapping[str, Any], most: int | None = None) -> Outcome:
    """Write an annotated message, in the place of the one that has its question, if there is one.

    Args:
        file: JSON Lines of annotated messages; made where it is missing.
        record: The message.
        most: Bytes that the file may have.

    Raises:
        InputError: The file cannot be read or written, holds something else, or would be too
            large.
    """
    try:
        with Lock(file.with_name(f".{file.name}.lock"), timeout=SECONDS):
            return _kept(file, record, most)
    except AlreadyLocked as error:
        raise InputError(f"{file} is written by another process. Try again.") from error
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from error


def _kept(file: Path, record: Mapping[str, Any], most: int | None) -> Outcome:
    lines = ResumedLines(file)
    if most is not None and file.exists() and file.stat().st_size + len(json_line(record)) > most:
        raise InputError(f"{file.name} is full: it may have {most:,} bytes. Move it away.")
    key = message_key(record)
    places = [index for index, item in enumerate(lines.records) if message_key(item) == key]
    if not places:
        lines.append(record)
        return "added"
    before = lines.records[places[0]]
    if before.get("plan") == record["plan"]:
        return "unchanged"
    # Its id stays, by which it may be known elsewhere.
    lines.records[places[0]] = {**record, "id": before.get("id", record["id"])}
    kept = [item for index, item in enumerate(lines.records) if index not in places[1:]]
    write_whole(file, "".join(map(json_line, kept)))
    return "replaced"
