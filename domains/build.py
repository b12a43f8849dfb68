"""Opens a domain's stores; builds them if they are missing, or if data files or schemas changed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path

from casewright.domains.store_opening import wait_for_folder
from casewright.errors import StoreDamagedError, StoreError
from casewright.stores import Case, CaseSchema, CaseStore
from casewright.stores.engines import connections
from casewright.stores.engines.engine import Engine
from casewright.stores.progress import note, show_progress

MakeCases = Callable[[], Sequence[Case]]


def digest(files: Iterable[Traversable], schemas: Iterable[CaseSchema]) -> str:
    """Return a hash of the files and of the schemas' layouts."""
    sha256 = hashlib.sha256()
    for file in files:
        sha256.update(file.read_bytes())
    for schema in schemas:
        sha256.update(json.dumps(schema.layout(), sort_keys=True).encode())
    return sha256.hexdigest()


def open_built(
    folder: Path,
    domain: str,
    expected_digest: str,
    schemas: Mapping[str, tuple[CaseSchema, MakeCases]],
    *,
    rebuild: bool = False,
) -> dict[str, CaseStore]:
    """Open a domain's stores in the domain's folder; build them first if they are missing or stale.

    A build writes the mark file ``built.json`` last, so an interrupted build is repeated. Processes
    that use the same folder wait for each other.

    Args:
        expected_digest: The current digest. The stores are rebuilt if the mark file has another.
        schemas: Maps a store's name to its schema and the function that returns its cases.
        rebuild: True to build the stores again, even if the files are current or damaged.

    Raises:
        StoreLockedError: Another process holds the folder for longer than a minute.
        StoreDamagedError: The folder's files cannot be read.
        StoreError: The folder cannot be written to.
    """
    cases_folder, mark_file = folder / "cases", folder / "built.json"
    try:
        cases_folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The stores' folder {folder} cannot be made: {error.strerror}. Set CASEWRIGHT_HOME to "
            "a folder that you may write to."
        ) from error
    connection_key, engine = _acquire(cases_folder, domain, rebuild=rebuild)
    try:
        is_current = _built_digest(mark_file) == expected_digest and not rebuild
        cases_by_store: dict[str, Sequence[Case]] = {}
        if not is_current:
            note(f"Building the {domain} stores, once …")
            # All cases are made before a store is removed, since making them may fail.
            cases_by_store = {name: make() for name, (_, make) in schemas.items()}
            mark_file.unlink(missing_ok=True)
            for schema, _ in schemas.values():
                engine.drop(schema.name)
        stores = {name: _open(s, cases_folder, domain) for name, (s, _) in schemas.items()}
        if not is_current:
            total = sum(map(len, cases_by_store.values()))
            with show_progress(f"Building the {domain} stores", total, "cases") as advance:
                for name, cases in cases_by_store.items():
                    stores[name].add(cases, progress=advance)
            mark_file.write_text(json.dumps({"digest": expected_digest}), encoding="utf-8")
        return stores
    finally:
        # The open stores keep the folder locked.
        connections.release(connection_key, engine)


def _open(schema: CaseSchema, folder: Path, domain: str) -> CaseStore:
    """Open a store, and read from it, so that damaged files are reported at once."""
    try:
        store = CaseStore(schema, folder)
        try:
            store.count()
        except BaseException:
            store.close()
            raise
    except StoreDamagedError as error:
        raise _with_rebuild_advice(error, domain) from error
    return store


def _with_rebuild_advice(error: StoreDamagedError, domain: str) -> StoreDamagedError:
    return StoreDamagedError(
        f"{error} If these are the domain's own stores, rebuild them: casewright domains --build "
        f"{domain}"
    )


def _acquire(folder: Path, domain: str, *, rebuild: bool) -> tuple[str, Engine]:
    def acquire(seconds: float) -> tuple[str, Engine]:
        return connections.acquire(folder, lock_seconds=seconds)

    try:
        return wait_for_folder(acquire, f"the {domain} stores")
    except StoreDamagedError as error:
        if not rebuild:
            raise _with_rebuild_advice(error, domain) from error
        shutil.rmtree(folder)  # the files are damaged, and will be built again
        return wait_for_folder(acquire, f"the {domain} stores")


def _built_digest(mark_file: Path) -> str:
    """Return the digest in a mark file; empty if the file is missing or damaged."""
    try:
        return str(json.loads(mark_file.read_text(encoding="utf-8"))["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
