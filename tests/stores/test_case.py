from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.stores import Binary, Case, CaseStore
from tests.stores.helpers import note, note_schema
from tests.support.examples import at_most

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=6,
)
PROBLEMS = st.dictionaries(st.sampled_from(["question", "support", "x", "y"]), PLAIN, max_size=4)


def id_of(case: Case, schema: str = "notes") -> str:
    with CaseStore(note_schema(schema)) as store:
        return store.add([case])[0]


@settings(max_examples=at_most(40), deadline=None)
@given(PROBLEMS, PLAIN)
def test_case_id_does_not_depend_on_key_order(problem: dict[str, Any], solution: Any) -> None:
    reordered = dict(reversed(problem.items()))
    copy = json.loads(json.dumps(solution))
    assert id_of(Case(problem, solution)) == id_of(Case(reordered, copy))


def test_id_of_a_fixed_case_equals_the_recorded_id() -> None:
    case = Case({"question": "Où ?", "n": 3}, {"plan": [1, 2]}, metadata={"tenant": "acme"})
    assert id_of(case) == "1750f1e3-8b71-52ed-95be-77782755b3be"


@pytest.mark.parametrize(
    "other",
    [
        note("q", "t"),
        note("r", "s"),
        Case({"question": "q", "support": "u"}, "s"),
        note("q", "s", metadata={"tenant": "acme"}),
    ],
    ids=["solution", "problem", "component", "tenant"],
)
def test_id_differs_if_solution_problem_or_tenant_differs(other: Case) -> None:
    assert id_of(note("q", "s")) != id_of(other)


def test_id_differs_between_schemas() -> None:
    assert id_of(note("q", "s"), "notes") != id_of(note("q", "s"), "letters")


def test_id_ignores_result_quality_created_and_other_metadata() -> None:
    other = note("q", "s", result="ok", quality=0.5, created="2020-01-01", metadata={"by": "me"})
    assert id_of(note("q", "s")) == id_of(other)


def test_given_id_is_stored_in_canonical_form(store: CaseStore) -> None:
    given_id = "6F9619FF-8B86-D011-B42D-00C04FC964FF"
    assert store.add([note("q", id=given_id)]) == [given_id.lower()]
    assert [case.id for case in store.get(given_id)] == [given_id.lower()]


def test_add_refuses_an_id_that_is_not_a_uuid_and_names_it(store: CaseStore) -> None:
    with pytest.raises(InputError, match="case-17"):
        store.add([note("q", id="case-17")])
    assert store.count() == 0


def test_stored_case_is_returned_unchanged(store: CaseStore) -> None:
    case = Case(
        {"question": "q é 漢", "support": "s", "n": [1, 2.5, None, {"a": True}]},
        {"answer": ["x"]},
        result="solved",
        metadata={"tenant": "acme", "tags": ["a"]},
        quality=0.25,
        created="2024-05-06T07:08:09+00:00",
    )
    (case_id,) = store.add([case])
    (stored,) = store.get(case_id)
    assert stored.id == str(UUID(case_id))
    assert stored.to_json() == case.to_json()


def test_case_without_created_gets_a_utc_time_when_added(store: CaseStore) -> None:
    store.add([note("q")])
    assert store.all()[0].created.endswith("+00:00")


@pytest.mark.parametrize("data", [b"", b"\x89PNG\x00\xff" * 9])
def test_binary_component_is_returned_byte_for_byte(store: CaseStore, data: bytes) -> None:
    (case_id,) = store.add(
        [Case({"question": "what is this", "picture": Binary("image/png", data)})]
    )
    picture = store.get(case_id)[0].problem["picture"]
    assert picture == Binary("image/png", data)
    assert picture.read() == data


def test_binary_component_may_be_a_file(store: CaseStore, tmp_path: Path) -> None:
    file = tmp_path / "sound.wav"
    file.write_bytes(b"RIFF")
    (case_id,) = store.add([Case({"question": "q", "sound": Binary("audio/wav", path=str(file))})])
    assert store.get(case_id)[0].problem["sound"].read() == b"RIFF"


@pytest.mark.parametrize("arguments", [{}, {"data": b"x", "path": "x"}])
def test_binary_needs_exactly_one_of_data_and_path(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="image/png"):
        Binary("image/png", **arguments)


@pytest.mark.parametrize("data", ["photo.png", 5, [1, 2]], ids=repr)
def test_binary_refuses_data_that_is_not_bytes_and_suggests_path(data: Any) -> None:
    with pytest.raises(InputError, match="path="):
        Binary("image/png", data)


@pytest.mark.parametrize(
    "meta",
    [
        {"$media_type": "a plain field of somebody's JSON"},
        {"$media_type": "image/png", "base64": "no base64!"},
        {"$media_type": "image/png", "base64": "", "path": "both"},
        {"$media_type": 3, "path": "x"},
    ],
    ids=["alone", "no base64", "both", "no text"],
)
def test_mapping_that_resembles_a_binary_is_returned_unchanged(store: CaseStore, meta: Any) -> None:
    problem = {"question": "q", "meta": meta}
    store.add([Case(problem)])
    assert [case.problem for case in store.all()] == [problem]


@pytest.mark.parametrize(
    "case",
    [
        Case({"question": "q", "picture": b"raw"}),
        Case({"question": "q", "pictures": [Binary("image/png", b"x")]}),
        note("q", {1, 2}),
        note("q", object()),
        note("q", result=b"raw"),
        note("q", metadata={"when": object()}),
    ],
    ids=["bytes", "nested binary", "set", "object", "result", "metadata"],
)
def test_add_refuses_a_case_that_is_not_json_and_writes_nothing(
    store: CaseStore, case: Case
) -> None:
    with pytest.raises(InputError, match="JSON"):
        store.add([note("fine"), case])
    assert store.count() == 0


@pytest.mark.parametrize(
    "case",
    [note("q", math.nan), note("q", result=math.inf), note("q", metadata={"m": math.nan})],
    ids=["solution", "result", "metadata"],
)
def test_add_refuses_nan_and_infinity_in_a_case(case: Case) -> None:
    with CaseStore(note_schema()) as store, pytest.raises(InputError):
        store.add([case])


def test_add_and_search_refuse_text_with_half_a_surrogate_pair() -> None:
    with CaseStore(note_schema()) as store:
        with pytest.raises(InputError):
            store.add([note("half a surrogate pair: \ud83d")])
        store.add([note("whole")])
        with pytest.raises(InputError, match="ud83d"):
            store.search("half a surrogate pair: \ud83d")
