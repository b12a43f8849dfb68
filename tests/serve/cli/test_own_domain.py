"""`--domain FILE.py:NAME`: a user's own tools on the command line and in the service."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.domains import find_domain, own_domain
from casewright.domains.python_file import load_object
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


def test_question_is_planned_and_answered_with_a_users_own_tools(home: Path, plant: str) -> None:
    answer = result(run(home, "ask", WARM, "--domain", f"{plant}:domain", "--json"))
    assert [step["tool"] for step in answer["steps"]] == ["find_machine", "read_sensor"]
    assert "M7: 61 °C" in answer["text"]
    completed = run(home, "plan", WARM, "--domain", f"{plant}:domain")
    assert completed.stdout.splitlines()[1] == "s2 = read_sensor(machine_id=s1.machine_id)"


def test_option_scope_sets_scope_fields_and_fields_without_values_take_any(
    home: Path, plant: str
) -> None:
    def hall_name(domain: str, *options: str) -> str:
        arguments = ("ask", WARM, "--domain", f"{plant}:{domain}", "--json", *options)
        return str(result(run(home, *arguments))["steps"][0]["rows"][0]["name"])

    assert hall_name("domain").endswith("hall B")
    assert hall_name("domain", "--scope", "hall=C").endswith("hall C")
    assert hall_name("open_hall", "--scope", "hall=of mirrors").endswith("hall of mirrors")


INVALID = {
    "no such file": ("nowhere.py:domain", (), "Write FILE.py:NAME"),
    "no such name": ("plant.py:other", (), "has no other"),
    "no domain": ("plant.py:tools", (), "names a Toolbox"),
    "a packaged name": ("plant.py:packaged", (), "packaged domain's"),
    "unknown value": ("plant.py:domain", ("--scope", "hall=Z"), "B, C"),
    "unknown field": ("plant.py:domain", ("--scope", "floor=1"), "There are: hall"),
    "no sign": ("plant.py:domain", ("--scope", "hall"), "NAME=VALUE"),
    "twice": ("plant.py:domain", ("--scope", "hall=B", "--scope", "hall=C"), "twice"),
    "nobody": ("plant.py:open_hall", (), "--scope hall=VALUE"),
}


@pytest.mark.parametrize("case", INVALID)
def test_unusable_domain_file_or_scope_prints_an_error_of_one_line(
    home: Path, plant: str, case: str
) -> None:
    domain, options, message = INVALID[case]
    domain = domain.replace("plant.py", plant)
    assert message in one_line_error(run(home, "ask", WARM, "--domain", domain, *options))


def test_import_error_in_a_domain_file_is_printed_without_a_traceback(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("import no_such_package\n")
    error = one_line_error(run(home, "ask", WARM, "--domain", f"{file}:domain"))
    assert "no_such_package" in error


def write_domain(folder: Path, name: str, text: str) -> str:
    """Write a file with the plant's tools and ``text``; return the name of its domain."""
    file = folder / f"{name}.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{PLANT}\n{text}\n", encoding="utf-8")
    return f"{file}:domain"


#: Text after the plant's own lines, and a part of the error message.
MISTAKES = {
    "ends the process": ("import sys; sys.exit(0)", "sys.exit(0)"),
    "ends it without a code": ("raise SystemExit", "ends the process"),
    "a list of tools": (
        "domain = own_domain('plant', list(tools), scopes={'hall': ['B']})",
        "Give Toolbox([…])",
    ),
    "a function that returns nothing": (
        "domain = own_domain('plant', lambda: None, scopes={'hall': ['B']})",
        "returned a NoneType",
    ),
    "a function that fails": (
        "domain = own_domain('plant', lambda: {}['key'], scopes={'hall': ['B']})",
        "failed: KeyError: 'key'. Correct the file.",
    ),
    "a function that ends the process": (
        "import sys; domain = own_domain('plant', lambda: sys.exit(3), scopes={'hall': ['B']})",
        "sys.exit(3)",
    ),
    "scopes as a text": (
        "domain = own_domain('plant', tools, scopes={'hall': 'B'})",
        "'hall' of 'plant' are a str. Give a list",
    ),
    "numbers as scopes": (
        "domain = own_domain('plant', tools, scopes={'hall': [7]})",
        "hold a int. Give texts",
    ),
    "scopes as a list": ("domain = own_domain('plant', tools, scopes=['hall'])", "not a mapping"),
    "the service's scope field": (
        "domain = own_domain('plant', tools, scopes={'tenant': ['B']})",
        "the service fills in",
    ),
    "questions as a text": ("domain = own_domain('plant', tools, questions='abc')", "are a str"),
    "queries that are none": (
        "domain = own_domain('plant', tools, [{'query': 'q', 'plan': 's1 = no_evidence()'}])",
        "AnnotatedQuery.read",
    ),
    "a plan of an unknown tool": (
        "queries.append(AnnotatedQuery.read({'id': 'q7', 'query': 'q', 'plan': 's1 = gone()'}))\n"
        "domain = own_domain('plant', tools, queries, scopes={'hall': ['B']})",
        "query 'q7': s1: There is no tool gone",
    ),
    "a plan that the tools do not take": (
        "made_up = 's1 = read_sensor(machine_id=\"M1\")'\n"
        "queries.append(AnnotatedQuery.read({'query': 'q', 'plan': made_up}))\n"
        "domain = own_domain('plant', tools, queries, scopes={'hall': ['B']})",
        "query 2: s1: machine_id may not be",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistake_in_a_domain_file_prints_one_line_that_describes_it(
    home: Path, tmp_path: Path, case: str
) -> None:
    text, message = MISTAKES[case]
    assert message in one_line_error(
        run(home, "ask", WARM, "--domain", write_domain(tmp_path, "own", text))
    )


def test_too_long_name_of_a_domain_file_is_a_missing_file(home: Path) -> None:
    domain = f"{'x' * 300}.py:domain"
    assert "there is no such file" in one_line_error(run(home, "ask", WARM, "--domain", domain))


def test_casewright_error_in_a_domain_file_is_printed_unchanged(home: Path, tmp_path: Path) -> None:
    domain = write_domain(tmp_path, "own", "domain = own_domain('plant', tools, 'none.jsonl')")
    message = one_line_error(run(home, "ask", WARM, "--domain", domain))
    assert message == "none.jsonl cannot be read: No such file or directory."


def test_own_domain_accepts_an_annotated_query_with_an_extra_tool(
    home: Path, tmp_path: Path
) -> None:
    own_tool = {"name": "open_door", "description": "Opens a door.", "parameters": {}}
    query = {"query": "open it", "plan": "s1 = open_door()", "tools_extra": [own_tool]}
    text = (
        f"queries.append(AnnotatedQuery.read({query!r}))\n"
        "domain = own_domain('plant', tools, queries, scopes={'hall': ['B']})"
    )
    completed = run(home, "ask", WARM, "--domain", write_domain(tmp_path, "own", text), "--json")
    assert result(completed)["steps"][0]["tool"] == "find_machine"


def test_output_of_a_domain_file_goes_to_stderr_and_not_into_json(
    home: Path, tmp_path: Path
) -> None:
    text = (
        "print('opening the plant')\n"
        "def made(): print('making the tools'); return tools\n"
        "domain = own_domain('plant', made, queries, scopes={'hall': ['B']})"
    )
    completed = run(home, "ask", WARM, "--domain", write_domain(tmp_path, "own", text), "--json")
    assert result(completed)["steps"][0]["tool"] == "find_machine"
    assert completed.stderr.splitlines()[:2] == ["opening the plant", "making the tools"]


def test_called_tool_can_import_a_module_beside_its_file(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sensors_of_this_plant.py").write_text("def read(): return '77 °C'\n", "utf-8")
    text = (
        "def read_sensor(machine_id: str) -> str:\n"
        "    'The latest temperature of one machine.'\n"
        "    from sensors_of_this_plant import read\n"
        "    return read()\n"
        "own_one = tool_from_function(read_sensor, sources={'machine_id': ('step',)})\n"
        "tools = tools.without('read_sensor').with_(own_one)\n"
        "domain = own_domain('plant', tools, queries, scopes={'hall': ['B']})"
    )
    completed = run(home, "ask", WARM, "--domain", write_domain(tmp_path, "own", text), "--json")
    assert "77 °C" in result(completed)["text"]


def test_domain_files_with_the_same_name_in_two_folders_are_two_modules(tmp_path: Path) -> None:
    class_text = "class Kind:\n    pass\n"
    first, second = (write_domain(tmp_path / name, "tools", class_text) for name in ("a", "b"))
    domains = [find_domain(name) for name in (first, second)]
    assert domains[0] is not domains[1]
    classes = [
        load_object(name.replace(":domain", ":Kind"), "--domain", "a class")
        for name in (first, second)
    ]
    assert classes[0].__module__ != classes[1].__module__
    assert [sys.modules[cls.__module__].Kind for cls in classes] == classes


def test_domain_file_is_allowed_in_a_variable_and_refused_in_a_settings_file(
    own_home: Path, plant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_home / "casewright.toml").write_text(f'domain = "{plant}:domain"\n')
    assert "settings file may not name" in one_line_error(run(own_home, "ask", WARM))
    monkeypatch.setenv("CASEWRIGHT_DOMAIN", f"{plant}:domain")
    assert "61 °C" in run(own_home, "ask", WARM).stdout


@pytest.fixture
def served_plant(home: Path, plant: str, tmp_path: Path) -> Iterator[Served]:
    arguments = ["serve", "--domain", f"{plant}:open_hall", "--without-tokens", "--port", "0"]
    with started([*command(), *arguments], tmp_path, **environment(home)) as server:
        yield server


def test_service_answers_with_a_users_own_tools_and_requires_a_scope(
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


def test_own_domain_refuses_invalid_names_missing_readers_and_missing_query_files(
    tmp_path: Path,
) -> None:
    tools = Toolbox([])
    for fault in ({"name": "Own Tools"}, {"reader": tmp_path / "none"}, {"queries": "none.jsonl"}):
        with pytest.raises(InputError):
            own_domain(**{"name": "own", "toolbox": tools, **fault})
    with pytest.raises(InputError, match=r"FILE\.py:NAME"):
        find_domain("nonsense")
