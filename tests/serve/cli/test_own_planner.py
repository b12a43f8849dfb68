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
HEAT = 's1 = find_machine(query="{0}")\ns2 = read_sensor(machine_id=s1.machine_id, sensor="{1}")'
MESSAGES = {
    "how hot is the lathe": HEAT.format("lathe", "temperature"),
    # Annotated wrongly, so that every planner gets it wrong.
    "does the lathe vibrate": HEAT.format("lathe", "temperature"),
}


def messages(asked: Mapping[str, str]) -> str:
    rows = [{"id": q.split()[0], "query": q, "plan": plan} for q, plan in asked.items()]
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def plant(home: Path, tmp_path: Path) -> Path:
    """A folder with what `new` writes, and two messages: one like an example, one unlike any."""
    assert run(home, "new", tmp_path / "plant.py").returncode == 0
    (tmp_path / "test.jsonl").write_text(messages(MESSAGES), encoding="utf-8")
    return tmp_path


def run_for_plant(home: Path, plant: Path, *arguments: str, lines: str | None = None) -> Any:
    return run(home, *arguments, "--domain", "plant.py:domain", folder=plant, typed=lines)


def test_new_writes_a_domain_that_answers_and_prints_the_next_commands(
    home: Path, plant: Path
) -> None:
    answer = result(run_for_plant(home, plant, "ask", "how hot is the lathe", "--json"))
    assert answer["plan"] == MESSAGES["how hot is the lathe"]
    assert "temperature of M7: 61" in answer["text"]
    told = result(run(home, "new", plant / "code.py", "--json"))
    # A packaged domain has the file's name.
    assert find_domain(told["domain"]).name == "my-code"
    assert [line.split()[1] for line in told["next"]] == ["ask", "draft"]


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
    told = result(run_for_plant(home, plant, *draft, lines="y\nn\nwhat\ny\nq\n"))
    assert (told["kept"], told["messages"]) == (2, 2)
    first = read_annotated(plant / "learn.jsonl")
    again = result(run_for_plant(home, plant, *draft, "--yes"))
    # Dropped ones are proposed again, kept ones are not.
    assert again["proposed"] == again["kept"] == told["proposed"] - 2
    kept = read_annotated(plant / "learn.jsonl")
    assert kept[:2] == first
    assert len({query.query for query in kept}) == len(kept)
    vectors = default_encoder().embed([query.query for query in kept])
    likeness = vectors @ vectors.T
    assert max(likeness[i, j] for i in range(len(kept)) for j in range(i)) <= 0.9
    tools = find_domain(f"{plant / 'plant.py'}:domain").open(plant, default_encoder(), False)
    for query in kept:
        query.record.request(tools.toolbox).validate(query.plan)
    assert {query.label for query in kept} == {
        *("find_machine", "read_sensor", "multi_step", "no_evidence")
    }


def test_draft_ends_at_the_end_of_input_and_writes_no_file(home: Path, plant: Path) -> None:
    done = run_for_plant(home, plant, "draft", "--output", "learn.jsonl", lines="")
    assert done.returncode == 0
    assert "0 of" in done.stdout
    assert not (plant / "learn.jsonl").exists()


def test_draft_with_a_chat_model_leaves_out_invalid_plans(
    home: Path, plant: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = [
        {"query": "is the boiler shaking", "plan": HEAT.format("boiler", "vibration")},
        {"query": "is the crane shaking a lot", "plan": 's1 = read_sensor(machine_id="M1")'},
    ]
    model = FakeListChatModel(responses=[json.dumps(written), "[]"])
    monkeypatch.setattr(message_commands, "_chat", lambda name: model)
    draft = ("draft", "--output", "learn.jsonl", "--yes", "--json", "--generator", "a:b")
    assert result(run_for_plant(home, plant, *draft))["kept"] == 1
    assert read_annotated(plant / "learn.jsonl")[0].query == "is the boiler shaking"
    monkeypatch.undo()
    assert "no generator 'nobody'" in one_line_error(
        run_for_plant(home, plant, *draft[:-1], "nobody")
    )


def test_local_chat_model_returns_a_text() -> None:
    chat = LocalChat(model=tiny_mistral(), tokens=4)
    assert isinstance(chat.invoke([("system", "Write."), ("user", "a question")]).content, str)


def test_local_chat_model_is_made_by_name_and_answers_deterministically(
    tmp_path: Path,
) -> None:
    chat = chat_model(f"local:{save_tiny(tmp_path / 'tiny')}", max_tokens=6)
    first, second = (chat.invoke([("user", "a question")]).content for _ in range(2))
    assert first == second


def test_correction_is_stored_as_an_annotated_message_and_changes_the_plan(
    home: Path, plant: Path
) -> None:
    question = "does the saw vibrate"
    right = HEAT.format("saw", "temperature").split("\n")
    wrong = result(run_for_plant(home, plant, "plan", question, "--json"))["plan"]
    assert wrong != "\n".join(right)
    correct = ("correct", question, "--output", "learn.jsonl", "--json")
    steps = [part for step in right for part in ("--plan", step)]
    assert result(run_for_plant(home, plant, *correct, *steps))["outcome"] == "added"
    assert result(run_for_plant(home, plant, *correct, *steps))["outcome"] == "unchanged"
    (kept,) = read_annotated(plant / "learn.jsonl")
    assert (str(kept.plan), kept.label) == ("\n".join(right), "read_sensor")
    # In another file, as the running process has read this one.
    (plant / "later.py").write_text((plant / "plant.py").read_text("utf-8"), encoding="utf-8")
    planned = run(home, "plan", question, "--domain", "later.py:domain", folder=plant)
    assert planned.stdout.split("\n")[:2] == right


def test_correction_replaces_only_the_earlier_one_of_the_same_question_and_context(
    home: Path, plant: Path
) -> None:
    (plant / "learn.jsonl").write_text(messages(MESSAGES), encoding="utf-8")
    correct = ("correct", "How hot is  the lathe", "--output", "learn.jsonl", "--json")
    typed_plan = 's1 = find_machine(query="lathe")\n\nnot read'
    told = result(run_for_plant(home, plant, *correct, lines=typed_plan))
    assert (told["outcome"], told["message"]["plan"]) == (
        "replaced",
        's1 = find_machine(query="lathe")',
    )
    kept = read_annotated(plant / "learn.jsonl")
    assert [(query.record.id, len(query.plan.steps)) for query in kept] == [("how", 1), ("does", 2)]
    on_page = (*correct, "--context", '{"machine_id": "M1"}')
    read = 's1 = read_sensor(machine_id=context.machine_id, sensor="temperature")'
    assert result(run_for_plant(home, plant, *on_page, "--plan", read))["outcome"] == "added"


def test_correct_reads_the_question_from_a_saved_run(home: Path, plant: Path) -> None:
    saved = ("ask", "does the saw vibrate", "--save", "run.json")
    assert run_for_plant(home, plant, *saved).returncode == 0
    right = HEAT.format("saw", "vibration")
    correct = ("correct", "--run", "run.json", "--output", "learn.jsonl")
    assert run_for_plant(home, plant, *correct, lines=right).returncode == 0
    assert read_annotated(plant / "learn.jsonl")[0].query == "does the saw vibrate"


@pytest.mark.parametrize(
    ("plan", "said"),
    [("s1 = gone()", "no tool gone"), ('s1 = read_sensor(machine_id="M1")', "machine_id")],
)
def test_correct_refuses_an_invalid_plan(home: Path, plant: Path, plan: str, said: str) -> None:
    correct = ("correct", "how hot is it", "--output", "learn.jsonl", "--plan", plan)
    assert said in one_line_error(run_for_plant(home, plant, *correct))
    assert not (plant / "learn.jsonl").exists()


def test_eval_reports_figures_by_class_and_lists_wrong_plans_with_right_plans(
    home: Path, plant: Path
) -> None:
    by_parser = ("eval", "--planner", "parser", "--input", "test.jsonl")
    told = result(run_for_plant(home, plant, *by_parser, "--json"))
    assert (told["planner"], told["messages"]) == ("parser", 2)
    whole = told["figures"]["whole_plans"]
    assert (whole["value"], whole["count"]) == (0.5, 2)
    assert 0 < whole["low"] < 0.5 < whole["high"] < 1
    assert told["classes"]["read_sensor"]["right_tools"]["count"] == 2
    (wrong,) = told["wrong"]
    assert (wrong["id"], wrong["right_plan"]) == ("does", MESSAGES["does the lathe vibrate"])
    assert parse_plan(wrong["plan"]) != parse_plan(wrong["right_plan"])
    shown = run_for_plant(home, plant, *by_parser).stdout
    assert "0.500 [" in shown
    assert "does: does the lathe vibrate" in shown
    assert 'right s1 = find_machine(query="lathe")' in shown
    assert f"confidence {wrong['confidence']:.2f}" in shown


def test_pytest_plugin_is_an_entry_point_of_the_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    points = settings["project"]["entry-points"]["pytest11"]
    assert points == {"casewright": "casewright.serve.cli.pytest_plugin"}


@pytest.fixture
def project(plant: Path, home: Path, pytester: pytest.Pytester) -> pytest.Pytester:
    """A project of a user whose plans are tested, in what pytester takes for its folder."""
    for name in ("plant.py", "test.jsonl"):
        (pytester.path / name).write_bytes((plant / name).read_bytes())
    pytester.makeini(
        "[pytest]\ncasewright_domain = plant.py:domain\ncasewright_plans = test.jsonl\n"
        "casewright_gate = 0.5\n"
    )
    return pytester


def run_pytest(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    points = distribution("casewright").entry_points
    installed = any(point.group == "pytest11" for point in points)
    loaded = () if installed else ("-p", "casewright.serve.cli.pytest_plugin")
    return project.runpytest_inprocess(*loaded, "-p", "no:cacheprovider", *arguments)


def test_pytest_plugin_fails_below_the_gate_and_prints_changed_results(
    project: pytest.Pytester,
) -> None:
    first = run_pytest(project, "--casewright-accept")
    first.assert_outcomes(passed=1)
    first.stdout.fnmatch_lines(["1 of 2 whole plans are right; the gate is 0.5.", "wrong  does:*"])
    kept = json.loads((project.path / "test.accepted.json").read_text("utf-8"))
    assert kept == {"how": True, "does": False}
    assert "wrong  does" not in run_pytest(project).stdout.str()
    # The one that was right is annotated wrongly, and the other rightly.
    other = {
        "how hot is the lathe": HEAT.format("lathe", "vibration"),
        "does the lathe vibrate": HEAT.format("lathe", "vibration"),
    }
    rows = messages(other)
    (project.path / "test.jsonl").write_text(rows, encoding="utf-8")
    flipped = run_pytest(project, "-o", "casewright_gate=1")
    flipped.assert_outcomes(failed=1)
    flipped.stdout.fnmatch_lines(
        ["right -> wrong  how: how hot is the lathe", "  right s1 =*", "wrong -> right  does: *"]
    )


@pytest.mark.parametrize(
    ("setting", "said"),
    [("casewright_gate=much", "Give a share"), ("casewright_domain=", "is not set")],
)
def test_pytest_plugin_reports_an_invalid_setting_without_a_traceback(
    project: pytest.Pytester, setting: str, said: str
) -> None:
    told = run_pytest(project, "-o", setting)
    told.assert_outcomes(failed=1)
    assert said in told.stdout.str()
    assert "Traceback" not in told.stdout.str()
