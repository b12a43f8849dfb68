"""`casewright new`, `draft`, `correct` and `eval`, and the pytest plugin."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from casewright.domains import find_domain
from casewright.planner import chat_model, parse_plan, read_annotated
from casewright.planner.local_chat import LocalChat
from casewright.serve.cli import messages as message_commands
from casewright.stores import default_encoder
from tests.layout.sources import ROOT
from tests.serve.helpers import one_line_error, result, run
from tests.support.tiny_mistral import save_tiny, tiny_mistral

pytest_plugins = ["pytester"]
PLAN = 's1 = find_machine(query="{0}")\ns2 = read_sensor(machine_id=s1.machine_id, sensor="{1}")'
MESSAGES = {
    "how hot is the lathe": PLAN.format("lathe", "temperature"),
    # This plan is wrong, so every planner fails on it.
    "does the lathe vibrate": PLAN.format("lathe", "temperature"),
}


def message_lines(plans: Mapping[str, str]) -> str:
    rows = [{"id": query.split()[0], "query": query, "plan": plan} for query, plan in plans.items()]
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def plant(home: Path, tmp_path: Path) -> Path:
    """Return a folder with a new domain and two messages: one like an example, one unlike any."""
    assert run(home, "new", tmp_path / "plant.py").returncode == 0
    (tmp_path / "test.jsonl").write_text(message_lines(MESSAGES), encoding="utf-8")
    return tmp_path


def run_for_plant(home: Path, plant: Path, *arguments: str, stdin: str | None = None) -> Any:
    return run(home, *arguments, "--domain", "plant.py:domain", folder=plant, stdin=stdin)


def test_new_writes_a_domain_that_answers_and_prints_the_next_commands(
    home: Path, plant: Path
) -> None:
    answer = result(run_for_plant(home, plant, "ask", "how hot is the lathe", "--json"))
    assert answer["plan"] == MESSAGES["how hot is the lathe"]
    assert "temperature of M7: 61" in answer["text"]
    report = result(run(home, "new", plant / "code.py", "--json"))
    # The domain is not named code, since a packaged domain has that name.
    assert find_domain(report["domain"]).name == "my-code"
    assert [line.split()[1] for line in report["next"]] == ["ask", "draft"]


def test_new_replaces_no_file_and_writes_only_python_files(home: Path, plant: Path) -> None:
    before = (plant / "plant.py").read_text(encoding="utf-8")
    assert "is not replaced" in one_line_error(run(home, "new", plant / "plant.py"))
    assert (plant / "plant.py").read_text(encoding="utf-8") == before
    assert "End it in .py" in one_line_error(run(home, "new", plant / "plant.txt"))
    assert "cannot be written" in one_line_error(run(home, "new", plant / "none" / "a.py"))


def test_draft_proposes_valid_dissimilar_messages_and_keeps_the_accepted_ones(
    home: Path, plant: Path
) -> None:
    draft = ("draft", "--output", "learn.jsonl", "--json")
    report = result(run_for_plant(home, plant, *draft, stdin="y\nn\nwhat\ny\nq\n"))
    assert (report["kept"], report["messages"]) == (2, 2)
    accepted = read_annotated(plant / "learn.jsonl")
    second_report = result(run_for_plant(home, plant, *draft, "--yes"))
    # A dropped message is proposed again, an accepted one is not.
    assert second_report["proposed"] == second_report["kept"] == report["proposed"] - 2
    queries = read_annotated(plant / "learn.jsonl")
    assert queries[:2] == accepted
    assert len({query.query for query in queries}) == len(queries)
    vectors = default_encoder().embed([query.query for query in queries])
    similarities = vectors @ vectors.T
    assert max(similarities[i, j] for i in range(len(queries)) for j in range(i)) <= 0.9
    tools = find_domain(f"{plant / 'plant.py'}:domain").open(plant, default_encoder(), False)
    for query in queries:
        query.record.request(tools.toolbox).validate(query.plan)
    assert {query.label for query in queries} == {
        *("find_machine", "read_sensor", "multi_step", "no_evidence")
    }


def test_draft_ends_at_the_end_of_input_and_writes_no_file(home: Path, plant: Path) -> None:
    completed = run_for_plant(home, plant, "draft", "--output", "learn.jsonl", stdin="")
    assert completed.returncode == 0
    assert "0 of" in completed.stdout
    assert not (plant / "learn.jsonl").exists()


def test_draft_with_a_chat_model_leaves_out_invalid_plans(
    home: Path, plant: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposals = [
        {"query": "is the boiler shaking", "plan": PLAN.format("boiler", "vibration")},
        {"query": "is the crane shaking a lot", "plan": 's1 = read_sensor(machine_id="M1")'},
    ]
    model = FakeListChatModel(responses=[json.dumps(proposals), "[]"])
    monkeypatch.setattr(message_commands, "_open_chat", lambda name: model)
    draft = ("draft", "--output", "learn.jsonl", "--yes", "--json", "--generator", "a:b")
    assert result(run_for_plant(home, plant, *draft))["kept"] == 1
    assert read_annotated(plant / "learn.jsonl")[0].query == "is the boiler shaking"
    monkeypatch.undo()
    error = one_line_error(run_for_plant(home, plant, *draft[:-1], "nobody"))
    assert "no generator 'nobody'" in error


def test_local_chat_model_samples_different_texts_by_default() -> None:
    chat = LocalChat(model=tiny_mistral(), max_tokens=4)
    messages = [("system", "Write."), ("user", "a question")]
    assert len({chat.invoke(messages).text for _ in range(3)}) > 1


def test_local_chat_model_is_made_by_name_and_answers_deterministically(
    tmp_path: Path,
) -> None:
    chat = chat_model(f"local:{save_tiny(tmp_path / 'tiny')}", max_tokens=6)
    first_text, second_text = (chat.invoke([("user", "a question")]).content for _ in range(2))
    assert first_text == second_text


def test_correction_is_stored_as_an_annotated_message_and_changes_the_plan(
    home: Path, plant: Path
) -> None:
    question = "does the saw vibrate"
    steps = PLAN.format("saw", "temperature").split("\n")
    plan = result(run_for_plant(home, plant, "plan", question, "--json"))["plan"]
    assert plan != "\n".join(steps)
    correct = ("correct", question, "--output", "learn.jsonl", "--json")
    options = [part for step in steps for part in ("--plan", step)]
    assert result(run_for_plant(home, plant, *correct, *options))["outcome"] == "added"
    assert result(run_for_plant(home, plant, *correct, *options))["outcome"] == "unchanged"
    (query,) = read_annotated(plant / "learn.jsonl")
    assert (str(query.plan), query.label) == ("\n".join(steps), "read_sensor")
    # Another file, since this process has loaded plant.py already.
    (plant / "later.py").write_text((plant / "plant.py").read_text("utf-8"), encoding="utf-8")
    completed = run(home, "plan", question, "--domain", "later.py:domain", folder=plant)
    assert completed.stdout.split("\n")[:2] == steps


def test_correction_replaces_only_the_earlier_one_of_the_same_question_and_context(
    home: Path, plant: Path
) -> None:
    (plant / "learn.jsonl").write_text(message_lines(MESSAGES), encoding="utf-8")
    correct = ("correct", "How hot is  the lathe", "--output", "learn.jsonl", "--json")
    plan_input = 's1 = find_machine(query="lathe")\n\nnot read'
    report = result(run_for_plant(home, plant, *correct, stdin=plan_input))
    assert report["outcome"] == "replaced"
    assert report["message"]["plan"] == 's1 = find_machine(query="lathe")'
    queries = read_annotated(plant / "learn.jsonl")
    steps = [(query.record.id, len(query.plan.steps)) for query in queries]
    assert steps == [("how", 1), ("does", 2)]
    with_context = (*correct, "--context", '{"machine_id": "M1"}')
    plan = 's1 = read_sensor(machine_id=context.machine_id, sensor="temperature")'
    assert result(run_for_plant(home, plant, *with_context, "--plan", plan))["outcome"] == "added"


def test_correct_reads_the_question_from_a_saved_run(home: Path, plant: Path) -> None:
    ask = ("ask", "does the saw vibrate", "--save", "run.json")
    assert run_for_plant(home, plant, *ask).returncode == 0
    plan = PLAN.format("saw", "vibration")
    correct = ("correct", "--run", "run.json", "--output", "learn.jsonl")
    assert run_for_plant(home, plant, *correct, stdin=plan).returncode == 0
    assert read_annotated(plant / "learn.jsonl")[0].query == "does the saw vibrate"


@pytest.mark.parametrize(
    ("plan", "message"),
    [("s1 = gone()", "no tool gone"), ('s1 = read_sensor(machine_id="M1")', "machine_id")],
)
def test_correct_refuses_an_invalid_plan(home: Path, plant: Path, plan: str, message: str) -> None:
    correct = ("correct", "how hot is it", "--output", "learn.jsonl", "--plan", plan)
    assert message in one_line_error(run_for_plant(home, plant, *correct))
    assert not (plant / "learn.jsonl").exists()


def test_eval_reports_figures_by_class_and_lists_wrong_plans_with_right_plans(
    home: Path, plant: Path
) -> None:
    arguments = ("eval", "--planner", "parser", "--input", "test.jsonl")
    report = result(run_for_plant(home, plant, *arguments, "--json"))
    assert (report["planner"], report["messages"]) == ("parser", 2)
    figure = report["figures"]["whole_plans"]
    assert (figure["value"], figure["count"]) == (0.5, 2)
    assert 0 < figure["low"] < 0.5 < figure["high"] < 1
    assert report["classes"]["read_sensor"]["right_tools"]["count"] == 2
    (error,) = report["wrong"]
    assert (error["id"], error["right_plan"]) == ("does", MESSAGES["does the lathe vibrate"])
    assert parse_plan(error["plan"]) != parse_plan(error["right_plan"])
    output = run_for_plant(home, plant, *arguments).stdout
    assert "0.500 [" in output
    assert "does: does the lathe vibrate" in output
    assert 'right s1 = find_machine(query="lathe")' in output
    assert f"confidence {error['confidence']:.2f}" in output


def test_pytest_plugin_is_an_entry_point_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    plugins = project["project"]["entry-points"]["pytest11"]
    assert plugins == {"casewright": "casewright.serve.cli.pytest_plugin"}


@pytest.fixture
def project(plant: Path, home: Path, pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a project whose settings let the pytest plugin test its plans."""
    for name in ("plant.py", "test.jsonl"):
        (pytester.path / name).write_bytes((plant / name).read_bytes())
    pytester.makeini(
        "[pytest]\ncasewright_domain = plant.py:domain\ncasewright_plans = test.jsonl\n"
        "casewright_gate = 0.5\n"
    )
    return pytester


def run_pytest(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    entry_points = distribution("casewright").entry_points
    installed = any(point.group == "pytest11" for point in entry_points)
    plugin = () if installed else ("-p", "casewright.serve.cli.pytest_plugin")
    return project.runpytest_inprocess(*plugin, "-p", "no:cacheprovider", *arguments)


def test_pytest_plugin_fails_below_the_gate_and_prints_changed_results(
    project: pytest.Pytester,
) -> None:
    accepted = run_pytest(project, "--casewright-accept")
    accepted.assert_outcomes(passed=1)
    lines = ["1 of 2 whole plans are right; the gate is 0.5.", "wrong  does:*"]
    accepted.stdout.fnmatch_lines(lines)
    results = json.loads((project.path / "test.accepted.json").read_text("utf-8"))
    assert results == {"how": True, "does": False}
    assert "wrong  does" not in run_pytest(project).stdout.str()
    # The first plan is wrong now, and the second one is right.
    new_plans = {
        "how hot is the lathe": PLAN.format("lathe", "vibration"),
        "does the lathe vibrate": PLAN.format("lathe", "vibration"),
    }
    rows = message_lines(new_plans)
    (project.path / "test.jsonl").write_text(rows, encoding="utf-8")
    changed = run_pytest(project, "-o", "casewright_gate=1")
    changed.assert_outcomes(failed=1)
    changed.stdout.fnmatch_lines(
        ["right -> wrong  how: how hot is the lathe", "  right s1 =*", "wrong -> right  does: *"]
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [("casewright_gate=much", "Give a share"), ("casewright_domain=", "is not set")],
)
def test_pytest_plugin_reports_an_invalid_setting_without_a_traceback(
    project: pytest.Pytester, setting: str, message: str
) -> None:
    run_result = run_pytest(project, "-o", setting)
    run_result.assert_outcomes(failed=1)
    assert message in run_result.stdout.str()
    assert "Traceback" not in run_result.stdout.str()
