"""Toolboxes of the corpus as files that the other commands take."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.corpus.corpus import CorpusToolbox
from casewright.planner import AnnotatedQuery
from casewright.tools.from_file import toolbox_to_records

#: What a toolbox's folder holds.
TOOLS, QUERIES, POOLS = "tools.json", "queries.jsonl", "pools.json"


def export_corpus(boxes: Iterable[CorpusToolbox], folder: Path) -> list[Path]:
    """Write a folder a toolbox, by its split and name: tools, annotated queries and pools.

    Returns:
        The folders.

    Raises:
        InputError: The folder holds something already, or cannot be written.
    """
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(f"{folder} is not empty. Give a folder that is not there yet.")
        return [_export(box, folder / box.split / box.name) for box in boxes]
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error}. Give a folder that you may write."
        ) from error


def _export(box: CorpusToolbox, folder: Path) -> Path:
    folder.mkdir(parents=True)
    pools = {
        name: pool.model_dump(mode="json", exclude_defaults=True)
        for name, pool in box.pools.items()
    }
    _write(folder / TOOLS, _text({"tools": toolbox_to_records(box.toolbox)}, indent=2))
    _write(folder / QUERIES, "\n".join(_text(_record(query)) for query in box.queries))
    _write(folder / POOLS, _text(pools, indent=2))
    return folder


def _record(query: AnnotatedQuery) -> dict[str, Any]:
    return {
        **query.record.model_dump(mode="json", exclude_defaults=True),
        "plan": str(query.plan),
        "class": query.label,
        **({"must": {k: list(v) for k, v in query.must.items()}} if query.must else {}),
        **({"accept": [list(tools) for tools in query.accept]} if query.accept else {}),
    }


def _text(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _write(file: Path, text: str) -> None:
    file.write_text(text + "\n", encoding="utf-8")
