from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.tools import (
    NO_EVIDENCE,
    CallContext,
    Parameter,
    Source,
    Toolbox,
    ToolSpec,
    tool_from_record,
    toolbox_from_file,
    toolbox_to_records,
)
from tests.support.examples import at_most
from tests.support.random_requests import random_toolbox

ROOM: dict[str, Any] = {
    "name": "find-room",
    "description": "Finds free rooms.",
    "parameters": {
        "town": "Where.",
        "beds": {"description": "How many.", "kind": "integer", "required": False},
        "view": {"choices": ["sea", "street"]},
        "guest_id": {"sources": ["context"]},
    },
    "results": ["room_id"],
    "example": {"query": "a room in Kiel", "plan": 's1 = find_x2d_room(town="Kiel")'},
}


def write_toolbox(folder: Path, content: Any) -> Path:
    file = folder / "tools.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def test_toolbox_from_file_reads_all_fields_of_a_parameter(tmp_path: Path) -> None:
    toolbox = toolbox_from_file(write_toolbox(tmp_path, [ROOM]))
    assert toolbox.names == ("find_x2d_room", "no_evidence")
    town, beds, view, guest = toolbox["find_x2d_room"].parameters
    assert town == Parameter("town", "Where.")
    assert beds == Parameter("beds", "How many.", "integer", required=False)
    assert beds.sources == {Source.NUMBER, Source.CONTEXT, Source.STEP}
    assert view == Parameter("view", kind="string", choices=("sea", "street"))
    assert view.sources == frozenset()
    assert guest.sources == {Source.CONTEXT}


def test_list_and_object_with_tools_give_the_same_toolbox(tmp_path: Path) -> None:
    bare = toolbox_from_file(write_toolbox(tmp_path, [ROOM])).fingerprint()
    assert toolbox_from_file(write_toolbox(tmp_path, {"tools": [ROOM]})).fingerprint() == bare


def test_tool_from_record_reads_the_same_parameter_fields() -> None:
    beds = tool_from_record(ROOM).parameters[1]
    assert beds == Parameter("beds", "How many.", "integer", required=False)


def test_toolbox_from_file_keeps_a_name_that_is_an_identifier(tmp_path: Path) -> None:
    record = {"name": "get_xml"}
    assert "get_xml" in toolbox_from_file(write_toolbox(tmp_path, [record]))
    # A query record's tool escapes a name that looks like an alias.
    assert tool_from_record(record).name == "get_x5f_xml"


def test_toolbox_from_file_always_has_a_runnable_no_evidence(tmp_path: Path) -> None:
    assert toolbox_from_file(write_toolbox(tmp_path, [ROOM]))["no_evidence"] is NO_EVIDENCE
    chat = {"name": "no_evidence", "description": "Chat."}
    toolbox = toolbox_from_file(write_toolbox(tmp_path, [chat, ROOM]))
    assert toolbox.names[0] == "no_evidence"
    tool = toolbox["no_evidence"]
    assert tool.description == "Chat."
    assert tool.run is not None
    assert tool.run({}, CallContext()) == []


@settings(max_examples=at_most(60), deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_toolbox_is_restored_from_its_records(
    tmp_path_factory: pytest.TempPathFactory, seed: int, is_reordered: bool, has_odd_name: bool
) -> None:
    draw = random.Random(seed)
    tools = list(random_toolbox(draw))
    # Users change the order of tools, and use names that look like aliases.
    if is_reordered:
        tools.insert(0, tools.pop())
    if has_odd_name:
        tools.append(ToolSpec(draw.choice(["get_xml", "a_x2d_b", "_x_"]), "Odd."))
    toolbox = Toolbox(tools)
    file = write_toolbox(tmp_path_factory.getbasetemp(), toolbox_to_records(toolbox))
    restored = toolbox_from_file(file)
    assert restored.fingerprint() == toolbox.fingerprint()
    assert [tool.parameters for tool in restored] == [tool.parameters for tool in toolbox]
    assert [tool.results for tool in restored] == [tool.results for tool in toolbox]


def with_parameter(value: Any) -> list[dict[str, Any]]:
    return [{"name": "ping"}, {**ROOM, "parameters": {"town": value}}]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (with_parameter({"kind": "text"}), ["town", "'text'", "'string'"]),
        (with_parameter({"sources": ["webpage"]}), ["town", "webpage", "'question'"]),
        (with_parameter({"source": ["context"]}), ["town", "'source'", "sources?"]),
        (with_parameter({"sources": "context"}), ["town.sources", "list of texts"]),
        (with_parameter({"required": "no"}), ["town.required", "true or false"]),
        (with_parameter({"choices": [1, 2]}), ["town.choices.0", "Write a text."]),
        (with_parameter(5), ["parameters.town", "Write a description."]),
        ([{"name": "ping"}, {**ROOM, "parameters": ["town"]}], ["parameters", "an object"]),
        ([{"name": "ping"}, {**ROOM, "descripton": "Finds."}], ["descripton", "description?"]),
        ([{"name": "ping"}, {**ROOM, "results": ["room id"]}], ["room id", "underscores"]),
        ([{"name": "ping"}, {"description": "Nameless."}], ["name", "Add it."]),
        ([{"name": "ping"}, "pong"], ["the record", "an object"]),
    ],
    ids=lambda value: value[0] if isinstance(value[0], str) else "",
)
def test_invalid_tool_in_a_file_raises_input_error_naming_file_and_tool(
    tmp_path: Path, content: Any, parts: list[str]
) -> None:
    file = write_toolbox(tmp_path, content)
    with pytest.raises(InputError) as caught:
        toolbox_from_file(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: tool 2")
    assert [part for part in parts if part not in message] == []
    assert ("(find-room)" in message) == ("find-room" in file.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("[{", "is not JSON"),
        ("[]", "has no tools"),
        ('{"tool": []}', "has no tools"),
        ("7", "has no tools"),
        ('[{"name": "a"}, {"name": "a"}]', r"\['a'\]"),
        ('[{"name": "a", "parameters": {"b": "", "b": ""}}]', "the name b twice"),
        ('[{"name": "no_evidence", "parameters": {"b": ""}}]', "Leave its parameters out"),
        ("[" * 100_000, "is not JSON"),
        (r'[{"name": "a", "description": "\ud800"}]', "half of a surrogate pair"),
    ],
    ids=[
        *("cut", "empty", "misnamed", "number", "twice", "parameter-twice", "no-evidence", "deep"),
        "surrogate",
    ],
)
def test_file_that_is_no_toolbox_raises_input_error_naming_it(
    tmp_path: Path, content: str, cause: str
) -> None:
    with pytest.raises(InputError, match=rf"tools\.json.*{cause}"):
        toolbox_from_file(write_toolbox(tmp_path, content))


def test_unreadable_toolbox_file_raises_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Give a JSON file"):
        toolbox_from_file(tmp_path / "none.json")
    with pytest.raises(InputError, match="Give a JSON file"):
        toolbox_from_file(tmp_path)
    (tmp_path / "latin.json").write_bytes(b"\xff")
    with pytest.raises(InputError, match="Give a JSON file"):
        toolbox_from_file(tmp_path / "latin.json")
