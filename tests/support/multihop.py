"""A tiny multi-hop question set, in the formats of HotpotQA and MuSiQue."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Item = dict[str, Any]
#: The two towns of each question; a question needs the paragraphs of both.
TOWNS = (
    ("Adelton", "Bramwick"),
    ("Corfield", "Dunmere"),
    ("Eastry", "Falkmoor"),
    ("Gransham", "Harrowby"),
    ("Ilkworth", "Jarrowdale"),
    ("Kelbrook", "Larkhill"),
    ("Morwen", "Nettlecombe"),
    ("Oxwold", "Penhurst"),
)


def paragraph(town: str) -> list[Any]:
    return [town, [f"{town} is a town on the {town} river.", f"Its market was founded in {town}."]]


def town_items() -> list[Item]:
    """Return items in HotpotQA's format, each with four paragraphs, two of them supporting."""
    items = []
    for number, (first, second) in enumerate(TOWNS):
        others = TOWNS[(number + 1) % len(TOWNS)]
        items.append(
            {
                "_id": f"item-{number}",
                "question": f"Are {first} and {second} on one river?",
                "answer": "no",
                "supporting_facts": [[first, 0], [second, 0]],
                "context": [paragraph(town) for town in (*others, first, second)],
            }
        )
    return items


def musique_items() -> list[Item]:
    """Return the same items in the format of MuSiQue."""
    return [
        {
            "id": item["_id"],
            "question": item["question"],
            "answer": item["answer"],
            "paragraphs": [
                {
                    "idx": index,
                    "title": title,
                    "paragraph_text": " ".join(sentences),
                    "is_supporting": title in {name for name, _ in item["supporting_facts"]},
                }
                for index, (title, sentences) in enumerate(item["context"])
            ],
        }
        for item in town_items()
    ]


def write_lines(file: Path, items: Sequence[Mapping[str, Any]]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    return file


def multihop_folder(folder: Path) -> Path:
    """Write two of the three sets to a folder; return it."""
    write_lines(folder / "multihop" / "hotpotqa-dev.jsonl", town_items())
    write_lines(folder / "multihop" / "musique-dev.jsonl", musique_items())
    return folder
