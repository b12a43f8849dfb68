"""Without extras, questions are answered; a command that needs an extra names it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.serve.helpers import GALAXY, run_argv

#: Import names of the packages that only extras install.
ABSENT = (
    *("torch", "transformers", "sentence_transformers", "peft", "trl", "datasets", "gguf"),
    *("llguidance", "onnx", "onnxscript", "scipy", "sklearn", "matplotlib", "llama_index"),
    *("pandas", "langchain", "fastapi", "uvicorn", "langserve"),
)
#: Program that runs the command line without these packages.
PROGRAM = f"""
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
    completed = run_argv(home, [sys.executable, "-c", PROGRAM, *arguments])
    return completed.returncode, completed.stdout, completed.stderr


@pytest.mark.parametrize("arguments", [["ask", GALAXY], ["plan", "--planner", "parser", GALAXY]])
def test_questions_are_planned_and_answered_without_any_extra(
    home: Path, arguments: list[str]
) -> None:
    exit_code, stdout, stderr = run_base(home, *arguments)
    assert (exit_code, "order_lookup(" in stdout) == (0, True), stderr


def test_own_tools_are_drafted_and_evaluated_without_any_extra(home: Path, tmp_path: Path) -> None:
    file, messages = tmp_path / "plant.py", tmp_path / "learn.jsonl"
    domain = ["--domain", f"{file}:domain"]
    for arguments in (
        ["new", str(file)],
        ["draft", *domain, "--output", str(messages), "--yes"],
        ["eval", *domain, "--planner", "parser", "--input", str(messages)],
    ):
        exit_code, stdout, stderr = run_base(home, *arguments)
        assert exit_code == 0, stderr
    assert "right tools" in stdout


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
    exit_code, stdout, stderr = run_base(home, *arguments)
    assert (exit_code, stdout) == (2, "")
    assert stderr.count("\n") == 1, stderr
    assert stderr.startswith("error: ")
    assert f"Run: pip install 'casewright[{extra}]'" in stderr
