"""The corpus: a JSON file a toolbox, split by toolbox, and the second reading of its plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from casewright.errors import CasewrightError, InputError
from casewright.finetune.records import first_problem, read_records
from casewright.finetune.shots import plain
from casewright.finetune.tool_pools import ToolPool
from casewright.planner import AnnotatedQuery
from casewright.tools import Toolbox
from casewright.tools.from_record import read_tool

Split = Literal["training", "validation", "measuring"]
SPLITS: tuple[Split, ...] = get_args(Split)
#: Where the corpus that ships is.
FOLDER = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class CorpusToolbox:
    """A toolbox of the corpus.

    Attributes:
        name: Unique in the corpus.
        field: Whose tools these are, and who asks.
        writer: Who wrote it; one writer's messages have one voice.
        split: What it is for. Toolboxes for ``measuring`` take no part in training or tuning.
        toolbox: The tools.
        pools: Other names and descriptions, by tool.
        queries: Annotated messages, whose plans are valid for the toolbox.
    """

    name: str
    field: str
    writer: str
    split: Split
    toolbox: Toolbox
    pools: Mapping[str, ToolPool]
    queries: tuple[AnnotatedQuery, ...]


class _File(BaseModel):
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
    """Read the toolboxes of these splits, all without any, in the order of their names.

    Args:
        splits: Which toolboxes.
        folder: Another corpus of the same form.

    Raises:
        InputError: A file is no toolbox of a corpus, or a plan is not valid for its tools; names
            the file and the message.
    """
    files = sorted(folder.glob("*.json"))
    if not files:
        raise InputError(f"{folder} holds no toolboxes. Give a folder of JSON files.")
    facts = ((file, _told(file)) for file in files)
    return [_read(file, item) for file, item in facts if not splits or item.split in splits]


def training_toolboxes(folder: Path = FOLDER) -> list[CorpusToolbox]:
    """Read the toolboxes for training, without messages that one of another split has, too.

    Writers have no sight of each other: a greeting may be in two splits word for word.

    Raises:
        InputError: As ``read_corpus``.
    """
    boxes = read_corpus(folder=folder)
    held = {plain(q.query) for box in boxes if box.split != "training" for q in box.queries}
    return [
        replace(box, queries=tuple(q for q in box.queries if plain(q.query) not in held))
        for box in boxes
        if box.split == "training"
    ]


def _told(file: Path) -> _File:
    try:
        return _File.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise InputError(f"{file}: {first_problem(error)}") from error
    except OSError as error:
        raise InputError(f"{file}: {error}") from error


def _read(file: Path, told: _File) -> CorpusToolbox:
    try:
        toolbox = Toolbox(read_tool(tool, exact=True) for tool in told.tools)
        queries = tuple(map(AnnotatedQuery.read, told.queries))
    except CasewrightError as error:
        raise InputError(f"{file}: {error}") from error
    for query in queries:
        try:
            query.record.request(toolbox).validate(query.plan)
        except CasewrightError as error:
            raise InputError(f"{file}: {query.record.id}: {error}") from error
    return CorpusToolbox(
        told.name, told.field, told.writer, told.split, toolbox, told.pools, queries
    )


#: That of the corpus that ships.
FILE = Path(__file__).parent / "second_reading.jsonl"


class Reading(BaseModel):
    """One message, read again.

    Attributes:
        id: The message's.
        verdict: The plan was right, was mended, or the message was taken out.
        why: What was wrong.
        plan: The plan before it was mended.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    verdict: Literal["right", "mended", "dropped"]
    why: str = ""
    plan: str = ""

    @property
    def toolbox(self) -> str:
        """The toolbox of the message, which is its id without its number."""
        return self.id.rpartition("-")[0]


def read_second_reading(file: Path = FILE) -> Sequence[Reading]:
    """Read the rows of a second reading, JSON Lines.

    Raises:
        InputError: The file cannot be read, or a line has another form; names the line.
    """
    mend = "A line is an object of id, verdict (right, mended or dropped), why and plan."
    return [reading for _, reading in read_records(file, Reading, mend)]
