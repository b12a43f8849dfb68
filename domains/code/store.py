"""Finds, opens and updates the store of a source tree."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from pathlib import Path

from casewright.domains.store_opening import open_waiting
from casewright.errors import InputError, StoreError
from casewright.stores import CaseSchema, CaseStore, Encoder, ingest, text_facet
from casewright.stores.documents.file_walk import KindName, is_unicode, kind_of, walk
from casewright.stores.progress import note
from casewright.stores.whole_file import write_whole

COLLECTION = "code"
KINDS: frozenset[KindName] = frozenset(("code",))  # kinds of files that are stored
#: Name of a file with the path of a source tree. The file is written when the tree is opened, so
#: its time tells which tree was opened last.
ORIGIN_FILE = "source.json"
USAGE = "Give the folder of a source tree: casewright ask --domain code --source DIR"


def source_tree(source: str | Path) -> Path:
    """Return a source tree's resolved folder; raise ``InputError`` if it has no source code."""
    option = f"--source {str(source)!a}"
    try:
        tree = Path(source).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{option} is not a folder: {reason}. {USAGE}") from error
    # An empty text would mean the current folder.
    if not str(source) or not tree.is_dir() or not is_unicode(str(tree)):
        raise InputError(f"{option} is not a readable folder. {USAGE}")
    files = walk(tree).files
    kinds = (kind_of(file.relative_path) for file in files)
    if not any(kind is not None and kind.name in KINDS for kind in kinds):
        raise InputError(
            f"{option} has no source code: none of its {len(files)} files that are not hidden "
            f"has an extension of source code, such as .py or .ts. {USAGE}"
        )
    return tree


def tree_folder(folder: Path, tree: Path) -> Path:
    """Return the folder of a source tree's store, named after the tree and its path's hash."""
    path = tree.as_posix()
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", tree.name).strip("-.") or "root"
    return folder / f"{name[:40]}-{hashlib.sha256(path.encode()).hexdigest()[:12]}"


def last_tree(folder: Path) -> Path:
    """Return the most recently opened tree that still exists, or raise ``InputError``."""
    trees_by_time: list[tuple[int, str]] = []
    for origin_file in folder.glob(f"*/{ORIGIN_FILE}"):
        # A damaged file is ignored.
        with suppress(OSError, ValueError, KeyError, TypeError):
            source = json.loads(origin_file.read_text("utf-8"))["source"]
            if isinstance(source, str):
                trees_by_time.append((origin_file.stat().st_mtime_ns, source))
    for _, source in sorted(trees_by_time, reverse=True):
        if Path(source).is_dir():
            return Path(source)
    raise InputError(
        f"No source code was indexed yet, or the indexed folder does not exist any more. {USAGE}"
    )


def open_tree(folder: Path, encoder: Encoder, tree: Path) -> CaseStore:
    """Return the open store of a source tree, after storing the tree's changes.

    Raises:
        InputError: None of the tree's files can be read.
        StoreError: The store cannot be opened, read or written to.
        DependencyError: The packages that read source code are not installed.
    """
    store_folder = tree_folder(folder, tree)
    try:
        store_folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The folder {store_folder} cannot be made: {error.strerror}. Set CASEWRIGHT_HOME to a "
            "folder that you may write to."
        ) from error
    # A chunk's title is its file and symbol. The title weighs more, since the chunks of a method
    # may have nothing else in common.
    facets = text_facet("text", encoder, weight=0.3), text_facet("title", encoder, weight=0.7)
    store = open_waiting(CaseSchema(COLLECTION, facets), store_folder / "cases")
    try:
        if not store.count():
            note(f"Indexing the source code in {tree}, once …")
        report = ingest(store, tree, kinds=KINDS)
        if report.failed:
            file, reason = report.failed[0]
            others = f", and {len(report.failed) - 1} more" if len(report.failed) > 1 else ""
            note(f"Left out: {file}, since {reason}{others}.")
        if not store.count():
            raise InputError(f"None of the source code in {tree} could be read. {USAGE}")
        # An error is ignored, since only ``last_tree`` reads this file.
        with suppress(OSError):
            write_whole(store_folder / ORIGIN_FILE, json.dumps({"source": tree.as_posix()}))
    except BaseException:
        store.close()
        raise
    return store
