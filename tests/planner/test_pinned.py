"""Pinned plans have parameters for values; damaged files and changed tools are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.graph import Answer, build_graph
from casewright.planner import parse_plan, pin_plan, read_pinned
from casewright.planner.plan import context_fields
from casewright.tools import Toolbox, tool_from_function


def find_machine(query: str) -> str:
    """Finds a machine."""
    return f"found {query}"


def history(machine_id: str, months: int) -> str:
    """What was done to a machine."""
    return f"{machine_id} for {months} months"


FIND = tool_from_function(find_machine, results=("machine_id",))
HISTORY = tool_from_function(history, sources={"machine_id": ("step",)})
TOOLS = Toolbox([FIND, HISTORY])
QUESTION = "what was done to the Mill in 12 months?"
PLAN = parse_plan(
    's1 = find_machine(query="the mill")\ns2 = history(machine_id=s1.machine_id, months=12)'
)
PARAMETERS: dict[str, str | int | float | bool] = {"machine": "mill", "months": 12}


def test_a_pinned_plan_runs_through_the_graph_with_other_values(tmp_path: Path) -> None:
    pin_plan("history", QUESTION, PLAN, TOOLS, PARAMETERS).save(tmp_path)
    pinned = read_pinned(tmp_path, "history")
    assert pinned.question == "what was done to the {machine} in {months} months?"
    question, planner = pinned.filled(TOOLS, {"machine": "lathe", "months": 3})
    answer = Answer.from_state(build_graph(TOOLS, planner).invoke({"question": question}))
    assert answer.planner["name"] == "pinned:history"
    assert answer.plan.split("\n")[0] == 's1 = find_machine(query="the lathe")'
    assert "found the lathe for 3 months" in answer.text


@given(st.text(min_size=1, max_size=30), st.integers(-99, 99))
def test_parameter_value_of_a_pinned_plan_stays_a_text(text: str, months: int) -> None:
    pinned = pin_plan("history", QUESTION, PLAN, TOOLS, PARAMETERS)
    _, planner = pinned.filled(TOOLS, {"machine": text, "months": months})
    assert parse_plan(str(planner.fixed)) == planner.fixed
    assert planner.fixed.tools == PLAN.tools
    assert text in planner.fixed.steps[0].argument("query").value  # type: ignore[union-attr, operator]


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30))
def test_pinned_plan_is_restored_from_its_file(value: str) -> None:
    from tempfile import TemporaryDirectory

    pinned = pin_plan("history", f"what of {value}", PLAN, TOOLS)
    with TemporaryDirectory() as folder:
        pinned.save(Path(folder))
        assert read_pinned(Path(folder), "history") == pinned


def test_pinned_plan_with_changed_tools_is_refused_with_the_difference() -> None:
    pinned = pin_plan("history", QUESTION, PLAN, TOOLS)
    renamed = replace(FIND, description="Finds one.")
    for tools, difference in (
        ([HISTORY], "find_machine is gone"),
        ([renamed, HISTORY], "its description was 'Finds a machine.', and is 'Finds one.'"),
        (
            [FIND, replace(HISTORY, approval=True)],
            "history: the types of its parameters, or its need",
        ),
    ):
        with pytest.raises(InputError, match=difference):
            pinned.filled(Toolbox(tools), {})
    other = tool_from_function(lambda: "", name="other", description="Another.")
    assert pinned.filled(Toolbox([other, HISTORY, FIND]), {})[0] == QUESTION


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("../up", {}, "is not a name of a plan"),
        ("p", {"machine": "crane"}, "neither in the question nor"),
        ("p", {"no name": "mill"}, "is not a parameter.s name"),
        ("p", {"months": ""}, "is empty"),
        ("p", {"a": "mill", "b": "mill"}, "neither in the question nor"),
    ],
)
def test_pin_plan_refuses_invalid_names_and_parameters(
    name: str, parameters: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        pin_plan(name, QUESTION, PLAN, TOOLS, parameters)


def test_pin_plan_refuses_a_number_that_also_occurs_as_text() -> None:
    plan = parse_plan(
        's1 = find_machine(query="12")\ns2 = history(machine_id=s1.machine_id, months=12)'
    )
    with pytest.raises(InputError, match="cannot be told apart"):
        pin_plan("p", QUESTION, plan, TOOLS, {"months": 12})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "format = 1",
        "format = true\nquestion = ''\nplan = []\ntools = {}",
        "format = 1\nquestion = 'q'\nplan = 7\ntools = {}",
        "format = 1\nquestion = 'q'\nplan = ['s1 = f()']\ntools = {}",
        "format = 1\nquestion = 'q'\nplan = ['s1 = f()']\ntools = {f = 1}",
        "format = 1\nquestion = 'q'\nplan = ['s1 = f()']\nparameters = 1\ntools = {f = {}}",
        "format = 1\nquestion = 'q'\nplan = ['s1 = f()']\nparameters = {a=[1]}\ntools = {f = {}}",
        "a" * 70_000,
        "[" * 9_000,
        "\ud800",
    ],
)
def test_damaged_pinned_plan_file_raises_input_error_naming_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=r"p\.toml is not a pinned plan"):
        read_pinned(tmp_path, "p")


def test_pinned_plan_file_is_replaced_only_with_replace(tmp_path: Path) -> None:
    pinned = pin_plan("history", QUESTION, PLAN, TOOLS)
    file = pinned.save(tmp_path)
    before = file.read_text()
    with pytest.raises(InputError, match="exists"):
        pin_plan("history", QUESTION, PLAN, TOOLS, PARAMETERS).save(tmp_path)
    assert file.read_text() == before
    pin_plan("history", QUESTION, PLAN, TOOLS, PARAMETERS).save(tmp_path, replace=True)
    assert file.read_text() != before


def test_context_fields_includes_fields_inside_lists() -> None:
    plan = parse_plan("s1 = events(calendars=[context.home, context.work], limit=5)")
    assert context_fields(plan) == ["home", "work"]
