from __future__ import annotations

from dataclasses import replace

import pytest

from casewright.errors import InputError
from casewright.stores import Case, CaseStore
from tests.stores.helpers import note, note_schema, number_id


def test_retain_adds_a_new_case(store: CaseStore) -> None:
    retained = store.retain(note("how tall is it", "12 m"))
    assert (retained.outcome, retained.reason) == ("added", "")
    assert [case.id for case in store.all()] == [retained.id]


def test_retain_of_the_same_case_again_is_unchanged(store: CaseStore) -> None:
    case = note("how tall is it", "12 m", quality=0.5, result={"ok": True})
    first = store.retain(case)
    second = store.retain(case)
    assert (second.outcome, second.id) == ("unchanged", first.id)
    assert store.count() == 1


def test_retain_of_the_same_case_updates_quality_and_result(store: CaseStore) -> None:
    case = note("how tall is it", "12 m", quality=0.5, created="2020-01-01T00:00:00+00:00")
    first = store.retain(case)
    second = store.retain(replace(case, quality=0.8, created=""))
    third = store.retain(replace(case, quality=0.8, result="confirmed", created=""))
    assert {second.outcome, third.outcome} == {"updated"}
    (stored,) = store.all()
    assert (stored.id, stored.quality, stored.result) == (first.id, 0.8, "confirmed")
    assert stored.created == "2020-01-01T00:00:00+00:00"


def test_search_uses_the_quality_updated_by_retain(store: CaseStore) -> None:
    store.retain(note("one", 1, quality=0.2))
    store.retain(note("one", 1, quality=0.9))
    (hit,) = store.search("zzz", lambda_b=0.0)
    assert abs(hit.score - 0.9) < 1e-6


def test_retain_of_a_near_problem_with_the_same_solution_is_a_duplicate(store: CaseStore) -> None:
    first = store.retain(Case({"question": "how tall is it", "support": "a tower"}, "12 m"))
    near = Case({"question": "How tall is it?", "support": "A tower!"}, "12 m")
    retained = store.retain(near)
    assert (retained.outcome, retained.id) == ("duplicate", first.id)
    assert store.count() == 1


def test_retain_adds_a_near_problem_with_another_solution(store: CaseStore) -> None:
    store.retain(Case({"question": "how tall is it", "support": "a tower"}, "12 m"))
    retained = store.retain(Case({"question": "How tall is it?", "support": "A tower!"}, "13 m"))
    assert retained.outcome == "added"
    assert store.count() == 2


def test_retain_adds_a_different_problem_with_the_same_solution(store: CaseStore) -> None:
    store.retain(note("how tall is it", "12 m"))
    assert store.retain(note("how deep is the lake", "12 m")).outcome == "added"


def test_near_setting_of_the_schema_decides_what_is_a_duplicate() -> None:
    first, second = note("red apple tree house", "x"), note("red apple tree garden", "x")
    outcomes = []
    for near in (0.5, 0.99):
        with CaseStore(note_schema(near=near)) as store:
            store.retain(first)
            outcomes.append(store.retain(second).outcome)
    assert outcomes == ["duplicate", "added"]


def test_retain_looks_for_duplicates_in_the_same_tenant_only(store: CaseStore) -> None:
    def retain(text: str, tenant: str | None) -> str:
        metadata = {"tenant": tenant} if tenant else {}
        case = Case({"question": text, "support": text}, "12 m", metadata=metadata)
        return store.retain(case).outcome

    assert [retain("how tall", tenant) for tenant in ("acme", "zeta", None)] == ["added"] * 3
    assert [retain("How tall?", tenant) for tenant in ("acme", "zeta", None)] == ["duplicate"] * 3


def test_duplicate_without_tenant_is_found_behind_cases_of_many_tenants(store: CaseStore) -> None:
    def case(text: str, number: int = 99, **metadata: str) -> Case:
        problem = {"question": text, "support": text}
        return Case(problem, "12 m", metadata=metadata, id=number_id(number))

    store.add([case("how tall", i, tenant=f"tenant {i}") for i in range(40)])
    store.retain(case("how tall"))
    assert store.retain(replace(case("How tall?"), id="")).outcome == "duplicate"


def test_duplicate_is_found_behind_cases_with_other_solutions(store: CaseStore) -> None:
    for i in range(30):
        assert store.retain(Case({"question": "pick", "support": "pick"}, i)).outcome == "added"
    outcomes = [
        store.retain(Case({"question": "Pick!", "support": "pick"}, i)).outcome for i in range(30)
    ]
    assert outcomes == ["duplicate"] * 30


def test_retain_treats_a_tuple_as_the_equal_json_list(store: CaseStore) -> None:
    case = Case({"question": "q", "support": "q"}, ("a", 1), result=(1, 2))
    assert [store.retain(case).outcome for _ in range(2)] == ["added", "unchanged"]
    near = replace(case, problem={"question": "Q!", "support": "q"})
    assert store.retain(near).outcome == "duplicate"


def test_retained_case_has_the_id_that_add_gives_it(store: CaseStore) -> None:
    case = note("how tall is it", "12 m")
    assert [store.retain(case).id] == store.add([case])


def test_retain_with_the_id_of_another_case_is_refused_and_changes_nothing(
    store: CaseStore,
) -> None:
    store.retain(note("how tall", "12 m", id=number_id(1)))
    for other in (note("how deep", "12 m"), note("how tall", "13 m", quality=0.5)):
        with pytest.raises(InputError, match="of another case"):
            store.retain(replace(other, id=number_id(1)))
    (stored,) = store.all()
    assert (stored.problem, stored.solution) == ({"question": "how tall"}, "12 m")
    assert stored.quality is None


def test_retain_that_updates_a_case_keeps_its_metadata(store: CaseStore) -> None:
    case = note("how tall", "12 m", metadata={"provenance": "run 1"})
    store.retain(case)
    store.retain(replace(case, metadata={"provenance": "run 2"}, quality=0.5))
    (stored,) = store.all()
    assert (stored.metadata, stored.quality) == ({"provenance": "run 1"}, 0.5)
