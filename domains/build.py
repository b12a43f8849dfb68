"""Build of a domain's stores: once, and again when the domain's data or schemas change."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path

from casewright.domains.waiting import in_turn
from casewright.errors import StoreDamagedError, StoreError
from casewright.stores import Case, CaseSchema, CaseStore
from casewright.stores.engines import connections
from casewright.stores.engines.engine import Engine
from casewright.stores.progress import note, show_progress

MakeCases = Callable[[], Sequence[Case]]


def digest(files: Iterable[Traversable], schemas: Iterable[CaseSchema]) -> str:
    """Return a hash of the files and of the schemas' layouts."""
    result = hashlib.sha256()
    for file in files:
        result.update(file.read_bytes())
    for schema in schemas:
        result.update(json.dumps(schema.layout(), sort_keys=True).encode())
    return result.hexdigest()


def open_built(
    folder: Path,
    name: str,
    expected: str,
    schemas: Mapping[str, tuple[CaseSchema, MakeCases]],
    *,
    anew: bool = False,
) -> dict[str, CaseStore]:
    """Open a domain's stores in one folder; build them first if they are missing or stale.

    An interrupted build leaves no mark file, and is repeated. Processes that use the same folder
    wait for each other.

    Args:
        folder: The domain's own folder.
        expected: Digest of the content that the stores must have.
        schemas: Store name to its schema and the function that returns its cases.
        anew: Rebuild unconditionally, even over damaged files.

    Raises:
        StoreLockedError: Another process holds the folder for longer than a minute.
        StoreDamagedError: The folder's files cannot be read.
        StoreError: The folder cannot be written to.
    """
    cases, mark = folder / "cases", folder / "built.json"
    try:
        cases.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The stores' folder {folder} cannot be made: {error.strerror}. Set CASEWRIGHT_HOME to "
            "a folder that you may write to."
        ) from error
    key, engine = _acquire(cases, name, anew=anew)
    try:
        built = _mark(mark) == expected and not anew
        contents: dict[str, Sequence[Case]] = {}
        if not built:
            note(f"Building the {name} stores, once …")
            # Making the cases may fail, so it precedes any removal.
            contents = {part: make() for part, (_, make) in schemas.items()}
            mark.unlink(missing_ok=True)
            for schema, _ in schemas.values():
                engine.drop(schema.name)
        stores = {part: _opened(schema, cases, name) for part, (schema, _) in schemas.items()}
        if not built:
            total = sum(map(len, contents.values()))
            with show_progress(f"Building the {name} stores", total, "cases") as advance:
                for part, content in contents.items():
                    stores[part].add(content, progress=advance)
            mark.write_text(json.dumps({"digest": expected}), encoding="utf-8")
        return stores
    finally:
        # The open stores hold the lock of the folder from here on.
        connections.release(key, engine)


def _opened(schema: CaseSchema, cases: Path, name: str) -> CaseStore:
    """Open a store and read from it, so that damage shows at once."""
    try:
        store = CaseStore(schema, cases)
        try:
            store.count()
        except BaseException:
            store.close()
            raise
    except StoreDamagedError as error:
        raise _with_advice(error, name) from error
    return store


def _with_advice(error: StoreDamagedError, name: str) -> StoreDamagedError:
    return StoreDamagedError(
        f"{error} For this domain's own stores: casewright domains --build {name}"
    )


def _acquire(cases: Path, name: str, *, anew: bool) -> tuple[str, Engine]:
    def acquire(seconds: float) -> tuple[str, Engine]:
        return connections.acquire(cases, lock_seconds=seconds)

    try:
        return in_turn(acquire, f"the {name} stores")
    except StoreDamagedError as error:
        if not anew:
            raise _with_advice(error, name) from error
        shutil.rmtree(cases)
        return in_turn(acquire, f"the {name} stores")


def _mark(file: Path) -> str:
    try:
        return str(json.loads(file.read_text(encoding="utf-8"))["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
