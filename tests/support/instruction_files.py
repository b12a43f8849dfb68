"""Small files in the forms of published instruction sets; what they say was made up for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def write_lines(file: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """Write JSON Lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(json.dumps(one, ensure_ascii=False) for one in records)
    file.write_text(text + "\n", encoding="utf-8")
    return file


def write_list(file: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """Write one JSON list."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(list(records), ensure_ascii=False), encoding="utf-8")
    return file


def seed_task(asked: str, answer: str, given: str = "") -> dict[str, Any]:
    """Return a record of an instruction, the text that it is about, and its answer."""
    return {"instruction": asked, "input": given, "output": answer}


def seed_tasks(folder: Path, count: int) -> Path:
    """Write seed tasks of growing length, each with a sentence or two as its answer."""
    records = [
        seed_task(
            f"Say what grows in bed {number}." + " It lies in the sun." * (number % 17),
            f"In bed {number} there grow red onions. They need water in June.",
        )
        for number in range(count)
    ]
    return write_lines(folder / "seed_tasks.jsonl", records)


def function(name: str, required: Iterable[str] = (), /, **parameters: Any) -> dict[str, Any]:
    """Return a function of function-calling data; parameters are types or whole schemas."""
    properties = {
        key: {"type": value, "description": f"the {key}"} if isinstance(value, str) else value
        for key, value in parameters.items()
    }
    schema = {"type": "dict", "properties": properties, "required": list(required)}
    return {"name": name, "description": f"Does {name}.", "parameters": schema}


def api(
    functions: Mapping[str, str], asked: Iterable[tuple[str, list[tuple[str, str]]]], **more: Any
) -> dict[str, Any]:
    """Return an API of ToolAlpaca: function descriptions, and questions with golden calls."""
    pairs = list(asked)
    return {
        "Name": "Garden",
        "Function_Description": {**functions, "components": more.pop("components", "")},
        "Instructions": [question for question, _ in pairs],
        "Golden_Answers": [
            [{"Action": name, "Action_Input": given} for name, given in calls] for _, calls in pairs
        ],
        **more,
    }


def described(parameters: Mapping[str, str], structure: str = "", text: str = "Finds it.") -> str:
    """Return a function's description as ToolAlpaca writes it."""
    return (
        f"{text}\nParameters: {json.dumps(dict(parameters))}\nOutput: OK.\n"
        f" - Format: application/json\n - Structure: {structure}"
    )


def leaderboard(
    folder: Path, category: str, records: Iterable[tuple[str, list[Any], list[Any] | None]]
) -> Path:
    """Write a category of BFCL with its gold: questions, functions, and golden calls or nothing."""
    name = f"BFCL_v4_{category}.json"
    rows = list(records)
    questions = [
        {
            "id": f"{category}_{number}",
            "question": [[{"role": "user", "content": question}]],
            "function": functions,
        }
        for number, (question, functions, _) in enumerate(rows)
    ]
    gold = [
        {"id": f"{category}_{number}", "ground_truth": calls}
        for number, (_, _, calls) in enumerate(rows)
        if calls is not None
    ]
    if gold:
        write_lines(folder / "possible_answer" / name, gold)
    return write_lines(folder / name, questions)


def seal_tool(
    name: str, required: list[str], responses: list[str], /, **kinds: str
) -> dict[str, Any]:
    """Return a tool of Seal-Tools, with the types of its parameters."""
    return {
        "api_name": name,
        "api_description": f"Does {name}.",
        "parameters": {key: {"type": kind, "description": key} for key, kind in kinds.items()},
        "required": required,
        "responses": {key: {"type": "str", "description": key} for key in responses},
    }


def seal_call(name: str, responses: list[str], /, **parameters: Any) -> dict[str, Any]:
    """Return a golden call of Seal-Tools."""
    return {"api": name, "parameters": parameters, "responses": responses}


def seal_items(
    file: Path, items: Iterable[tuple[str, list[dict[str, Any]]]], retrieved: Iterable[str]
) -> Path:
    """Write a file of Seal-Tools: questions with golden calls, among tools that were retrieved."""
    names = list(retrieved)
    return write_lines(
        file,
        (
            {"id": f"{file.stem}-{n}", "query": query, "calling": calls, "retrieved_apis": names}
            for n, (query, calls) in enumerate(items)
        ),
    )
