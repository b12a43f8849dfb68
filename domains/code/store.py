"""The store of one source tree: where it is kept, and how it is brought up to date."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from pathlib import Path

from casewright.domains.waiting import open_waiting
from casewright.errors import InputError, StoreError
from casewright.stores import CaseStore, Encoder
from casewright.stores.documents.file_walk import is_unicode, walk
from casewright.stores.documents.ingest import ingest
from casewright.stores.documents.kinds import KindName, kind_of
from casewright.stores.facet import text_facet
from casewright.stores.progress import note
from casewright.stores.schema import CaseSchema
from casewright.stores.whole_file import write_whole

#: The collection, and what of a source tree is read.
COLLECTION = "code"
KINDS: frozenset[KindName] = frozenset(("code",))
#: In a source tree's folder: the tree's path. It is written whenever the tree is asked about.
ORIGIN = "source.json"
USAGE = "Give the folder of a source tree: casewright ask --domain code --source DIR"


def code_schema(encoder: Encoder) -> CaseSchema:
    """Return the schema of source code: a chunk's text, and the title of where it stands.

    It is that of documents but for its weights. Chunks of one method have little in common but
    their title, its file and symbol, so that it weighs most.
    """
    return CaseSchema(
        COLLECTION,
        (text_facet("text", encoder, weight=0.3), text_facet("title", encoder, weight=0.7)),
    )


def source_tree(source: str | Path) -> Path:
    """Return the resolved folder of a source tree.

    Raises:
        InputError: It is no folder, or has no source code.
    """
    named = f"--source {str(source)!a}"
    try:
        tree = Path(source).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{named} is no folder: {reason}. {USAGE}") from error
    # An empty path would be the folder that this process is in.
    if not str(source) or not tree.is_dir() or not is_unicode(str(tree)):
        raise InputError(f"{named} is no folder that can be read. {USAGE}")
    found = walk(tree)
    kinds = (kind_of(file.source) for file in found.files)
    if not any(kind is not None and kind.name in KINDS for kind in kinds):
        raise InputError(
            f"{named} has no source code: none of its {len(found.files)} files that are not hidden "
            f"ends as source code does, such as .py or .ts. {USAGE}"
        )
    return tree


def tree_folder(folder: Path, tree: Path) -> Path:
    """Return where the cases of a source tree are kept, below the domain's folder.

    The name says which tree it is; the hash of the whole path tells apart trees of one name.
    """
    path = tree.as_posix()
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", tree.name).strip("-.") or "root"
    return folder / f"{name[:40]}-{hashlib.sha256(path.encode()).hexdigest()[:12]}"


def last_tree(folder: Path) -> Path:
    """Return the source tree that was asked about last and is still there.

    Args:
        folder: The domain's folder.

    Raises:
        InputError: There is none.
    """
    asked: list[tuple[int, str]] = []
    for origin in folder.glob(f"*/{ORIGIN}"):
        try:
            source = json.loads(origin.read_text("utf-8"))["source"]
            if isinstance(source, str):
                asked.append((origin.stat().st_mtime_ns, source))
        except (OSError, ValueError, KeyError, TypeError):
            # Not as it was written here: as good as none.
            continue
    for _, source in sorted(asked, reverse=True):
        if Path(source).is_dir():
            return Path(source)
    raise InputError(f"No source code was indexed yet, or it is not there any more. {USAGE}")


def open_tree(folder: Path, encoder: Encoder, tree: Path) -> CaseStore:
    """Open the store of a source tree, after what changed in the tree was encoded.

    Args:
        folder: The domain's folder.
        encoder: Embeds the chunks.
        tree: A source tree; see ``source_tree``.

    Raises:
        InputError: None of its files could be read.
        StoreError: The store cannot be opened, read or written to.
        DependencyError: The packages that read source code are not installed.
    """
    place = tree_folder(folder, tree)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The folder {place} cannot be made: {error.strerror}. Set CASEWRIGHT_HOME to a folder "
            "that you may write to."
        ) from error
    store = open_waiting(code_schema(encoder), place / "cases")
    try:
        if not store.count():
            note(f"Indexing the source code in {tree}, once …")
        report = ingest(store, tree, kinds=KINDS)
        if report.failed:
            file, reason = report.failed[0]
            more = f", and {len(report.failed) - 1} more" if len(report.failed) > 1 else ""
            note(f"Left out: {file}, since {reason}{more}.")
        if not store.count():
            raise InputError(f"None of the source code in {tree} could be read. {USAGE}")
        # The tree can be asked about without this, by its name.
        with suppress(OSError):
            write_whole(place / ORIGIN, json.dumps({"source": tree.as_posix()}))
    except BaseException:
        store.close()
        raise
    return store
