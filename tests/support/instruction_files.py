"""Small files in the formats of published instruction sets, with invented contents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def write_lines(file: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """Write records as JSON Lines; return the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    file.write_text(text + "\n", encoding="utf-8")
    return file


def write_list(file: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """Write records as one JSON list; return the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(list(records), ensure_ascii=False), encoding="utf-8")
    return file


def seed_task(instruction: str, output: str, text: str = "") -> dict[str, Any]:
    """Return a record of an instruction, its input text, and its output."""
    return {"instruction": instruction, "input": text, "output": output}


def seed_tasks(folder: Path, count: int) -> Path:
    """Write ``count`` seed tasks of different lengths; each answer has two sentences."""
    records = [
        seed_task(
            f"Say what grows in bed {number}." + " It lies in the sun." * (number % 17),
            f"In bed {number} there grow red onions. They need water in June.",
        )
        for number in range(count)
    ]
    return write_lines(folder / "seed_tasks.jsonl", records)


def function(name: str, required: Iterable[str] = (), /, **parameters: Any) -> dict[str, Any]:
    """Return a function of function-calling data; parameters are names of types, or schemas."""
    properties = {
        key: {"type": value, "description": f"the {key}"} if isinstance(value, str) else value
        for key, value in parameters.items()
    }
    schema = {"type": "dict", "properties": properties, "required": list(required)}
    return {"name": name, "description": f"Does {name}.", "parameters": schema}


def api(
    functions: Mapping[str, str],
    questions: Iterable[tuple[str, list[tuple[str, str]]]],
    **fields: Any,
) -> dict[str, Any]:
    """Return an API of ToolAlpaca: function descriptions, and questions with gold calls.

    ``fields`` are more fields of the record; ``components`` goes to the descriptions.
    """
    pairs = list(questions)
    return {
        "Name": "Garden",
        "Function_Description": {**functions, "components": fields.pop("components", "")},
        "Instructions": [question for question, _ in pairs],
        "Golden_Answers": [
            [{"Action": name, "Action_Input": text} for name, text in calls] for _, calls in pairs
        ],
        **fields,
    }


def described(parameters: Mapping[str, str], structure: str = "", text: str = "Finds it.") -> str:
    """Return a function's description in the format of ToolAlpaca."""
    return (
        f"{text}\nParameters: {json.dumps(dict(parameters))}\nOutput: OK.\n"
        f" - Format: application/json\n - Structure: {structure}"
    )


def leaderboard(
    folder: Path, category: str, records: Iterable[tuple[str, list[Any], list[Any] | None]]
) -> Path:
    """Write a category of BFCL; return the file of questions.

    A record has a question, its functions, and its gold calls, which may be ``None``.
    """
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
    """Return a gold call of Seal-Tools."""
    return {"api": name, "parameters": parameters, "responses": responses}


def seal_items(
    file: Path, items: Iterable[tuple[str, list[dict[str, Any]]]], retrieved: Iterable[str]
) -> Path:
    """Write a file of Seal-Tools: questions with gold calls, and the names of retrieved tools."""
    names = list(retrieved)
    return write_lines(
        file,
        (
            {"id": f"{file.stem}-{n}", "query": query, "calling": calls, "retrieved_apis": names}
            for n, (query, calls) in enumerate(items)
        ),
    )
