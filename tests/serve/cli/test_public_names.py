"""The public names of the package ``casewright``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import casewright
from casewright import AnnotatedQuery, Answer, CallContext, Toolbox, Turn, ask, own_domain, tool
from casewright.errors import InputError, ToolError

NAMES = (
    "AnnotatedQuery Answer CallContext Case CasePlanner CaseStore Facet ModelPlanner ToolExample "
    "Toolbox Turn ask build_graph own_domain tool"
)


@tool
def read_sensor(place: str, call: CallContext) -> str:
    """The temperature of a place."""
    return f"{place}, hall {call.scope['hall']}: 61 °C"


CASES = {"how warm is the mill": 's1 = read_sensor(place="mill")'}
DOMAIN = own_domain("plant", Toolbox([read_sensor]), CASES, scopes={"hall": ["B", "C"]})


def test_package_exports_exactly_its_fifteen_public_names() -> None:
    assert casewright.__all__ == NAMES.split()
    assert set(casewright.__all__) < set(dir(casewright))


def test_public_name_is_the_same_object_as_in_its_subpackage() -> None:
    from casewright.planner import CasePlanner

    assert casewright.CasePlanner is CasePlanner
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        casewright.nothing  # noqa: B018 - that it is read is what is tested


def test_importing_casewright_imports_no_submodule() -> None:
    code = "import sys, casewright; print([n for n in sys.modules if n.startswith('casewright.')])"
    command = [sys.executable, "-c", code]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert completed.stdout == "[]\n"


def test_ask_answers_with_a_users_own_tools() -> None:
    answer = ask("how warm is the lathe", DOMAIN, scope={"hall": "C"})
    assert isinstance(answer, Answer)
    assert answer.plan == 's1 = read_sensor(place="lathe")'
    assert "lathe, hall C: 61 °C [E1]" in answer.text


def test_ask_accepts_earlier_turns_and_uses_the_default_scope() -> None:
    turns = [Turn(question="how warm is the mill", answer="61 °C")]
    assert "hall B" in ask("how warm is the lathe", DOMAIN, history=turns).text


def test_ask_refuses_unknown_scope_values_and_domains() -> None:
    with pytest.raises(InputError, match="There is no hall 'Z'"):
        ask("how warm is the mill", DOMAIN, scope={"hall": "Z"})
    with pytest.raises(InputError, match="There is no domain 'nowhere'"):
        ask("how warm is the mill", "nowhere")


def test_tool_decorator_sets_name_and_results_and_refuses_unknown_parameters() -> None:
    @tool(name="sensor", results=("degrees",), sources={"place": ("span",)})
    def read(place: str) -> list[dict[str, int]]:
        """Reads."""
        return [{"degrees": len(place)}]

    assert (read.name, read.results) == ("sensor", ("degrees",))
    with pytest.raises(ToolError, match="no parameter"):
        tool(sources={"hall": ("span",)})(lambda place: place)


def test_own_domain_makes_annotated_queries_from_questions_with_plans(tmp_path: Path) -> None:
    (query,) = DOMAIN.queries()
    assert isinstance(query, AnnotatedQuery)
    assert (query.query, str(query.plan)) == next(iter(CASES.items()))
