from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import casewright
from casewright.domains import domain_names
from tests.serve.helpers import GALAXY, command, environment, run, run_argv, run_process

PROGRAM = """
import sys
from casewright.serve.cli import main
sys.argv = ["casewright", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    print("ended", end.code)
heavy = {"torch", "transformers", "qdrant_client", "qdrant_edge", "langgraph", "onnxruntime"}
print("loaded", sorted(heavy & set(sys.modules)))
"""


@pytest.mark.parametrize("arguments", [["--help"], ["ask", "--help"], ["--version"], ["domains"]])
def test_help_version_and_domains_load_no_model_and_no_store(
    home: Path, arguments: list[str]
) -> None:
    completed = run_argv(home, [sys.executable, "-c", PROGRAM, *arguments])
    assert "loaded []" in completed.stdout, completed.stdout[-500:] + completed.stderr


def test_ask_loads_no_torch_after_the_encoder_is_exported(home: Path) -> None:
    completed = run_argv(home, [sys.executable, "-c", PROGRAM, "ask", GALAXY])
    assert "loaded ['langgraph', 'onnxruntime', 'qdrant_edge']" in completed.stdout, (
        completed.stderr
    )


def test_help_lists_the_main_commands_and_each_has_its_own_help(home: Path) -> None:
    output = run(home, "--help").stdout
    for name in ("ask", "plan", "domains", "bench"):
        assert f" {name} " in output
        command_help = run(home, name, "--help")
        assert command_help.returncode == 0
        (usage,) = (line for line in command_help.stdout.splitlines() if "Usage:" in line)
        assert f" {name} " in usage


def test_option_version_prints_the_version_of_the_package(home: Path) -> None:
    completed = run(home, "--version")
    assert (completed.returncode, completed.stdout) == (0, f"casewright {casewright.__version__}\n")


def test_python_m_casewright_prints_the_same_as_the_console_script(home: Path) -> None:
    completed = run_argv(home, [sys.executable, "-m", "casewright", "domains"])
    assert completed.stdout == run_process(home, "domains").stdout != ""


@pytest.mark.parametrize(
    "arguments", [["domains"], ["domains", "--json"], ["plan", "Where is my tablet?", "--json"]]
)
def test_command_writes_no_error_when_its_stdout_is_closed(
    home: Path, arguments: list[str]
) -> None:
    with subprocess.Popen(
        [*command(), *arguments],
        env=environment(home),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # Closed before the command writes, so every write fails.
        process.stdout.close()
        assert process.stderr.read() == ""
        process.wait(timeout=60)


def test_output_of_domains_can_be_piped_into_head(home: Path) -> None:
    pipeline = "set -o pipefail; " + " ".join(command()) + " domains | head -1"
    completed = run_argv(home, ["bash", "-c", pipeline])
    assert completed.stdout.startswith(f"{domain_names()[0]}: ")
    assert completed.stdout.count("\n") == 1
    assert completed.stderr == ""
