"""The corpus: a JSON file for each toolbox, and a file of a second reader's reviews of plans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from casewright.errors import CasewrightError, InputError
from casewright.finetune.neighbours import question_key
from casewright.finetune.records import first_problem, read_records
from casewright.finetune.tool_pools import ToolPool
from casewright.planner import AnnotatedQuery
from casewright.tools import Toolbox
from casewright.tools.from_file import read_tool, toolbox_to_records

Split = Literal["training", "validation", "measuring"]
SPLITS: tuple[Split, ...] = get_args(Split)
#: The folder of the packaged corpus, and the file of a second reader's reviews of its plans.
FOLDER = Path(__file__).parent / "data"
SECOND_READING = Path(__file__).parent / "second_reading.jsonl"


@dataclass(frozen=True, slots=True)
class CorpusToolbox:
    """A toolbox of the corpus.

    Attributes:
        field: The field of work: who owns and uses the tools.
        writer: The author; the messages of one author have one style.
        split: ``measuring`` toolboxes are the test set; no training or tuning uses them.
        pools: Alternative names and descriptions of each tool, by the tool's name.
        queries: Annotated messages with valid plans.
    """

    name: str
    field: str
    writer: str
    split: Split
    toolbox: Toolbox
    pools: Mapping[str, ToolPool]
    queries: tuple[AnnotatedQuery, ...]


class _ToolboxFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    field: str
    style: str
    writer: str
    split: Split
    tools: list[dict[str, Any]]
    pools: dict[str, ToolPool]
    queries: list[dict[str, Any]]


def read_corpus(*splits: Split, folder: Path = FOLDER) -> list[CorpusToolbox]:
    """Return the toolboxes of these splits, by default of all, in the order of their file names.

    ``InputError`` names a malformed file, or a message whose plan is invalid for its tools.
    """
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise InputError(f"{folder} holds no toolboxes. Give a folder of JSON files.")
    files = ((path, _load_file(path)) for path in paths)
    return [_read_toolbox(path, file) for path, file in files if not splits or file.split in splits]


def training_toolboxes(*, follow_ups: bool = True) -> list[CorpusToolbox]:
    """Return the toolboxes for training, without questions that are also in other splits.

    If ``follow_ups`` is false, messages that need the history of a conversation are left out.
    """
    boxes = read_corpus()
    held_out = {question_key(q.query) for b in boxes if b.split != "training" for q in b.queries}

    def is_usable(query: AnnotatedQuery) -> bool:
        is_included = follow_ups or not query.record.history
        return is_included and question_key(query.query) not in held_out

    training = [box for box in boxes if box.split == "training"]
    return [replace(box, queries=tuple(filter(is_usable, box.queries))) for box in training]


def _load_file(path: Path) -> _ToolboxFile:
    try:
        return _ToolboxFile.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(f"{path}: {first_problem(error)}") from error
    except OSError as error:
        raise InputError(f"{path}: {error}") from error


def _read_toolbox(path: Path, file: _ToolboxFile) -> CorpusToolbox:
    message_prefix = ""
    try:
        toolbox = Toolbox(read_tool(tool, exact=True) for tool in file.tools)
        queries = tuple(map(AnnotatedQuery.read, file.queries))
        for query in queries:
            message_prefix = f"{query.record.id}: "
            query.record.request(toolbox).validate(query.plan)
    except CasewrightError as error:
        raise InputError(f"{path}: {message_prefix}{error}") from error
    return CorpusToolbox(
        file.name, file.field, file.writer, file.split, toolbox, file.pools, queries
    )


def export_corpus(boxes: Iterable[CorpusToolbox], folder: Path) -> list[Path]:
    """Write each toolbox to a subfolder of an empty or new folder; return the subfolders."""
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(f"{folder} is not empty. Give a folder that does not exist yet.")
        return [_export(box, folder / box.split / box.name) for box in boxes]
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error}. Give a folder that you may write."
        ) from error


def _export(box: CorpusToolbox, folder: Path) -> Path:
    dump = partial(json.dumps, ensure_ascii=False)
    options: dict[str, Any] = {"mode": "json", "exclude_defaults": True}
    pools = {name: pool.model_dump(**options) for name, pool in box.pools.items()}
    files = {
        "tools.json": dump({"tools": toolbox_to_records(box.toolbox)}, indent=2),
        "queries.jsonl": "\n".join(dump(_query_record(query)) for query in box.queries),
        "pools.json": dump(pools, indent=2),
    }
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    return folder


def _query_record(query: AnnotatedQuery) -> dict[str, Any]:
    return {
        **query.record.model_dump(mode="json", exclude_defaults=True),
        "plan": str(query.plan),
        "class": query.label,
        **({"must": dict(query.must)} if query.must else {}),
        **({"accept": query.accept} if query.accept else {}),
    }


class Reading(BaseModel):
    """The review of a message's plan by a second reader.

    Attributes:
        id: The message's id.
        verdict: ``right``, ``mended`` (corrected), or ``dropped`` (removed with its message).
        why: The reason for the verdict.
        plan: The plan before its correction; empty if it was not corrected.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    verdict: Literal["right", "mended", "dropped"]
    why: str = ""
    plan: str = ""

    @property
    def toolbox(self) -> str:
        """The name of the message's toolbox: the message's id without its number."""
        return self.id.rpartition("-")[0]


def read_second_reading(file: Path = SECOND_READING) -> list[Reading]:
    """Return the reviews in a file of JSON Lines; ``InputError`` names the number of a bad line."""
    advice = "A line is an object of id, verdict (right, mended or dropped), why and plan."
    return [reading for _, reading in read_records(file, Reading, advice)]
