"""Ingestion: files become cases, and a second run processes only changed files.

Each case is stored with the digest of the case's file, and with the number of cases of this file. A
file is up to date if the store has that many cases of the file, all with the file's present digest.
Other files are processed, for example after a run that was killed.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from casewright.errors import DependencyError, FacetError, InputError, one_line
from casewright.stores.case import Case
from casewright.stores.documents import file_walk
from casewright.stores.documents.cases import digest, document_cases
from casewright.stores.documents.file_walk import Kind, KindName, SourceFile, WalkResult, kind_of
from casewright.stores.documents.reader import refusal_reason
from casewright.stores.documents.worker import SECONDS, Worker, worker
from casewright.stores.progress import progress_bar
from casewright.stores.revise import Change
from casewright.stores.store import BATCH_CASES, CaseStore

#: Default maximum size of a file, in bytes.
MAX_BYTES = 50_000_000
#: Modules that reading and splitting need.
MODULES = ("llama_index.core", "pypdf", "bs4", "tree_sitter", "docutils", "mammoth", "nbformat")
#: When this many changes of metadata and removals are collected, they are written.
MAX_UNWRITTEN = 2000
#: From a stored case's metadata: the digest of its file, and the number of the file's cases.
_Stamp = tuple[str, int]


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The result of a run. The numbers count cases (chunks of files); only ``files`` counts files.

    Attributes:
        root: The folder's name in the cases' metadata.
        added: Cases that were encoded and written.
        updated: Cases with unchanged title and text in changed files; only metadata was written.
        unchanged: Cases of unchanged files, which were not read again.
        removed: Cases of chunks or files that no longer exist or are skipped now; the cases of
            files that patterns or kinds leave out are kept.
        files: Number of the chosen files that have cases in the store.
        failed: Files and folders that could not be read, with reasons. Their stored cases are kept.
        skipped: Files that are no documents or have no text, with reasons. They have no cases.
        notes: Files whose encoding was guessed, each with the guess.
    """

    root: str
    added: int
    updated: int
    unchanged: int
    removed: int
    files: int
    failed: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, str], ...]
    notes: tuple[tuple[str, str], ...] = ()


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
    """Store the documents below a folder, or one file, as cases; see ``document_schema``.

    Stored cases of the same root whose file no longer exists are removed; other roots do not
    change. With patterns or kinds, only the files that they choose are processed, and all cases of
    other files stay. If ``path`` is a file, only that file is processed; its root is its folder.

    Args:
        root: A name for the folder, which may then be moved; ``None`` for its absolute path.
        include: A file in the folder must match one of these patterns; empty for all files.
        exclude: Patterns of files and folders to leave out; see ``file_walk.matches``.
        kinds: Kinds of files to process, by file ending; empty for all.
        max_bytes: Maximum size of a file; larger files are ``failed``.
        seconds: CPU seconds allowed per file, plus ten per megabyte; slower files are ``failed``.
        dry_run: Read and compare, but write nothing.
        progress: True shows a bar of bytes; ``None`` shows a bar on a terminal, elsewhere lines.

    Raises:
        InputError: ``path`` does not exist, a pattern is empty, or a pattern of ``include`` matches
            no file in the folder or the store. Nothing is written then.
        DependencyError: The packages that read documents are not installed.
        StoreError: The store cannot be read or written to.
    """
    _check_installed()
    target = _resolve_path(path)
    found = _walk(target, include, exclude)
    found.files = [file for file in found.files if _has_kind(file.relative_path, kinds)]
    found.skipped = [entry for entry in found.skipped if _has_kind(entry[0], kinds)]
    folder, sources = (target, None) if target.is_dir() else (target.parent, {target.name})
    root = root or folder.as_posix()
    stored_stamps = {
        source: stamps
        for source, stamps in _stamps(store, root, sources).items()
        if file_walk.is_chosen(source, include, exclude) and _has_kind(source, kinds)
    }
    _check_matched(include, found, stored_stamps)
    total_bytes = sum(file.size for file in found.files)
    suffix = [""]
    bar = progress_bar(
        "Ingesting", total_bytes, unit="bytes", show=progress, suffix=lambda: suffix[0]
    )
    with worker() as reader, bar as advance:
        run = _Run(store, root, dry_run, found, reader)
        unwritten_bytes = 0
        for file in found.files:
            run.compare(file, stored_stamps.pop(file.relative_path, {}), max_bytes, seconds)
            suffix[0] = f", {run.counts['added'] + run.counts['unchanged']} cases"
            # The bar counts a file when its cases are written: encoding takes nearly all the time.
            unwritten_bytes += file.size
            if not (run.new or run.updated or run.removed):
                advance(unwritten_bytes)
                unwritten_bytes = 0
        run.write()
        advance(unwritten_bytes)
    # Stored cases of a file stay if the file, or a folder around the file, cannot be read now.
    unreadable = {path for path, _ in run.failed}
    for source, stamps in stored_stamps.items():
        folders = map(str, (".", *PurePosixPath(source).parents))
        if unreadable.isdisjoint((source, *folders)):
            run.removed |= dict.fromkeys(stamps, "")
    run.write()
    lists = run.failed, run.skipped, run.notes
    failed, skipped, notes = (tuple(sorted(entries)) for entries in lists)
    return IngestReport(root, **run.counts, failed=failed, skipped=skipped, notes=notes)


class _Run:
    """A run of ``ingest``: its counts, and collected changes that are not written yet."""

    def __init__(
        self, store: CaseStore, root: str, dry_run: bool, found: WalkResult, reader: Worker
    ) -> None:
        self.store, self.root, self.dry_run, self.reader = store, root, dry_run, reader
        self.failed, self.skipped = list(found.failed), list(found.skipped)
        self.notes: list[tuple[str, str]] = []
        self.counts = dict.fromkeys(("added", "updated", "unchanged", "removed", "files"), 0)
        self.new: list[Case] = []
        self.updated: list[Case] = []
        # The file of each removed case, by case id; "" if the file no longer exists.
        self.removed: dict[str, str] = {}

    def compare(
        self, file: SourceFile, stamps: Mapping[str, _Stamp], max_bytes: int, seconds: float
    ) -> None:
        """Compare a file with its stored cases, and collect the changes."""
        try:
            cases = self._read(file, stamps, max_bytes, seconds)
        except InputError as error:
            self.failed.append((file.relative_path, str(error)))
            return
        except Exception as error:  # noqa: BLE001 - a library may raise anything
            reason = error.strerror or str(error) if isinstance(error, OSError) else one_line(error)
            self.failed.append((file.relative_path, f"it cannot be read: {reason}"))
            return
        if cases is None:
            return
        self.counts["files"] += bool(cases)
        ids = {case.id for case in cases}
        self.new += [case for case in cases if case.id not in stamps]
        self.updated += [case for case in cases if case.id in stamps]
        self.removed |= {id_: file.relative_path for id_ in stamps if id_ not in ids}
        if len(self.new) >= BATCH_CASES or len(self.updated) + len(self.removed) >= MAX_UNWRITTEN:
            self.write()

    def _read(
        self, file: SourceFile, stamps: Mapping[str, _Stamp], max_bytes: int, seconds: float
    ) -> list[Case] | None:
        """Return the cases of a file: [] if it is skipped, ``None`` if it is up to date."""
        kind = kind_of(file.relative_path)
        if file.size > max_bytes:
            raise InputError(f"it has {file.size:,} bytes; at most {max_bytes:,} are read")
        reason = file_walk.skip_reason(file, kind)
        data = b"" if reason else file.path.read_bytes()
        if reason := reason or refusal_reason(data, kind):
            self.skipped.append((file.relative_path, reason))
            return []
        file_digest = digest(data)
        if stamps and all(stamp == (file_digest, len(stamps)) for stamp in stamps.values()):
            self.counts["unchanged"] += len(stamps)
            self.counts["files"] += 1
            return None
        chunks, note = self.reader.chunks(data, kind or Kind("text"), seconds)
        if note:
            self.notes.append((file.relative_path, note))
        if not chunks:
            self.skipped.append((file.relative_path, "it has no text"))
        return document_cases(chunks, self.store, self.root, file.relative_path, file_digest)

    def write(self) -> None:
        """Write the collected changes, removals last, so that no passage is missing at any time.

        If the process is killed meanwhile, the stored cases of a file have different digests, so
        that the next run reads the file again.
        """
        failures: dict[str, str] = {}

        def note_failure(case: Case, error: FacetError) -> None:
            failures[case.metadata["source"]] = f"a passage cannot be encoded: {error}"

        added = len(self.new)
        if not self.dry_run:
            added = len(self.store.add(self.new, progress=False, on_error=note_failure))
            self.store.update({case.id: Change(metadata=case.metadata) for case in self.updated})
            self.removed = {id_: file for id_, file in self.removed.items() if file not in failures}
            self.store.delete(list(self.removed))
        self.counts["added"] += added
        self.counts["updated"] += len(self.updated)
        self.counts["removed"] += len(self.removed)
        self.counts["files"] -= len(failures)
        self.failed += failures.items()
        self.new, self.updated, self.removed = [], [], {}


@cache
def _check_installed() -> None:
    for name in MODULES:
        with suppress(ImportError):
            if importlib.util.find_spec(name):
                continue
        problem = f"Documents are read by {name.split('.')[0]}, which is not installed."
        raise DependencyError(f"{problem} Run: pip install 'casewright[documents]'")


def _resolve_path(path: str | Path) -> Path:
    try:
        target = Path(path).expanduser().resolve(strict=True)
        reason = "it is neither a folder nor a regular file"
        if target.is_dir() or target.is_file():
            if file_walk.is_unicode(str(target)):
                return target
            reason = "its name is not valid Unicode"
    except FileNotFoundError:
        reason = "it is not there"
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    advice = "Give a folder of documents, or one document."
    raise InputError(f"{str(path)!a} cannot be ingested: {reason}. {advice}")


def _walk(target: Path, include: Sequence[str], exclude: Sequence[str]) -> WalkResult:
    if target.is_dir():
        return file_walk.walk(target, include, exclude)
    file_walk.check_patterns((*include, *exclude))
    file = SourceFile(target, target.name, target.stat().st_size)
    return WalkResult([file] if file_walk.is_chosen(target.name, include, exclude) else [])


def _check_matched(include: Sequence[str], found: WalkResult, stored: Collection[str]) -> None:
    """Raise ``InputError`` if a pattern matches neither a ``stored`` file nor a ``found`` one."""
    found_paths = [file.relative_path for file in found.files]
    paths = [*stored, *found_paths, *(path for path, _ in found.skipped)]
    for pattern in include:
        has_match = any(file_walk.matches(path, [pattern]) for path in paths)
        # A folder that cannot be read, which the report names, may hold a file that matches.
        if not has_match and not found.failed:
            raise InputError(
                f"The pattern {pattern!r} matches none of the files, so that nothing was done. "
                "Patterns are relative to the folder, such as '*.md' or docs/api; hidden files, "
                "excluded files and files of other kinds are ignored."
            )


def _stamps(store: CaseStore, root: str, sources: set[str] | None) -> dict[str, dict[str, _Stamp]]:
    """Return the stamps of a root's stored cases, by source and then by case id."""
    where = {"root": root} if sources is None else {"root": root, "source": sorted(sources)}
    stamps: dict[str, dict[str, _Stamp]] = {}
    for case in store.all(where):
        stamp = (sys.intern(case.metadata.get("digest", "")), case.metadata.get("chunks", 0))
        stamps.setdefault(case.metadata.get("source", ""), {})[case.id] = stamp
    return stamps


def _has_kind(path: str, kinds: Collection[KindName]) -> bool:
    kind = kind_of(path)
    return not kinds or (kind is not None and kind.name in kinds)
