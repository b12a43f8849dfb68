"""`casewright plans` pins, lists, runs and compares plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.cli.test_approval import PLANT, STOP, WARM
from tests.serve.helpers import Output, new_home, one_line_error, result, run

DOMAIN = ("--domain", "plant.py:domain")


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    (tmp_path / "plant.py").write_text(PLANT, encoding="utf-8")
    new_home(tmp_path / "home")
    pinned = run_plans(tmp_path, "pin", "warmth", *DOMAIN, WARM, "--parameter", "machine=mill")
    assert pinned.returncode == 0, pinned.stderr
    return tmp_path


def run_plans(plant: Path, *arguments: str, stdin: str | None = None) -> Output:
    return run(plant / "home", "plans", *arguments, folder=plant, stdin=stdin)


def test_pinned_plan_is_listed_and_runs_as_its_edited_file_says(plant: Path) -> None:
    pinned_plans = result(run_plans(plant, "list", "--json"))["plans"]
    assert [(plan["name"], plan["parameters"]) for plan in pinned_plans] == [
        ("warmth", {"machine": "mill"})
    ]
    assert "machine=mill" in run_plans(plant, "list").stdout
    answer = result(run_plans(plant, "run", "warmth", *DOMAIN, "--with", "machine=lathe", "--json"))
    assert answer["plan"].startswith('s1 = find_machine(query="lathe")')
    assert answer["planner"]["name"] == "pinned:warmth"
    assert answer["citations"]
    file = plant / "plans" / "warmth.toml"
    file.write_text(file.read_text().replace('query="{machine}"', 'query="big {machine}"'))
    answer = result(run_plans(plant, "run", "warmth", *DOMAIN, "--json"))
    assert answer["plan"].startswith('s1 = find_machine(query="big mill")')


def test_plans_list_reports_a_damaged_file_and_lists_the_others(plant: Path) -> None:
    (plant / "plans" / "bad.toml").write_text("format = 7")
    completed = run_plans(plant, "list", "--json")
    assert [plan["name"] for plan in result(completed)["plans"]] == ["warmth"]
    assert "bad.toml is not a pinned plan" in completed.stderr


def test_plans_run_takes_the_options_dry_run_budget_approve_and_save(plant: Path) -> None:
    (plant / "called").unlink(missing_ok=True)
    report = result(
        run_plans(plant, "run", "warmth", *DOMAIN, "--dry-run", "--budget", "calls=1", "--json")
    )
    assert report["planner"]["left_out"]
    answer = result(run_plans(plant, "run", "warmth", *DOMAIN, "--approve", "--json", stdin="no\n"))
    assert [step["status"] for step in answer["steps"]] == ["skipped", "skipped"]
    assert not (plant / "called").exists()
    run_plans(plant, "run", "warmth", *DOMAIN, "--save", "run.json")
    # A saved run is pinned with its question.
    arguments = ("pin", "again", *DOMAIN, "--plan", "run.json", "--json")
    assert result(run_plans(plant, *arguments))["question"] == WARM


def test_plans_run_refuses_changed_tools_and_prints_the_difference(plant: Path) -> None:
    plant_text = PLANT.replace("The latest temperature", "The first temperature")
    (plant / "changed.py").write_text(plant_text, encoding="utf-8")
    message = one_line_error(run_plans(plant, "run", "warmth", "--domain", "changed.py:domain"))
    assert "is 'The first temperature of one machine.'" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "other", *DOMAIN), "There are: warmth"),
        (("run", "warmth", *DOMAIN, "--with", "crane=x"), "There are: machine"),
        (("run", "warmth", *DOMAIN, "--with", "machine"), "NAME=VALUE"),
        (("pin", "warmth", *DOMAIN, STOP), "exists"),
        (("pin", "x", *DOMAIN), "Give the question too"),
        (("pin", "x", *DOMAIN, STOP, "--parameter", "a=crane"), "neither in the question"),
        (("pin", "x", *DOMAIN, STOP, "--plan", "plant.py"), "is not a plan"),
        (("diff", "warmth"), "two plans, or one question"),
        (("diff", "warmth", "nowhere"), "cannot be read"),
    ],
)
def test_invalid_arguments_of_plans_print_an_error_of_one_line(
    plant: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert message in one_line_error(run_plans(plant, *arguments))


def test_plans_diff_compares_two_plans_or_two_planners(plant: Path) -> None:
    (plant / "one.txt").write_text('s1 = find_machine(query="{machine}")')
    report = result(run_plans(plant, "diff", "one.txt", "warmth", "--json"))
    assert [step["change"] for step in report["steps"]] == ["same", "only_second"]
    assert not report["same"]
    output = run_plans(plant, "diff", "one.txt", "warmth").stdout
    assert "\n+ s2 = read_sensor(" in output
    arguments = ("diff", *DOMAIN, WARM, "--planner", "parser", "--planner", "case", "--json")
    report = result(run_plans(plant, *arguments))
    assert report["same"]
    assert 0 < report["first"]["confidence"] <= 1
    assert report["first"]["planner"] == "parser"
    reason = report["first"]["because"]
    assert reason
    assert f": {reason}\n" in run_plans(plant, *arguments[:-1]).stdout
