"""What ``from casewright import …`` gives."""

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


def test_public_names_are_these_and_no_more_than_fifteen() -> None:
    assert casewright.__all__ == NAMES.split()
    assert len(casewright.__all__) <= 15
    assert set(casewright.__all__) < set(dir(casewright))


def test_public_names_are_those_of_the_rooms() -> None:
    from casewright.planner import CasePlanner

    assert casewright.CasePlanner is CasePlanner
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        casewright.nothing  # noqa: B018 - that it is read is what is tested


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, casewright; print([n for n in sys.modules if n.startswith('casewright.')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_ask_answers_with_tools_of_ones_own() -> None:
    answer = ask("how warm is the lathe", DOMAIN, scope={"hall": "C"})
    assert isinstance(answer, Answer)
    assert answer.plan == 's1 = read_sensor(place="lathe")'
    assert "lathe, hall C: 61 °C [E1]" in answer.text


def test_ask_reads_earlier_turns_and_default_scopes() -> None:
    turns = [Turn(question="how warm is the mill", answer="61 °C")]
    assert "hall B" in ask("how warm is the lathe", DOMAIN, history=turns).text


def test_ask_refuses_what_it_cannot_use() -> None:
    with pytest.raises(InputError, match="There is no hall 'Z'"):
        ask("how warm is the mill", DOMAIN, scope={"hall": "Z"})
    with pytest.raises(InputError, match="There is no domain 'nowhere'"):
        ask("how warm is the mill", "nowhere")


def test_decorator_takes_the_settings_of_a_tool() -> None:
    @tool(name="sensor", results=("degrees",), sources={"place": ("span",)})
    def read(place: str) -> list[dict[str, int]]:
        """Reads."""
        return [{"degrees": len(place)}]

    assert (read.name, read.results) == ("sensor", ("degrees",))
    with pytest.raises(ToolError, match="no parameter"):
        tool(sources={"hall": ("span",)})(lambda place: place)


def test_own_domain_takes_questions_with_their_plans(tmp_path: Path) -> None:
    (query,) = DOMAIN.queries()
    assert isinstance(query, AnnotatedQuery)
    assert (query.query, str(query.plan)) == next(iter(CASES.items()))
