"""Without extras, questions are answered; a command that needs an extra names it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.serve.helpers import GALAXY, run_this

#: What only extras bring, by import name.
ABSENT = (
    *("torch", "transformers", "sentence_transformers", "peft", "trl", "datasets", "gguf"),
    *("llguidance", "onnx", "onnxscript", "scipy", "sklearn", "matplotlib", "llama_index"),
    *("pandas", "langchain", "fastapi", "uvicorn", "langserve"),
)
#: The command line where these cannot be found.
START = f"""
import sys
from importlib.machinery import PathFinder

class Base(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        absent = name.split(".")[0] in {ABSENT}
        return None if absent else super().find_spec(name, path, target)

sys.meta_path[:] = [Base if finder is PathFinder else finder for finder in sys.meta_path]
from casewright.serve.cli import main
sys.argv = ["casewright", *sys.argv[1:]]
main()
"""


def run_base(home: Path, *arguments: str) -> tuple[int, str, str]:
    done = run_this(home, [sys.executable, "-c", START, *arguments])
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("arguments", [["ask", GALAXY], ["plan", "--planner", "parser", GALAXY]])
def test_questions_are_planned_and_answered_without_any_extra(
    home: Path, arguments: list[str]
) -> None:
    code, out, err = run_base(home, *arguments)
    assert (code, "order_lookup(" in out) == (0, True), err


def test_own_tools_are_drafted_and_evaluated_without_any_extra(home: Path, tmp_path: Path) -> None:
    file, messages = tmp_path / "plant.py", tmp_path / "learn.jsonl"
    domain = ["--domain", f"{file}:domain"]
    for arguments in (
        ["new", str(file)],
        ["draft", *domain, "--output", str(messages), "--yes"],
        ["eval", *domain, "--planner", "parser", "--input", str(messages)],
    ):
        code, out, err = run_base(home, *arguments)
        assert code == 0, err
    assert "right tools" in out


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["ask", "--planner", "mistral", GALAXY], "local"),
        (["ask", "--planner", "local:somewhere", GALAXY], "local"),
        (["finetune", "reader", "--output", "o"], "finetune"),
        (["ingest", "."], "documents"),
        (["serve"], "serve"),
    ],
)
def test_command_that_needs_an_extra_prints_the_pip_command_that_installs_it(
    home: Path, arguments: list[str], extra: str
) -> None:
    code, out, err = run_base(home, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1, err
    assert err.startswith("error: ")
    assert f"Run: pip install 'casewright[{extra}]'" in err
