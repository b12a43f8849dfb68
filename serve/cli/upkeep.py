"""The commands `casewright check` and `repair`, for damaged stores and caches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Typer, echo

from casewright.errors import StoreLockedError
from casewright.serve.cli.options import AsJson
from casewright.serve.cli.output import fail, print_json, print_table

#: Maximum seconds to wait for another process to close a store.
LOCK_SECONDS = 2.0
StoreFolder = Annotated[
    Path | None, Argument(help="A store's folder; by default all stores in the data folder.")
]

app = Typer(add_completion=False)


@app.command()
def check(store_folder: StoreFolder = None, as_json: AsJson = False) -> None:
    """Read every store and cache completely, and report damage.

    The exit code is 2 if a store is damaged. Damaged parts of a cache are rebuilt when needed.
    """
    from casewright.stores.engines.upkeep import check_folder

    results: list[dict[str, Any]] = []
    for folder in _store_folders(store_folder):
        try:
            found = [asdict(result) for result in check_folder(folder, lock_seconds=LOCK_SECONDS)]
        except StoreLockedError:
            found = [{"collection": "", "cases": None, "damage": "", "held": True}]
        results += [{"store": str(folder), "held": False, **result} for result in found]
    caches = [] if store_folder is not None else list(_check_caches(remove=False))
    damaged_count = sum(bool(result["damage"]) for result in results)
    if as_json:
        print_json({"stores": results, "caches": caches, "damaged": damaged_count})
    else:
        rows = [[r["store"], r["collection"], r["cases"], _state_text(r)] for r in results]
        print_table(["store", "collection", "cases", "state"], rows)
        if caches:
            print_table(["cache", "state"], [[cache["cache"], cache["state"]] for cache in caches])
    if damaged_count:
        fail(
            f"{damaged_count} of {len(results)} collections are damaged. Restore them from a copy, "
            "or run casewright repair, which keeps the sound cases."
        )


@app.command()
def repair(store_folder: StoreFolder = None, as_json: AsJson = False) -> None:
    """Rebuild every damaged store from its sound cases, and report the lost cases.

    First stop processes that use the stores. The damaged files are kept beside the store. If no
    folder is given, unusable cache entries are also deleted.
    """
    from casewright.stores.engines.upkeep import repair_folder

    repairs = [
        {"store": str(folder), **asdict(result), "next": _restore_command(folder, result.lost)}
        for folder in _store_folders(store_folder)
        for result in repair_folder(folder, lock_seconds=LOCK_SECONDS)
    ]
    caches = [] if store_folder is not None else list(_check_caches(remove=True))
    if as_json:
        print_json({"stores": repairs, "caches": caches})
        return
    if not repairs:
        echo("No store is damaged.")
    for result in repairs:
        _print_repair(result)
    for cache in caches:
        echo(f"{cache['cache']}: {cache['state']}")


def _store_folders(store_folder: Path | None) -> list[Path]:
    from casewright.stores.engines.connections import ENGINE_FILE
    from casewright.stores.engines.edge_shard import SHARDS
    from casewright.stores.paths import data_folder

    if store_folder is not None:
        return [store_folder]
    # Only a store's folder contains these; "collection" belongs to qdrant-client's local mode.
    names = (ENGINE_FILE, SHARDS, "collection")
    return sorted({path.parent for name in names for path in data_folder().rglob(name)})


def _check_caches(*, remove: bool) -> Iterator[dict[str, str]]:
    """Yield each cache's path and state; ``remove`` deletes the unusable entries."""
    from casewright.stores.encoders.cache import CACHE_FILE, check_vectors
    from casewright.stores.paths import cache_folder

    file = cache_folder() / "embeddings" / CACHE_FILE
    if file.is_file():
        counts = check_vectors(file, remove=remove)
        unusable = "removed" if remove else "unusable, and computed again when needed"
        if counts is None:
            state = f"the whole file is damaged; {unusable}"
        else:
            total, damaged = counts
            state = f"{total} vectors" + (f", {damaged} {unusable}" if damaged else "")
        yield {"cache": str(file), "state": state}


def _state_text(result: dict[str, Any]) -> str:
    if result["held"]:
        return "not checked: another process holds it"
    return str(result["damage"] or "sound")


def _restore_command(folder: Path, lost_count: int | None) -> str:
    """Return the command that restores lost cases; empty if none are lost or no command can."""
    from casewright.domains import domain_names
    from casewright.stores.documents.cases import COLLECTION
    from casewright.stores.paths import data_folder

    if lost_count == 0:
        return ""
    for name in domain_names():
        # A domain's folder may contain several folders of stores.
        if folder.name == "cases" and data_folder() / name in folder.parents:
            return f"casewright domains --build {name}"
    if folder.parent == data_folder() and folder.name.startswith(COLLECTION):
        return "casewright ingest PATH"
    return ""


def _print_repair(repair: dict[str, Any]) -> None:
    lost_text = "an unknown number is" if repair["lost"] is None else f"{repair['lost']} are"
    heading = f"{repair['store']}, {repair['collection']}"
    echo(f"{heading}: {repair['cases']} cases are kept, {lost_text} lost.")
    if (reappeared_count := repair["back"]) != 0:
        how_many = "Some" if reappeared_count is None else f"At least {reappeared_count}"
        echo(f"  {how_many} cases that you had deleted may have reappeared. Delete them again.")
    if repair["texts"]:
        echo(f"  The texts of lost cases, without vectors: {repair['texts']}")
    if repair["next"]:
        echo(f"  To restore the lost cases: {repair['next']}")
    echo(f"  The damaged files, which you can remove afterwards: {repair['beside']}")
