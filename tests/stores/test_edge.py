from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import qdrant_edge

from casewright.errors import InputError, StoreDamagedError, StoreError
from casewright.stores import Case, CaseStore
from casewright.stores.engines.connections import open_folder
from casewright.stores.engines.engine import Engine, NoCollectionError
from tests.stores.helpers import note, note_schema, number_id

LAYOUT = {"schema": "odd", "quality": {}}


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Engine]:
    engine = open_folder(tmp_path / "cases")
    yield engine
    engine.close()


def vectors(*rows: list[float]) -> Any:
    return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize("name", ["a/b", "..", "Ä é", "x.new", "\\", "a b", "%2e", "a\nb"])
def test_collection_may_have_any_name(edge: Engine, name: str, tmp_path: Path) -> None:
    edge.create(name, 2, LAYOUT)
    edge.upsert(name, [number_id(1)], vectors([1, 2]), [{"metadata": {}, "n": 1}])
    edge.close()
    reopened = open_folder(tmp_path / "cases")
    assert reopened.layout(name) == LAYOUT
    assert [p.payload["n"] for p in reopened.scroll(name, None)] == [1]
    reopened.drop(name)
    assert reopened.layout(name) is None
    reopened.close()
    assert [p.name for p in (tmp_path / "cases" / "shards").iterdir()] == []


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_vector_that_is_not_finite_is_refused(edge: Engine, number: float) -> None:
    edge.create("c", 2, LAYOUT)
    ids, payloads = [number_id(1), number_id(2)], [{}, {}]
    with pytest.raises(InputError, match=r"'c' at .* NaN"):
        edge.upsert("c", ids, vectors([1, 2], [1, number]), payloads)
    with pytest.raises(InputError, match="NaN"):
        edge.search("c", vectors([1, number])[0], 3, None, exact=True)
    assert edge.count("c", None) == 0


@pytest.mark.parametrize("shape", [(1, 3), (1, 1), (2, 2), (2,), (0, 2)])
def test_vectors_of_another_shape_are_refused(edge: Engine, shape: tuple[int, ...]) -> None:
    edge.create("c", 2, LAYOUT)
    with pytest.raises(InputError, match="shape"):
        edge.upsert("c", [number_id(1)], np.ones(shape, dtype=np.float32), [{}])
    assert edge.count("c", None) == 0


def test_id_that_is_no_uuid_is_refused(edge: Engine) -> None:
    edge.create("c", 2, LAYOUT)
    for call in (
        lambda: edge.upsert("c", ["seventeen"], vectors([1, 2]), [{}]),
        lambda: edge.get("c", ["seventeen"]),
        lambda: edge.delete("c", ["seventeen"]),
    ):
        with pytest.raises(InputError, match="UUID"):
            call()


def test_call_on_a_missing_collection_raises_no_collection_error(edge: Engine) -> None:
    ids, vector = [number_id(1)], vectors([1, 2])
    assert edge.layout("c") is None
    edge.drop("c")
    for call in (
        lambda: edge.upsert("c", ids, vector, [{}]),
        lambda: edge.search("c", vector[0], 1, None, exact=True),
        lambda: edge.get("c", ids),
        lambda: edge.scroll("c", None),
        lambda: edge.delete("c", ids),
        lambda: edge.count("c", None),
    ):
        with pytest.raises(NoCollectionError, match="'c'"):
            call()


def test_call_on_a_closed_engine_raises_store_error_but_second_close_works(edge: Engine) -> None:
    edge.create("c", 2, LAYOUT)
    edge.count("c", None)
    edge.close()
    edge.close()
    for call in (lambda: edge.layout("c"), lambda: edge.count("c", None), lambda: edge.drop("c")):
        with pytest.raises(StoreError, match="closed"):
            call()


def test_shard_is_loaded_at_first_use_and_not_at_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("notes", "letters"):
        with CaseStore(note_schema(name), tmp_path) as store:
            store.add([note("q")])
    loaded: list[str] = []

    class LoadRecorder:
        @staticmethod
        def load(path: str) -> qdrant_edge.EdgeShard:
            loaded.append(Path(path).parent.name)
            return real.load(path)

    real = qdrant_edge.EdgeShard
    monkeypatch.setattr(qdrant_edge, "EdgeShard", LoadRecorder)
    with (
        CaseStore(note_schema("notes"), tmp_path) as notes,
        CaseStore(note_schema("letters"), tmp_path),
    ):
        assert loaded == []
        assert len(notes.search("q")) == len(notes.all()) == 1
        assert loaded == ["notes"]


def test_case_with_any_json_is_returned_exactly_after_reopening(tmp_path: Path) -> None:
    nested: Any = "bottom"
    for _ in range(200):
        nested = {"deeper": [nested]}
    case = Case(
        {"question": "q", "z": 0.1 + 0.2, "a": 10**30, "m": -(2**64)},
        {"deep": nested, "tiny": 5e-324, "json": "tags", "": [[], {}]},
        metadata={"tenant": "é", "large": 2**70, "deep": nested, "many": [1, True, "1", None]},
    )
    with CaseStore(note_schema(), tmp_path) as store:
        store.add([case])
    with CaseStore(note_schema(), tmp_path) as store:
        (copy,) = store.all({"large": 2**70})
        assert json.dumps(copy.to_json()) == json.dumps({**case.to_json(), "created": copy.created})
        assert store.count({"many": True, "tenant": "é"}) == 1
        assert store.count({"large": 2**70 + 1}) == 0


@pytest.mark.parametrize("k", [10**6, 10**12, 2**62, 2**70])
def test_search_with_k_above_the_number_of_cases_returns_all(edge: Engine, k: int) -> None:
    edge.create("c", 2, LAYOUT)
    edge.upsert("c", [number_id(1)], vectors([1, 2]), [{}])
    assert len(edge.search("c", vectors([1, 0])[0], k, None, exact=True)) == 1


def test_repeated_search_returns_current_points_after_upsert_and_delete(edge: Engine) -> None:
    edge.create("c", 2, LAYOUT)
    edge.upsert("c", [number_id(1), number_id(2)], vectors([1, 0], [0, 1]), [{"n": 1}, {"n": 2}])

    def search_points() -> list[tuple[Any, ...]]:
        points = edge.search("c", vectors([2, 1])[0], 9, None, exact=True)
        return [(point.payload["n"], point.score, *point.vector.tolist()) for point in points]

    assert search_points() == search_points() == [(1, 2, 1, 0), (2, 1, 0, 1)]
    edge.search("c", vectors([2, 1])[0], 9, None, exact=True)[0].payload.clear()
    edge.upsert("c", [number_id(2)], vectors([2, 0]), [{"n": 3}])
    assert search_points() == [(3, 4, 2, 0), (1, 2, 1, 0)]
    edge.delete("c", [number_id(2)])
    assert search_points() == [(1, 2, 1, 0)]


def test_damage_after_a_search_raises_store_damaged_error_in_the_next_search(
    edge: Engine, tmp_path: Path
) -> None:
    edge.create("c", 2, LAYOUT)
    edge.upsert("c", [number_id(1)], vectors([0.25, 0.75]), [{"n": 1}])
    assert len(edge.search("c", vectors([1, 1])[0], 9, None, exact=True)) == 1
    vector_bytes = vectors([0.25, 0.75]).tobytes()
    (file,) = (path for path in tmp_path.rglob("*.mmap") if vector_bytes in path.read_bytes())
    with file.open("r+b") as stream:
        stream.seek(file.read_bytes().index(vector_bytes))
        stream.write(vectors([0.25, 0.5]).tobytes())
    with pytest.raises(StoreDamagedError, match="cannot be read"):
        edge.search("c", vectors([1, 1])[0], 9, None, exact=True)


def test_threads_that_use_a_dropped_collection_get_no_collection_error(edge: Engine) -> None:
    """Threads use a collection that is created and dropped; it is complete or missing."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def use_collection(number: int) -> None:
        while not stop.is_set():
            try:
                edge.upsert("c", [number_id(number)], vectors([1, 2]), [{"n": number}])
                edge.search("c", vectors([1, 2])[0], 10, None, exact=True)
                edge.scroll("c", None)
            except NoCollectionError:
                pass
            except BaseException as error:  # noqa: BLE001
                errors.append(error)
                return

    threads = [threading.Thread(target=use_collection, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(15):
        edge.create("c", 2, LAYOUT)
        stop.wait(0.03)
        edge.drop("c")
    stop.set()
    for thread in threads:
        thread.join(20)
    assert errors == []
    assert edge.layout("c") is None
