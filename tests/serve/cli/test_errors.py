from __future__ import annotations

import json
from pathlib import Path

import pytest

from casewright.domains import domain_names
from tests.serve.helpers import Output, one_line_error, run

DOMAINS = f"Domains are: {', '.join(domain_names())}; name your own as FILE.py:NAME"
#: Arguments, and a part of the error message.
INVALID: dict[str, tuple[list[str], str]] = {
    "empty question": (["ask", ""], "question is empty"),
    "blank question": (["plan", " \n "], "question is empty"),
    "too long a question": (["ask", "x" * 100_000], "100,000 characters"),
    "too long a question to plan": (["plan", "x" * 100_000], "100,000 characters"),
    "unknown domain": (["ask", "hello", "--domain", "nope"], DOMAINS),
    "unknown domain to build": (["domains", "--build", "nope"], DOMAINS),
    "unknown domain to measure": (["bench", "planner", "-d", "nope"], DOMAINS),
    "unknown planner": (["ask", "hello", "--planner", "nope"], "Planners are: agent"),
    "unknown planner to measure": (["bench", "planner", "--planner", "no"], "Planners are: agent"),
    "unknown generator": (["ask", "hello", "--generator", "no"], "Generators are: extractive"),
    "planner without its package": (["plan", "hello", "--planner", "nope:model"], "nope:model"),
    "generator without its package": (["ask", "hi", "--generator", "nope:model"], "nope:model"),
    "planner without a model": (["plan", "hello", "--planner", "openai:"], "provider:model"),
    "unknown customer": (["ask", "hello", "--customer", "C999"], "C001, C002, C003"),
    "context that is no JSON": (["ask", "hello", "--context", "{nope"], "--context is not JSON"),
    "context that is a list": (["ask", "hello", "--context", "[1]"], "not a JSON object"),
    "context that is null": (["plan", "hello", "--context", "null"], "not a JSON object"),
    "context with NaN": (["plan", "hello", "--context", '{"a": NaN}'], "JSON"),
    "context nested deeply": (
        ["ask", "hello", "--context", '{"a": ' + "[" * 60_000 + "]" * 60_000 + "}"],
        "--context is not JSON",
    ),
    "context that is no Unicode text": (
        ["ask", "do people like it?", "--context", '{"product_id": "\\ud800"}'],
        "Unicode",
    ),
    "no question and no input": (["plan"], "either a question or --input"),
    "question and input": (["plan", "hello", "--input", "x"], "either a question or --input"),
    "missing input": (["plan", "--input", "none.jsonl"], "none.jsonl"),
    "plot nowhere": (["bench", "executor", "--dags", "1", "--plot", "no/x.png"], "no/x.png"),
    "unknown option": (["ask", "hello", "--nope"], "--nope"),
    "unknown command": (["nope"], "nope"),
    "missing question": (["ask"], "question"),
    "too few folds": (["bench", "planner", "--folds", "1"], "--folds"),
    "folds that are no number": (["bench", "planner", "--folds", "x"], "--folds"),
}


@pytest.fixture(scope="module")
def runs(home: Path) -> dict[str, Output]:
    """Return the result of each command with ``--json``."""
    return {
        name: run(home, *arguments, *(["--json"] if arguments != ["nope"] else []))
        for name, (arguments, _) in INVALID.items()
    }


@pytest.mark.parametrize("name", INVALID)
def test_user_error_prints_one_line(runs: dict[str, Output], name: str) -> None:
    message = one_line_error(runs[name])
    assert INVALID[name][1] in message
    assert len(message) < 400


@pytest.mark.parametrize("name", [name for name in INVALID if name != "unknown command"])
def test_option_json_prints_a_user_error_as_an_object(runs: dict[str, Output], name: str) -> None:
    completed = runs[name]
    assert completed.returncode == 2
    error = json.loads(completed.stdout)["error"]
    assert INVALID[name][1] in error["message"]
    assert error["message"] in completed.stderr
    assert error["kind"].endswith("Error")
    assert error["kind"].isidentifier()


def test_error_without_json_leaves_stdout_empty(home: Path) -> None:
    completed = run(home, "ask", "hello", "--domain", "nope")
    assert DOMAINS in one_line_error(completed)
    assert completed.stdout == ""


def test_json_error_names_the_kind_of_unknown_planners_and_missing_packages(home: Path) -> None:
    missing = run(home, "plan", "hello", "--planner", "nope:model", "--json")
    unknown = run(home, "plan", "hello", "--planner", "nope", "--json")
    kinds = [json.loads(completed.stdout)["error"]["kind"] for completed in (missing, unknown)]
    # With LangChain installed, an unknown provider is an input error.
    assert kinds[0] in ("DependencyError", "InputError")
    assert kinds[1] == "InputError"


def test_context_of_400_nested_lists_is_accepted(home: Path) -> None:
    context = '{"a": ' + "[" * 400 + "]" * 400 + "}"
    completed = run(home, "plan", "Thank you!", "--context", context, "--json")
    assert completed.returncode == 0, completed.stderr
