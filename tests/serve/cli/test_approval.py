"""`casewright ask` prints the price of a plan, limits it by a budget, and asks for approval."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.helpers import Output, one_line_error, result, run

PLANT = '''
from pathlib import Path

from casewright import Toolbox, own_domain, tool


def called(name: str) -> None:
    with Path("called").open("a") as log:
        log.write(name + " ")


@tool(results=("machine_id",), latency=0.2, cost=0.01)
def find_machine(query: str) -> str:
    """Finds a machine of this plant."""
    called("find_machine")
    return "M7"


@tool(sources={"machine_id": ("step", "context")}, latency=1.5, cost=0.2)
def read_sensor(machine_id: str) -> str:
    """The latest temperature of one machine."""
    called("read_sensor")
    return f"{machine_id}: 61"


@tool(sources={"machine_id": ("step", "context")}, approval=True)
def stop_machine(machine_id: str) -> str:
    """Stops a machine."""
    called("stop_machine")
    return f"{machine_id} stopped"


@tool
def which(machine: str) -> str:
    """Asks which machine is meant."""
    from langgraph.types import interrupt

    return "It is " + interrupt(f"Which {machine}?")


found = 's1 = find_machine(query="mill")'
cases = {
    "how warm is the mill": found + "\\ns2 = read_sensor(machine_id=s1.machine_id)",
    "stop the mill": found + "\\ns2 = stop_machine(machine_id=s1.machine_id)",
    "which ones": 's1 = which(machine="mill")\\ns2 = which(machine="lathe")',
}
domain = own_domain("plant", Toolbox([find_machine, read_sensor, stop_machine, which]), cases)
'''
WARM, STOP = "how warm is the mill", "stop the mill"


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    (tmp_path / "plant.py").write_text(PLANT, encoding="utf-8")
    return tmp_path


def ask(home: Path, plant: Path, *arguments: str, stdin: str | None = None) -> Output:
    # The default planner loads a language model if the plan parser is not sure.
    options = ["--domain", "plant.py:domain", "--planner", "parser"]
    return run(home, "ask", *options, *arguments, folder=plant, stdin=stdin)


def called_tools(plant: Path) -> list[str]:
    log = plant / "called"
    return log.read_text().split() if log.exists() else []


def test_dry_run_prints_the_plan_with_its_price_and_calls_no_tool(home: Path, plant: Path) -> None:
    report = result(ask(home, plant, WARM, "--dry-run", "--json"))
    assert report["plan"].startswith("s1 = find_machine(")
    assert report["planner"]["price"]["calls"] == {"find_machine": 1, "read_sensor": 1}
    assert "about 1.7 s; cost at most 0.42" in ask(home, plant, WARM, "--dry-run").stdout
    assert called_tools(plant) == []


def test_budget_of_zero_calls_hides_the_tool_and_the_answer_reports_it(
    home: Path, plant: Path
) -> None:
    answer = result(ask(home, plant, WARM, "--budget", "read_sensor=0", "--json", stdin="7\n"))
    assert "read_sensor was hidden from the planner" in answer["missing"][0]
    assert "read_sensor" not in called_tools(plant)


def test_plan_runs_after_the_user_types_yes(home: Path, plant: Path) -> None:
    completed = ask(home, plant, WARM, "--approve", "--json", stdin="perhaps\nyes\n")
    assert [step["status"] for step in result(completed)["steps"]] == ["done", "done"]
    assert "cost at most 0.42" in completed.stderr
    assert called_tools(plant) == ["find_machine", "read_sensor"]


def test_tool_that_declares_approval_waits_without_the_option_approve(
    home: Path, plant: Path
) -> None:
    completed = ask(home, plant, STOP, "--json", stdin="no\n")
    assert "Approval is declared by stop_machine." in completed.stderr
    assert "not approved" in result(completed)["text"]
    assert called_tools(plant) == []


def test_edited_plan_is_validated_before_it_runs(home: Path, plant: Path) -> None:
    stdin = 'edit\ns1 = read_sensor(machine_id="M1")\n\nedit\ns1 = find_machine(query=question)\n\n'
    completed = ask(home, plant, WARM, "--approve", "--json", stdin=stdin)
    assert "Not possible: s1: machine_id may not be" in completed.stderr
    assert result(completed)["planner"]["approval"] == "edited"
    assert called_tools(plant) == ["find_machine"]


def test_no_tool_runs_when_the_input_ends_before_a_reply(home: Path, plant: Path) -> None:
    completed = ask(home, plant, WARM, "--approve-above", "calls=1", stdin="")
    assert completed.returncode == 2
    assert completed.stderr.splitlines()[-1].startswith("error: The input ended before the reply")
    assert called_tools(plant) == []


def test_all_questions_of_tools_are_printed_before_the_replies_are_read(
    home: Path, plant: Path
) -> None:
    completed = ask(home, plant, "which ones", "--json", stdin="M7\nL2\n")
    assert [step["rows"][0]["evidence"] for step in result(completed)["steps"]] == [
        "It is M7",
        "It is L2",
    ]
    prompts = "Question 1 of 2:\nWhich mill?\nQuestion 2 of 2:\nWhich lathe?\n1. Reply: 2. Reply: "
    assert prompts in completed.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budget", "calls"], "Write NAME=NUMBER"),
        (["--budget", "calls=0"], "calls=0"),
        (["--budget", "sensor=1"], "an unknown tool"),
        (["--approve-above", "cost=x"], "--approve-above"),
        (["--dry-run", "--approve"], "--dry-run runs nothing"),
    ],
)
def test_invalid_budget_and_approval_options_print_an_error_of_one_line(
    home: Path, plant: Path, options: list[str], message: str
) -> None:
    assert message in one_line_error(ask(home, plant, WARM, *options))
