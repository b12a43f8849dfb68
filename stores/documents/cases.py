"""Converts chunks of documents to cases; lists and removes roots (ingested folders) of a store."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath

import numpy as np

from casewright.errors import InputError
from casewright.stores.case import CASE_NAMESPACE, Case
from casewright.stores.documents.file_walk import is_unicode
from casewright.stores.documents.splitter import HEADING_SEPARATOR, Chunk
from casewright.stores.documents.text_size import GROUP_TOKENS, MAX_CHUNK_TOKENS, MIN_GROUP_TOKENS
from casewright.stores.encoders.encoder import Encoder
from casewright.stores.engines.engine import NoCollectionError, Where
from casewright.stores.facet import text_facet
from casewright.stores.schema import CaseSchema
from casewright.stores.store import CaseStore
from casewright.stores.tenant import with_tenant

#: The default name of a collection of documents.
COLLECTION = "documents"
#: Version of the readers and splitters. When this number changes, ``ingest`` rereads all files.
FORMAT = 4
#: Packages that read and split files; another version may give other chunks.
READER_PACKAGES = (
    *("llama-index-core", "pypdf", "beautifulsoup4", "tree-sitter-language-pack"),
    *("docutils", "mammoth", "nbformat"),
)

#: The root of a chunk (a folder's path, or the name that ``ingest`` gave the folder), its source
#: (the file's path below the root), and its position among the file's chunks, from 1.
ChunkPlace = tuple[str, str, int]
DELETE_BATCH_SIZE, MAX_LISTED_ROOTS = 2000, 10


def document_schema(encoder: Encoder, name: str = COLLECTION) -> CaseSchema:
    """Return the schema of documents, with the facets text and title.

    A chunk's title is the document's title, then the headings above the chunk or, in source code,
    the name of the chunk's function or class.
    """
    facets = text_facet("text", encoder, weight=0.8), text_facet("title", encoder, weight=0.2)
    return CaseSchema(name, facets)


def digest(data: bytes) -> str:
    """Return a hash of a file's bytes and of the settings and packages with which it is split."""
    return hashlib.sha256(_reading_settings() + data).hexdigest()


@cache
def _reading_settings() -> bytes:
    versions = {name: _package_version(name) for name in READER_PACKAGES}
    return json.dumps([FORMAT, MAX_CHUNK_TOKENS, GROUP_TOKENS, MIN_GROUP_TOKENS, versions]).encode()


def _package_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def document_cases(
    chunks: Sequence[Chunk], store: CaseStore, root: str, source: str, file_digest: str
) -> list[Case]:
    """Return all chunks of a file, in order, as cases; ``source`` is the file's path in the root.

    A chunk's id is derived from tenant, collection, root, source, title and text. The position is
    not used, since inserted text would change it; a count tells equal chunks of a file apart.
    """
    equal_counts: Counter[tuple[str, str]] = Counter()
    cases = []
    for position, chunk in enumerate(chunks, 1):
        document_title = chunk.title or source
        headings = (chunk.symbol,) if chunk.symbol else chunk.headings
        if headings[:1] == (document_title,):
            headings = headings[1:]
        title = HEADING_SEPARATOR.join([document_title, *headings])
        content = (title, chunk.text)
        metadata = {
            "root": root,
            "source": source,
            "title": document_title,
            "heading": HEADING_SEPARATOR.join(chunk.headings),
            "symbol": chunk.symbol,
            "page": chunk.page,
            "first_line": chunk.first_line,
            "last_line": chunk.last_line,
            "position": position,
            "chunks": len(chunks),
            "digest": file_digest,
        }
        metadata = {name: value for name, value in metadata.items() if value not in (None, "")}
        collection = (store.tenant or "", store.schema.name)
        identity = [*collection, root, source, *content, equal_counts[content]]
        id_ = str(uuid.uuid5(CASE_NAMESPACE, json.dumps(identity, ensure_ascii=False)))
        problem = {"title": title, "text": chunk.text}
        cases.append(Case(problem, chunk.text, metadata=metadata, id=id_))
        equal_counts[content] += 1
    return cases


def location_text(case: Case, name_by_root: Mapping[str, str]) -> str:
    """Return a chunk's location as text: file with the root's name, page or lines, and section."""
    metadata = case.metadata
    root = str(metadata.get("root", ""))
    text = str(PurePosixPath(name_by_root.get(root, root), metadata.get("source", case.id)))
    if "page" in metadata:
        text += f", page {metadata['page']}"
    if "first_line" in metadata:
        first, last = metadata["first_line"], metadata["last_line"]
        text += f", line {first}" if first == last else f", lines {first}-{last}"
    section = metadata.get("symbol") or metadata.get("heading")
    return f"{text} ({section})" if section else text


def chunk_place(case: Case) -> ChunkPlace | None:
    """Return root, source and position of a chunk; ``None`` if ``ingest`` did not make the case."""
    root, source, position = (case.metadata.get(name) for name in ("root", "source", "position"))
    if isinstance(root, str) and isinstance(source, str) and isinstance(position, int):
        return root, source, position
    return None


def neighbour_places(case: Case, distance: int) -> list[ChunkPlace]:
    """Return the places of up to ``distance`` chunks on each side of a chunk, without its own."""
    place, chunk_count = chunk_place(case), case.metadata.get("chunks")
    if place is None or not isinstance(chunk_count, int):
        return []
    root, source, position = place
    first, last = max(1, position - distance), min(position + distance, chunk_count)
    return [(root, source, n) for n in range(first, last + 1) if n != position]


def places_condition(places: Collection[ChunkPlace]) -> Where:
    """Return a condition that all chunks at these places meet; other chunks may meet it too."""
    # Reading a few other chunks takes far less time than a query for each file.
    roots, sources, positions = (sorted(set(part)) for part in zip(*places, strict=True))
    return {"root": roots, "source": sources, "position": positions}


def roots_of(store: CaseStore) -> list[str]:
    """Return the sorted roots of a store's documents; raise ``StoreError`` if the store fails."""
    roots: list[str] = []
    # All cases have the same score for a vector of zeros, so that the search may return any case.
    zeros = np.zeros(store.schema.dimension, dtype=np.float32)
    with suppress(NoCollectionError):
        while True:
            # Each search finds a chunk of a further root; cases without a position are no chunks.
            where = with_tenant({"position": {"gte": 1}, "root": {"not": roots}}, store.tenant)
            points = store.engine.search(store.schema.name, zeros, 1, where, exact=True)
            root = points[0].payload["metadata"].get("root") if points else None
            if root is None or root in roots:
                break
            roots.append(root)
    return sorted(roots)


def root_names(roots: Iterable[str]) -> dict[str, str]:
    """Return a name for each root: its last part; if roots share this part, the whole root."""
    last_parts = {root: PurePosixPath(root).name for root in roots}
    counts = Counter(last_parts.values())
    return {root: part if counts[part] == 1 else root for root, part in last_parts.items()}


def remove_root(store: CaseStore, root: str | Path) -> int:
    """Remove all cases of a root, and return their number. The folder need not exist.

    If a call is killed, another call removes the remaining cases.

    Args:
        root: The name that ``ingest`` gave the folder, or the folder's path.

    Raises:
        InputError: The store has no case of that root; the message lists the store's roots.
        StoreError: The store cannot be read or written to.
    """
    try:
        path = Path(root).expanduser().resolve().as_posix() if str(root) else ""
    except (OSError, RuntimeError, ValueError):
        path = ""
    for name in dict.fromkeys((str(root), path)):
        if name and is_unicode(name) and (cases := store.all({"root": name})):
            ids = [case.id for case in cases]
            for start in range(0, len(ids), DELETE_BATCH_SIZE):
                store.delete(ids[start : start + DELETE_BATCH_SIZE])
            return len(ids)
    roots = roots_of(store)
    listed, unlisted = roots[:MAX_LISTED_ROOTS], roots[MAX_LISTED_ROOTS:]
    rest_text = f", and {len(unlisted)} more" if unlisted else ""
    advice = f"Give one of the roots that it has: {', '.join(listed)}{rest_text}."
    problem = f"The store has no cases of {str(root)!a}; nothing was removed."
    raise InputError(f"{problem} {advice if roots else 'It has no documents at all.'}")
