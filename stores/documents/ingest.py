"""Ingestion: the documents below a folder become cases, and a second run does what changed only.

Each case knows the digest of its file and how many cases the file has. So a file is done when the
store has that many of its cases, all of this digest: nothing else is kept of a run, and one that
was killed is completed by the next.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from casewright.errors import DependencyError, FacetError, InputError, told
from casewright.stores.case import Case
from casewright.stores.changes import Change
from casewright.stores.documents.cases import digest, document_cases
from casewright.stores.documents.file_walk import (
    Found,
    Walk,
    check_patterns,
    chosen,
    is_unicode,
    matches,
    walk,
)
from casewright.stores.documents.kinds import DATA_BYTES, MADE, Kind, KindName, kind_of
from casewright.stores.documents.reader import is_text
from casewright.stores.documents.worker import SECONDS, Worker, worker
from casewright.stores.progress import progress_bar
from casewright.stores.store import BATCH, CaseStore

#: Larger files are not read.
MAX_BYTES = 50_000_000
#: What reads and splits, by the names under which it is imported.
NEEDED = (
    "llama_index.core",
    "llama_index.readers.file",
    "pypdf",
    "bs4",
    "tree_sitter_language_pack",
)
#: Changes and removals that are written together.
WRITES = 2000


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What a run did, in cases, each a chunk of a file.

    Attributes:
        root: What the folder is called in the cases' metadata.
        added: Encoded and written.
        updated: Kept, with a new place in a file that changed; not encoded again.
        unchanged: Of files that did not change; not read again.
        removed: Of files or passages that are no longer there; of no file that the patterns of the
            run leave out.
        files: How many of the files that were looked at the store now has cases of.
        failed: Files and folders that could not be read, each with the reason. What the store had
            of them, it still has.
        skipped: Files that are no documents or have no text, each with the reason.
    """

    root: str
    added: int
    updated: int
    unchanged: int
    removed: int
    files: int
    failed: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, str], ...]


def ingest(
    store: CaseStore,
    path: str | Path,
    *,
    root: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    kinds: Collection[KindName] = (),
    max_bytes: int = MAX_BYTES,
    seconds: float = SECONDS,
    dry_run: bool = False,
    progress: bool | None = None,
) -> IngestReport:
    """Make cases of the documents below a folder, or of one file; see ``document_schema``.

    What the store has of the same root, and is not there any more, is removed; other roots are left
    alone. With patterns or kinds, only files that they choose are looked at, and what the store has
    of the others stays as it is, there or gone. One file by itself has its folder as root, and
    nothing else of that is looked at. ``remove_root`` forgets a root.

    Args:
        store: Where the cases go.
        path: A folder or a file.
        root: What to call the folder; its absolute path where that is ``None``. Under one name, a
            folder that was moved, or is on another machine, is the same.
        include: Patterns of files in the folder, of which each must match one; empty for all.
        exclude: Patterns of files and folders in it to leave out; see ``file_walk.matches``.
        kinds: Kinds of files, of which each must be one, by its name's ending; empty for all.
        max_bytes: Larger files are not read.
        seconds: Of computing that reading a file may take, and ten more for each megabyte of it;
            one that takes longer is not read.
        dry_run: Read and compare, and write nothing.
        progress: Show a bar on stderr; ``None`` shows it on a terminal.

    Raises:
        InputError: ``path`` is not there; or a pattern is empty, or one to include matches no file,
            neither there nor in the store. Nothing is written then.
        DependencyError: The packages that read documents are not installed.
        StoreError: The store cannot be read or written to.
    """
    _check_installed()
    there = _resolved(path)
    found = _found(there, include, exclude)
    found.files = [file for file in found.files if _is_of(file.source, kinds)]
    found.skipped = [(name, why) for name, why in found.skipped if _is_of(name, kinds)]
    folder = there if there.is_dir() else there.parent
    name, sources = root or folder.as_posix(), None if there.is_dir() else {there.name}
    known = {
        source: cases
        for source, cases in _known(store, name, sources).items()
        if chosen(source, include, exclude) and _is_of(source, kinds)
    }
    _check_matched(include, found, known)
    show = sys.stderr.isatty() if progress is None else progress
    bar = progress_bar("Ingesting files", len(found.files), show=show)
    with worker() as reading, bar as advance:
        run = _Run(store, name, dry_run, found, reading, seconds)
        for file in found.files:
            run.file(file, known.pop(file.source, {}), max_bytes)
            advance(1)
        run.write()
    kept = [source for source, _ in run.failed]
    for source, cases in known.items():
        if not any(_below(source, failed) for failed in kept):
            run.remove(cases)
    run.write()
    return run.report()


#: Of a case that the store has: the digest of its file then, and how many cases that had.
_Mark = tuple[str, int]


@dataclass
class _Run:
    """What is being done, and what is to be written when enough of it has come together."""

    store: CaseStore
    root: str
    dry_run: bool
    found: Walk
    worker: Worker
    seconds: float
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    files: int = 0
    new: list[Case] = field(default_factory=list)
    moved: list[Case] = field(default_factory=list)
    gone: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.failed = list(self.found.failed)
        self.skipped = list(self.found.skipped)

    def file(self, file: Found, known: Mapping[str, _Mark], max_bytes: int) -> None:
        """Compare a file with what the store has of it, and note what is to be written."""
        try:
            cases = self._read(file, known, max_bytes)
        except OSError as error:
            self.failed.append((file.source, f"it cannot be read: {error.strerror or error}"))
            return
        except InputError as error:
            self.failed.append((file.source, str(error)))
            return
        # What others wrote to read documents may raise anything.
        except Exception as error:  # noqa: BLE001
            self.failed.append((file.source, f"it cannot be read: {told(error)}"))
            return
        if cases is None:
            return
        self.files += bool(cases)
        ids = {case.id for case in cases}
        self.new += [case for case in cases if case.id not in known]
        self.moved += [case for case in cases if case.id in known]
        self.gone |= {id_: file.source for id_ in known if id_ not in ids}
        if len(self.new) >= BATCH or len(self.moved) + len(self.gone) >= WRITES:
            self.write()

    def _read(self, file: Found, known: Mapping[str, _Mark], max_bytes: int) -> list[Case] | None:
        """Return the cases of a file that changed; ``None`` for one that is done or failed."""
        kind = kind_of(file.source)
        if file.size > max_bytes:
            raise InputError(f"it has {file.size:,} bytes; at most {max_bytes:,} are read")
        if reason := _no_document(file, kind):
            self.skipped.append((file.source, reason))
            return []
        data = file.path.read_bytes()
        if kind is None and not is_text(data):
            self.skipped.append((file.source, "it is no text, and of no type that is known"))
            return []
        now = digest(data)
        if known and all(mark == (now, len(known)) for mark in known.values()):
            self.unchanged += len(known)
            self.files += 1
            return None
        how = kind or Kind("text")
        chunks = self.worker.chunks(data, file.source, how, self.seconds)
        if not chunks:
            self.skipped.append((file.source, "it has no text"))
        return document_cases(chunks, self.store, self.root, file.source, now)

    def remove(self, cases: Mapping[str, _Mark]) -> None:
        """Note that cases are to be removed."""
        self.gone |= dict.fromkeys(cases, "")

    def write(self) -> None:
        """Write what was noted: first what is new, last what is gone, so that nothing is missing.

        Killed in between, it leaves files with cases of two digests, which are not done.
        """
        broken: dict[str, str] = {}

        def failed(case: Case, error: FacetError) -> None:
            broken[case.metadata["source"]] = f"a passage cannot be encoded: {error}"

        added = len(self.new)
        if not self.dry_run:
            added = len(self.store.add(self.new, progress=False, on_error=failed))
            self.store.update({case.id: Change(metadata=case.metadata) for case in self.moved})
            self.gone = {id_: source for id_, source in self.gone.items() if source not in broken}
            self.store.delete(list(self.gone))
        self.added += added
        self.updated += len(self.moved)
        self.removed += len(self.gone)
        self.files -= len(broken)
        self.failed += broken.items()
        self.new, self.moved, self.gone = [], [], {}

    def report(self) -> IngestReport:
        """Return what was done."""
        return IngestReport(
            self.root,
            self.added,
            self.updated,
            self.unchanged,
            self.removed,
            self.files,
            tuple(sorted(self.failed)),
            tuple(sorted(self.skipped)),
        )


def _check_installed() -> None:
    for name in NEEDED:
        try:
            there = importlib.util.find_spec(name) is not None
        except ImportError:
            there = False
        if not there:
            raise DependencyError(
                f"Documents are read by {name.split('.')[0]}, which is not installed. "
                "Run: pip install 'casewright[documents]'"
            )


def _resolved(path: str | Path) -> Path:
    try:
        there = Path(path).expanduser().resolve(strict=True)
        if there.is_dir() or there.is_file():
            if is_unicode(str(there)):
                return there
            reason = "its name is no Unicode"
        else:
            reason = "it is neither a folder nor a regular file"
    except FileNotFoundError:
        reason = "it is not there"
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise InputError(
        f"{str(path)!a} cannot be ingested: {reason}. Give a folder of documents, or one document."
    )


def _found(there: Path, include: Sequence[str], exclude: Sequence[str]) -> Walk:
    if there.is_dir():
        return walk(there, include, exclude)
    check_patterns((*include, *exclude))
    if not chosen(there.name, include, exclude):
        return Walk()
    return Walk([Found(there, there.name, there.stat().st_size)])


def _check_matched(include: Sequence[str], found: Walk, known: Collection[str]) -> None:
    # What could not be looked into may hold what a pattern is for; the report says so.
    if found.failed:
        return
    seen = [*known, *(file.source for file in found.files), *(name for name, _ in found.skipped)]
    for pattern in include:
        if not any(matches(source, [pattern]) for source in seen):
            raise InputError(
                f"The pattern {pattern!r} matches none of the files, so that nothing was done. "
                "Patterns are of paths from the folder on, such as '*.md' or docs/api; hidden "
                "files and what is excluded are not looked at."
            )


def _known(store: CaseStore, root: str, sources: set[str] | None) -> dict[str, dict[str, _Mark]]:
    """Return what the store has of a root: source to id to mark."""
    where = {"root": root} if sources is None else {"root": root, "source": sorted(sources)}
    known: dict[str, dict[str, _Mark]] = {}
    for case in store.all(where):
        # One text a file, not one a case.
        mark = (sys.intern(case.metadata.get("digest", "")), case.metadata.get("chunks", 0))
        known.setdefault(case.metadata.get("source", ""), {})[case.id] = mark
    return known


def _is_of(source: str, kinds: Collection[KindName]) -> bool:
    kind = kind_of(source)
    return not kinds or (kind is not None and kind.name in kinds)


def _no_document(file: Found, kind: Kind | None) -> str:
    """Return why a file is none to be read, by its name and size; empty where it may be."""
    if file.source.lower().endswith(MADE):
        return "it was made by a program, for programs"
    if file.size > DATA_BYTES and (kind is None or kind.name == "data"):
        what = "of no type that is known" if kind is None else "data"
        return f"it is {what}, and has more than {DATA_BYTES:,} bytes"
    return ""


def _below(source: str, folder: str) -> bool:
    return folder in (".", source) or source.startswith(f"{folder}/")
