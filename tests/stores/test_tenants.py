from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from casewright.errors import InputError, StoreError
from casewright.stores import Case, CaseSchema, CaseStore, Change, text_facet
from tests.stores.helpers import note, note_schema, number_id
from tests.support.encoders import HashingEncoder


@pytest.fixture
def acme(store: CaseStore) -> Iterator[CaseStore]:
    with store.for_tenant("acme") as bound:
        yield bound


@pytest.fixture
def zeta(store: CaseStore) -> Iterator[CaseStore]:
    with store.for_tenant("zeta") as bound:
        yield bound


def solutions(store: CaseStore, **where: Any) -> list[Any]:
    return sorted(case.solution for case in store.all(where or None))


def test_every_read_method_returns_only_cases_of_the_tenant(
    store: CaseStore, acme: CaseStore, zeta: CaseStore
) -> None:
    mine = acme.add([note(f"red {i}", i, metadata={"even": i % 2 == 0}) for i in range(30)])
    theirs = zeta.add([note(f"red {i}", 100 + i, metadata={"even": True}) for i in range(40)])
    nobodys = store.add([note("red", 200, metadata={"even": True})])
    for bound, ids, own in ((acme, mine, range(30)), (zeta, theirs, range(100, 140))):
        assert solutions(bound) == list(own)
        assert bound.count() == len(ids)
        assert bound.count({"even": {"not": False}}) == len(solutions(bound, even=True))
        assert {hit.case.id for hit in bound.search("red", 200)} == set(ids)
        assert {hit.case.id for hit in bound.select("red", 200).hits} == set(ids)
        told = bound.select("red", 5, lambda_d=0.2, candidates=10)
        assert told.certified
        assert {hit.case.id for hit in told.hits} <= set(ids)
        assert [case.id for case in bound.get(mine + theirs + nobodys)] == ids
        assert {case.metadata["tenant"] for case in bound.all()} == {bound.tenant}
    assert store.count() == 71


def test_get_does_not_return_a_case_of_another_tenant(acme: CaseStore, zeta: CaseStore) -> None:
    (case_id,) = acme.add([note("q", 1)])
    assert zeta.get(case_id) == []
    assert zeta.get([case_id, case_id.upper()]) == []


def test_delete_removes_only_cases_of_the_tenant(acme: CaseStore, zeta: CaseStore) -> None:
    mine, theirs = acme.add([note("q", 1), note("r", 2)]), zeta.add([note("q", 3)])
    zeta.delete([*mine, *theirs])
    assert (solutions(acme), solutions(zeta)) == ([1, 2], [])


def test_clear_removes_only_cases_of_the_tenant(
    store: CaseStore, acme: CaseStore, zeta: CaseStore
) -> None:
    zeta.clear()
    acme.add([note(f"q {i}", i) for i in range(300)])
    zeta.add([note("q", 3)])
    store.add([note("nobody's", 4)])
    acme.clear()
    assert (solutions(acme), solutions(zeta), solutions(store)) == ([], [3], [3, 4])


def test_update_of_a_case_of_another_tenant_is_refused(acme: CaseStore, zeta: CaseStore) -> None:
    (mine,), (theirs,) = acme.add([note("q", 1)]), zeta.add([note("q", 1)])
    with pytest.raises(InputError, match=mine):
        zeta.update({theirs: Change(quality=0.9), mine: Change(quality=0.9)})
    assert [case.quality for case in acme.all() + zeta.all()] == [None, None]


@pytest.mark.parametrize("how", ["add", "add late in a batch", "retain"])
def test_case_with_an_id_used_by_another_tenant_is_refused(
    acme: CaseStore, zeta: CaseStore, how: str
) -> None:
    acme.add([note("q", 1, id=number_id(1))])
    taken = note("stolen", 2, id=number_id(1).upper())
    others = [note(f"n {i}", i) for i in range(300)]
    ways = {
        "add": lambda: zeta.add([taken]),
        "add late in a batch": lambda: zeta.add([*others, taken]),
        "retain": lambda: zeta.retain(taken),
    }
    with pytest.raises(InputError, match=f"{number_id(1)} is not free"):
        ways[how]()
    assert (solutions(acme), zeta.count()) == ([1], 0)
    # One's own may be.
    acme.add([note("q", 3, id=number_id(1))])
    assert acme.retain(note("q", 3, id=number_id(1), quality=0.5)).outcome == "updated"
    assert solutions(acme) == [3]


def test_case_with_the_metadata_of_another_tenant_is_refused(acme: CaseStore) -> None:
    for write in (acme.retain, lambda case: acme.add([case])):
        with pytest.raises(InputError, match="'zeta'"):
            write(note("q", 1, metadata={"tenant": "zeta"}))
        write(note("q", 1, metadata={"tenant": "acme"}))
    assert acme.count() == 1


@pytest.mark.parametrize("several", [["acme", "zeta"], {"a": 1}, [], 1.5])
def test_case_with_several_or_invalid_tenants_is_refused(store: CaseStore, several: Any) -> None:
    with pytest.raises(InputError, match="tenant"):
        store.add([note("q", 1, metadata={"tenant": several})])


@pytest.mark.parametrize("other", ["zeta", ["acme", "zeta"], {"not": "acme"}, True, "Acme"])
def test_condition_on_another_tenant_is_refused(acme: CaseStore, other: Any) -> None:
    where = {"tenant": other}
    for filled in (False, True):
        if filled:
            acme.add([note("q", 1)])
        for ask in (
            lambda: acme.count(where),
            lambda: acme.all(where),
            lambda: acme.search("q", where=where),
            lambda: acme.select("q", where=where),
        ):
            with pytest.raises(InputError, match="tenant"):
                ask()
    assert acme.count({"tenant": "acme"}) == 1


def test_equal_cases_of_two_tenants_have_different_ids(
    store: CaseStore, acme: CaseStore, zeta: CaseStore
) -> None:
    ids = [bound.add([note("q", 1)])[0] for bound in (store, acme, zeta)]
    assert len(set(ids)) == 3
    assert store.count() == 3
    # Bound or told by the case itself: the id is the same.
    assert store.add([note("q", 1, metadata={"tenant": "acme"})]) == [ids[1]]


def test_retain_finds_duplicates_within_a_tenant_and_not_across_tenants(
    store: CaseStore, acme: CaseStore, zeta: CaseStore
) -> None:
    def case(text: str) -> Case:
        return Case({"question": text, "support": text}, "12 m")

    told = [bound.retain(case("how tall")) for bound in (acme, zeta, store)]
    again = [bound.retain(case("How tall?")) for bound in (acme, zeta, store)]
    assert [one.outcome for one in told] == ["added"] * 3
    assert [(one.outcome, one.id) for one in again] == [("duplicate", one.id) for one in told]


def test_tenanted_schema_cannot_be_opened_without_a_tenant(place: str) -> None:
    schema = note_schema(tenanted=True)
    with pytest.raises(InputError, match="tenant="):
        CaseStore(schema, place)
    with CaseStore(schema, place, tenant="acme") as acme:
        acme.add([note("q", 1)])
        with acme.for_tenant("zeta") as zeta:
            assert (acme.count(), zeta.count()) == (1, 0)


@pytest.mark.parametrize("tenant", ["", 5, ["acme"], b"acme"], ids=repr)
def test_tenant_that_is_not_a_nonempty_text_is_refused(tenant: Any) -> None:
    with CaseStore(note_schema()) as store:
        for name in (
            lambda: store.for_tenant(tenant),
            lambda: CaseStore(store.schema, tenant=tenant),
        ):
            with pytest.raises(InputError, match="tenant"):
                name()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=str)
def test_tenant_stores_may_be_closed_in_any_order(place: str, order: tuple[int, ...]) -> None:
    store = CaseStore(note_schema(), place)
    stores = [store, store.for_tenant("acme"), store.for_tenant("zeta")]
    for bound in stores:
        bound.add([note("q", 1)])
    for place_, closing in enumerate(order):
        stores[closing].close()
        stores[closing].close()
        with pytest.raises(StoreError, match="closed"):
            stores[closing].count()
        for still in order[place_ + 1 :]:
            assert stores[still].count() == (3 if still == 0 else 1)
    with pytest.raises(StoreError, match="closed"):
        store.for_tenant("acme")
    if place != ":memory:":
        with CaseStore(note_schema(), place, tenant="acme") as again:
            assert again.count() == 1


def test_tenant_may_have_any_name(store: CaseStore) -> None:
    names = ["Ä", "a b", 'a"b', "a.b", "*", "null", "1", "x" * 500, "\n"]
    for name in names:
        with store.for_tenant(name) as bound:
            bound.add([note("q", name)])
    for name in names:
        with store.for_tenant(name) as bound:
            assert solutions(bound) == [name]
            assert bound.select("q", 3).hits[0].case.solution == name


def test_concurrent_adds_of_one_id_by_two_tenants_store_only_one(
    place: str,
) -> None:
    meet = threading.Barrier(2)

    class Meeting(HashingEncoder):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if "taken" in texts:
                meet.wait(20)
            return super().embed(texts)

    schema = CaseSchema("notes", (text_facet("question", Meeting()),))
    with CaseStore(schema, place) as store:
        store.add([note("first")])

        def add(tenant: str) -> bool:
            with store.for_tenant(tenant) as bound:
                try:
                    return bool(bound.add([note("taken", tenant, id=number_id(1))]))
                except InputError:
                    return False

        with ThreadPoolExecutor(2) as pool:
            told = dict(zip(("acme", "zeta"), pool.map(add, ("acme", "zeta")), strict=True))
        assert sorted(told.values()) == [False, True]
        (kept,) = store.get(number_id(1))
        assert told[kept.solution]
