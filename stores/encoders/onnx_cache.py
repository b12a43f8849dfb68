"""ONNX graphs in the cache folder: made once, compared with their checksums at every use."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from casewright.errors import StoreDamagedError
from casewright.stores.encoders.onnx_export import EXPORTING
from casewright.stores.engines.file_sums import changed, sums_of_file
from casewright.stores.progress import note, told_progress
from casewright.stores.room import check_room
from casewright.stores.whole_file import write_whole

#: Bytes of the graphs and of what their making writes beside them, and more.
ROOM = 250_000_000
#: How the name of the file of their checksums ends.
RECORD = ".sums.json"


def made_once(folder: Path, names: Sequence[str], what: str, make: Callable[[], None]) -> None:
    """Have files made where they are not there, or not as they were written.

    Threads and processes that need the same wait for each other.

    Args:
        folder: Where they are, with a file of their checksums.
        names: Of the files.
        what: What is prepared, as people are told.
        make: Writes them, each whole or not at all.

    Raises:
        DiskFullError: There is no room for them.
        StoreDamagedError: They are not as they were written right after that.
    """
    with EXPORTING:
        if not damaged_file(folder, names):
            return
        check_room(folder, ROOM)
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            # Another process may have made them meanwhile.
            if damage := damaged_file(folder, names):
                _make(folder, names, what, make, damage)


def _make(
    folder: Path, names: Sequence[str], what: str, make: Callable[[], None], damage: str
) -> None:
    # Without a record they are not there, or an older version made them.
    known = _record(folder, names).exists()
    again = f" again, since {damage} is damaged or missing" if known else ", once"
    note(f"Preparing {what}{again}: exporting it to ONNX …")
    with told_progress(f"Exporting {what}"):
        make()
    write_whole(
        _record(folder, names),
        json.dumps({name: sums_of_file(folder / name) for name in names}),
    )
    if damage := damaged_file(folder, names):
        raise StoreDamagedError(
            f"{folder / damage} is not as it was just written. Check the disk, or have "
            "CASEWRIGHT_CACHE_FOLDER name a folder on another one."
        )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    # It looks for a folder that it can write to when imported.
    import portalocker

    with (folder / ".lock").open("a") as file:
        portalocker.lock(file, portalocker.LOCK_EX)
        yield


def damaged_file(folder: Path, names: Sequence[str]) -> str:
    """Return one of some files that is missing or is not as it was written; empty without."""
    try:
        sums = json.loads(_record(folder, names).read_text(encoding="utf-8"))
        return changed(folder, {name: sums[name] for name in names}, None)
    except (OSError, ValueError, TypeError, LookupError):
        return names[0]


def cached_graphs(cache: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield the graphs that were made below a cache folder: where they are, and their names."""
    for record in sorted(cache.rglob(f"*{RECORD}")):
        try:
            names = list(json.loads(record.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            names = []
        yield record.parent, names or [record.name.removesuffix(RECORD)]


def _record(folder: Path, names: Sequence[str]) -> Path:
    return folder / f"{names[0]}{RECORD}"
