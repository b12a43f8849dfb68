"""`--domain FILE.py:NAME`: tools of one's own, asked from the command line and served."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.domains import find_domain, own_domain
from casewright.errors import InputError
from casewright.tools import Toolbox
from tests.serve.helpers import command, environment, one_line_error, result, run
from tests.serve.service.helpers import Served, started

PLANT = '''
from casewright.domains import own_domain
from casewright.planner import AnnotatedQuery
from casewright.tools import CallContext, Toolbox, tool_from_function


def find_machine(query: str, call: CallContext) -> list[dict]:
    """Finds a machine of this plant."""
    return [{"machine_id": "M7", "name": f"{query} 7, hall {call.scope['hall']}"}]


def read_sensor(machine_id: str) -> str:
    """The latest temperature of one machine."""
    return f"{machine_id}: 61 °C"


tools = Toolbox(
    [
        tool_from_function(find_machine, results=("machine_id", "name")),
        tool_from_function(read_sensor, sources={"machine_id": ("step", "context")}),
    ]
)
plan = 's1 = find_machine(query="mill")\\ns2 = read_sensor(machine_id=s1.machine_id)'
queries = [AnnotatedQuery.read({"id": "1", "query": "how warm is the mill", "plan": plan})]
domain = own_domain("plant", tools, queries, scopes={"hall": ["B", "C"]})
open_hall = own_domain("plant", lambda: tools, queries, scopes={"hall": []})
packaged = own_domain("shopping", tools)
broken = 1 / 0 if __name__ == "__main__" else None
'''
WARM = "how warm is the lathe"


@pytest.fixture
def plant(tmp_path: Path) -> str:
    file = tmp_path / "plant.py"
    file.write_text(PLANT, encoding="utf-8")
    return str(file)


def test_question_is_planned_over_ones_own_tools_and_answered(home: Path, plant: str) -> None:
    answer = result(run(home, "ask", WARM, "--domain", f"{plant}:domain", "--json"))
    assert [step["tool"] for step in answer["steps"]] == ["find_machine", "read_sensor"]
    assert "M7: 61 °C" in answer["text"]
    planned = run(home, "plan", WARM, "--domain", f"{plant}:domain")
    assert planned.stdout.splitlines()[1] == "s2 = read_sensor(machine_id=s1.machine_id)"


def test_who_asks_is_said_by_scope_fields_and_a_field_without_values_takes_any(
    home: Path, plant: str
) -> None:
    def hall(name: str, *given: str) -> str:
        asked = ("ask", WARM, "--domain", f"{plant}:{name}", "--json", *given)
        return str(result(run(home, *asked))["steps"][0]["rows"][0]["name"])

    assert hall("domain").endswith("hall B")
    assert hall("domain", "--scope", "hall=C").endswith("hall C")
    assert hall("open_hall", "--scope", "hall=of mirrors").endswith("hall of mirrors")


REFUSED = {
    "no such file": ("nowhere.py:domain", (), "Write FILE.py:NAME"),
    "no such name": ("plant.py:other", (), "has no other"),
    "no domain": ("plant.py:tools", (), "is a Toolbox"),
    "a packaged name": ("plant.py:packaged", (), "packaged domain's"),
    "unknown value": ("plant.py:domain", ("--scope", "hall=Z"), "B, C"),
    "unknown field": ("plant.py:domain", ("--scope", "floor=1"), "There are: hall"),
    "no sign": ("plant.py:domain", ("--scope", "hall"), "FIELD=VALUE"),
    "twice": ("plant.py:domain", ("--scope", "hall=B", "--scope", "hall=C"), "twice"),
    "nobody": ("plant.py:open_hall", (), "--scope hall=VALUE"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_one_line(home: Path, plant: str, case: str) -> None:
    place, more, told = REFUSED[case]
    place = place.replace("plant.py", plant)
    assert told in one_line_error(run(home, "ask", WARM, "--domain", place, *more))


def test_file_that_fails_is_told_with_its_error_and_no_traceback(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("import no_such_package\n")
    error = one_line_error(run(home, "ask", WARM, "--domain", f"{file}:domain"))
    assert "no_such_package" in error


def test_settings_file_runs_no_code_and_the_environment_does(
    own_home: Path, plant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_home / "casewright.toml").write_text(f'domain = "{plant}:domain"\n')
    assert "settings file may not name" in one_line_error(run(own_home, "ask", WARM))
    monkeypatch.setenv("CASEWRIGHT_DOMAIN", f"{plant}:domain")
    assert "61 °C" in run(own_home, "ask", WARM).stdout


@pytest.fixture
def served_plant(home: Path, plant: str, tmp_path: Path) -> Iterator[Served]:
    asked = ["serve", "--domain", f"{plant}:open_hall", "--without-tokens", "--port", "0"]
    with started([*command(), *asked], tmp_path, **environment(home)) as server:
        yield server


def test_service_answers_over_ones_own_tools_and_wants_to_know_who_asks(
    served_plant: Served,
) -> None:
    with served_plant.client(None) as client:
        about = client.get("/about").json()
        assert about["domain"] == "plant"
        assert about["tools"][:2] == ["find_machine", "read_sensor"]
        assert about["scopes"] == {"hall": []}
        assert client.post("/ask", json={"question": WARM}).status_code == 422
        answer = client.post("/ask", json={"question": WARM, "scope": {"hall": "D"}}).json()
        assert "61 °C" in answer["text"]


def test_names_readers_and_queries_are_looked_at_when_the_domain_is_made(tmp_path: Path) -> None:
    tools = Toolbox([])
    for given in ({"name": "Own Tools"}, {"reader": tmp_path / "none"}, {"queries": "none.jsonl"}):
        with pytest.raises(InputError):
            own_domain(**{"name": "own", "toolbox": tools, **given})
    with pytest.raises(InputError, match=r"FILE\.py:NAME"):
        find_domain("nonsense")
