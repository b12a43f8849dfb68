"""The command line with a local language model as its planner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from casewright.planner import parse_plan
from tests.serve.helpers import built_home, one_line_error, result, run
from tests.support.tiny_mistral import save_tiny

#: Arguments, and a part of the error message.
INVALID: dict[str, tuple[list[str], str]] = {
    "no folder": (["--planner", "local:./nowhere"], "no folder './nowhere'"),
    "no name": (["--planner", "local:"], "names no model"),
    "a folder that is no model": (["--planner", "local:."], "config.json"),
    "a device for the case planner": (["--device", "cpu"], "no local model"),
    "examples for the case planner": (["--examples", "2"], "has no prompt"),
    "an adapter for a chat model": (["--planner", "a:b", "--adapter", "x"], "no local model"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # With so small a vocabulary, the shop's prompt with its examples has some 3,000 tokens.
    return save_tiny(
        tmp_path_factory.mktemp("model"), initializer_range=0.3, max_position_embeddings=8192
    )


def test_plan_and_ask_use_a_local_model_and_name_it_as_planner(folder: Path) -> None:
    question = "Where is my tablet?"
    options = ["--planner", f"local:{folder}", "--device", "cpu", "--dtype", "float32"]
    options += ["--examples", "0", "--json"]
    report = result(run(built_home(), "plan", question, *options))
    assert report["planner"].startswith("model:")
    assert report["fallback"] is None
    assert parse_plan(report["plan"]).tools
    answer = result(run(built_home(), "ask", question, *options))
    assert answer["plan"] == report["plan"]
    assert answer["planner"]["name"] == report["planner"]


def test_local_model_plans_the_queries_of_a_file_in_order(folder: Path, tmp_path: Path) -> None:
    lines = [json.dumps({"id": n, "query": f"Is number {n} waterproof?"}) for n in range(10)]
    source = tmp_path / "queries.jsonl"
    source.write_text("\n".join([*lines[:5], '{"id": "bad"}', *lines[5:]]), encoding="utf-8")
    options = ["--planner", f"local:{folder}", "--examples", "0"]
    completed = run(built_home(), "plan", "--input", source, *options)
    assert completed.returncode == 2
    answers = [json.loads(line) for line in completed.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [0, 1, 2, 3, 4, "bad", 5, 6, 7, 8, 9]
    for answer in answers:
        assert (answer["error"] is not None) == (answer["id"] == "bad")
        assert answer["id"] == "bad" or parse_plan(answer["plan"])
        assert answer["planner"].startswith("model:")


@pytest.mark.parametrize("case", INVALID)
def test_invalid_local_model_prints_one_line_and_exits_with_code_2(
    case: str, tmp_path: Path
) -> None:
    arguments, message = INVALID[case]
    assert message in one_line_error(run(tmp_path, "plan", "hello", *arguments))
