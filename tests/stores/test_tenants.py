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
    with store.for_tenant("acme") as tenant_store:
        yield tenant_store


@pytest.fixture
def zeta(store: CaseStore) -> Iterator[CaseStore]:
    with store.for_tenant("zeta") as tenant_store:
        yield tenant_store


def solutions(store: CaseStore, **where: Any) -> list[Any]:
    return sorted(case.solution for case in store.all(where or None))


def test_every_read_method_returns_only_cases_of_the_tenant(
    store: CaseStore, acme: CaseStore, zeta: CaseStore
) -> None:
    acme_ids = acme.add([note(f"red {i}", i, metadata={"even": i % 2 == 0}) for i in range(30)])
    zeta_ids = zeta.add([note(f"red {i}", 100 + i, metadata={"even": True}) for i in range(40)])
    other_ids = store.add([note("red", 200, metadata={"even": True})])
    for tenant_store, ids, own in ((acme, acme_ids, range(30)), (zeta, zeta_ids, range(100, 140))):
        assert solutions(tenant_store) == list(own)
        assert tenant_store.count() == len(ids)
        even_count = len(solutions(tenant_store, even=True))
        assert tenant_store.count({"even": {"not": False}}) == even_count
        assert {hit.case.id for hit in tenant_store.search("red", 200)} == set(ids)
        assert {hit.case.id for hit in tenant_store.select("red", 200).hits} == set(ids)
        selection = tenant_store.select("red", 5, lambda_d=0.2, candidates=10)
        assert selection.certified
        assert {hit.case.id for hit in selection.hits} <= set(ids)
        assert [case.id for case in tenant_store.get(acme_ids + zeta_ids + other_ids)] == ids
        assert {case.metadata["tenant"] for case in tenant_store.all()} == {tenant_store.tenant}
    assert store.count() == 71


def test_get_does_not_return_a_case_of_another_tenant(acme: CaseStore, zeta: CaseStore) -> None:
    (case_id,) = acme.add([note("q", 1)])
    assert zeta.get(case_id) == []
    assert zeta.get([case_id, case_id.upper()]) == []


def test_delete_removes_only_cases_of_the_tenant(acme: CaseStore, zeta: CaseStore) -> None:
    acme_ids, zeta_ids = acme.add([note("q", 1), note("r", 2)]), zeta.add([note("q", 3)])
    zeta.delete([*acme_ids, *zeta_ids])
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
    (acme_id,), (zeta_id,) = acme.add([note("q", 1)]), zeta.add([note("q", 1)])
    with pytest.raises(InputError, match=acme_id):
        zeta.update({zeta_id: Change(quality=0.9), acme_id: Change(quality=0.9)})
    assert [case.quality for case in acme.all() + zeta.all()] == [None, None]


@pytest.mark.parametrize("operation", ["add", "add late in a batch", "retain"])
def test_case_with_an_id_used_by_another_tenant_is_refused(
    acme: CaseStore, zeta: CaseStore, operation: str
) -> None:
    acme.add([note("q", 1, id=number_id(1))])
    case = note("stolen", 2, id=number_id(1).upper())
    others = [note(f"n {i}", i) for i in range(300)]
    operations = {
        "add": lambda: zeta.add([case]),
        "add late in a batch": lambda: zeta.add([*others, case]),
        "retain": lambda: zeta.retain(case),
    }
    with pytest.raises(InputError, match=f"{number_id(1)} is not free"):
        operations[operation]()
    assert (solutions(acme), zeta.count()) == ([1], 0)
    # A tenant may use an id of its own again.
    acme.add([note("q", 3, id=number_id(1))])
    assert acme.retain(note("q", 3, id=number_id(1), quality=0.5)).outcome == "updated"
    assert solutions(acme) == [3]


def test_case_with_the_metadata_of_another_tenant_is_refused(acme: CaseStore) -> None:
    for write in (acme.retain, lambda case: acme.add([case])):
        with pytest.raises(InputError, match="'zeta'"):
            write(note("q", 1, metadata={"tenant": "zeta"}))
        write(note("q", 1, metadata={"tenant": "acme"}))
    assert acme.count() == 1


@pytest.mark.parametrize("tenant", [["acme", "zeta"], {"a": 1}, [], 1.5])
def test_case_with_several_or_invalid_tenants_is_refused(store: CaseStore, tenant: Any) -> None:
    with pytest.raises(InputError, match="tenant"):
        store.add([note("q", 1, metadata={"tenant": tenant})])


@pytest.mark.parametrize("condition", ["zeta", ["acme", "zeta"], {"not": "acme"}, True, "Acme"])
def test_condition_on_another_tenant_is_refused(acme: CaseStore, condition: Any) -> None:
    where = {"tenant": condition}
    for filled in (False, True):
        if filled:
            acme.add([note("q", 1)])
        for read in (
            lambda: acme.count(where),
            lambda: acme.all(where),
            lambda: acme.search("q", where=where),
            lambda: acme.select("q", where=where),
        ):
            with pytest.raises(InputError, match="tenant"):
                read()
    assert acme.count({"tenant": "acme"}) == 1


def test_equal_cases_of_two_tenants_have_different_ids(
    store: CaseStore, acme: CaseStore, zeta: CaseStore
) -> None:
    ids = [tenant_store.add([note("q", 1)])[0] for tenant_store in (store, acme, zeta)]
    assert len(set(ids)) == 3
    assert store.count() == 3
    # The id is the same if the case, instead of the store, has the tenant.
    assert store.add([note("q", 1, metadata={"tenant": "acme"})]) == [ids[1]]


def test_retain_finds_duplicates_within_a_tenant_and_not_across_tenants(
    store: CaseStore, acme: CaseStore, zeta: CaseStore
) -> None:
    def case(text: str) -> Case:
        return Case({"question": text, "support": text}, "12 m")

    added = [tenant_store.retain(case("how tall")) for tenant_store in (acme, zeta, store)]
    assert [retained.outcome for retained in added] == ["added"] * 3
    repeated = [tenant_store.retain(case("How tall?")) for tenant_store in (acme, zeta, store)]
    assert [retained.outcome for retained in repeated] == ["duplicate"] * 3
    assert [retained.id for retained in repeated] == [retained.id for retained in added]


def test_tenanted_schema_cannot_be_opened_without_a_tenant(location: str) -> None:
    schema = note_schema(tenanted=True)
    with pytest.raises(InputError, match="tenant="):
        CaseStore(schema, location)
    with CaseStore(schema, location, tenant="acme") as acme:
        acme.add([note("q", 1)])
        with acme.for_tenant("zeta") as zeta:
            assert (acme.count(), zeta.count()) == (1, 0)


@pytest.mark.parametrize("tenant", ["", 5, ["acme"], b"acme"], ids=repr)
def test_tenant_that_is_not_a_nonempty_text_is_refused(tenant: Any) -> None:
    with CaseStore(note_schema()) as store:
        for open_store in (
            lambda: store.for_tenant(tenant),
            lambda: CaseStore(store.schema, tenant=tenant),
        ):
            with pytest.raises(InputError, match="tenant"):
                open_store()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=str)
def test_tenant_stores_may_be_closed_in_any_order(location: str, order: tuple[int, ...]) -> None:
    store = CaseStore(note_schema(), location)
    stores = [store, store.for_tenant("acme"), store.for_tenant("zeta")]
    for tenant_store in stores:
        tenant_store.add([note("q", 1)])
    for position, closed in enumerate(order):
        stores[closed].close()
        stores[closed].close()
        with pytest.raises(StoreError, match="closed"):
            stores[closed].count()
        for index in order[position + 1 :]:
            assert stores[index].count() == (3 if index == 0 else 1)
    with pytest.raises(StoreError, match="closed"):
        store.for_tenant("acme")
    if location != ":memory:":
        with CaseStore(note_schema(), location, tenant="acme") as reopened:
            assert reopened.count() == 1


def test_tenant_may_have_any_name(store: CaseStore) -> None:
    names = ["Ä", "a b", 'a"b', "a.b", "*", "null", "1", "x" * 500, "\n"]
    for name in names:
        with store.for_tenant(name) as tenant_store:
            tenant_store.add([note("q", name)])
    for name in names:
        with store.for_tenant(name) as tenant_store:
            assert solutions(tenant_store) == [name]
            assert tenant_store.select("q", 3).hits[0].case.solution == name


def test_concurrent_adds_of_one_id_by_two_tenants_store_only_one(location: str) -> None:
    barrier = threading.Barrier(2)

    class WaitingEncoder(HashingEncoder):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if "taken" in texts:
                barrier.wait(20)
            return super().embed(texts)

    schema = CaseSchema("notes", (text_facet("question", WaitingEncoder()),))
    with CaseStore(schema, location) as store:
        store.add([note("first")])

        def add(tenant: str) -> bool:
            with store.for_tenant(tenant) as tenant_store:
                try:
                    return bool(tenant_store.add([note("taken", tenant, id=number_id(1))]))
                except InputError:
                    return False

        with ThreadPoolExecutor(2) as pool:
            added = dict(zip(("acme", "zeta"), pool.map(add, ("acme", "zeta")), strict=True))
        assert sorted(added.values()) == [False, True]
        (case,) = store.get(number_id(1))
        assert added[case.solution]
