"""Chunks of documents as cases: what they say is their solution, and where is their metadata."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePosixPath

from casewright.stores.case import CASE_NAMESPACE, Case
from casewright.stores.documents.line_groups import ENOUGH, FEW
from casewright.stores.documents.splitter import PATH, Chunk
from casewright.stores.documents.text_size import MOST
from casewright.stores.encoders.encoder import Encoder
from casewright.stores.facet import text_facet
from casewright.stores.schema import CaseSchema
from casewright.stores.store import CaseStore

#: The collection of documents where no other name is given.
COLLECTION = "documents"
#: Raised when reading or splitting changes: files are read anew then.
FORMAT = 2
#: What reads and splits; another version may do it otherwise.
READERS = ("llama-index-core", "pypdf", "beautifulsoup4", "tree-sitter-language-pack")


def document_schema(encoder: Encoder, name: str = COLLECTION) -> CaseSchema:
    """Return the schema of documents: a chunk's text, and the title of where it stands.

    The title is the document's, followed by the headings above the chunk or its symbol.
    """
    return CaseSchema(
        name, (text_facet("text", encoder, weight=0.8), text_facet("title", encoder, weight=0.2))
    )


def digest(data: bytes) -> str:
    """Return a hash of a file's bytes and of how they would be read and split."""
    return hashlib.sha256(_settings() + data).hexdigest()


@cache
def _settings() -> bytes:
    versions = {name: _version(name) for name in READERS}
    return json.dumps([FORMAT, MOST, ENOUGH, FEW, versions]).encode()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def document_cases(
    chunks: Sequence[Chunk], store: CaseStore, root: str, source: str, file_digest: str
) -> list[Case]:
    """Return a file's chunks as cases.

    An id follows from tenant, collection, root, source, and what the chunk says, and which of
    those in the file that say the same it is: what is put in before it leaves it as it is.

    Args:
        chunks: All of a file's, in their order.
        store: Where the cases are to go.
        root: What the folder is called.
        source: The file's path below that.
        file_digest: Its ``digest``.
    """
    seen: Counter[tuple[str, str]] = Counter()
    cases = []
    for position, chunk in enumerate(chunks, 1):
        document = chunk.title or source
        above = [chunk.symbol] if chunk.symbol else list(chunk.heading)
        places = [document, *above[above[:1] == [document] :]]
        problem = {"title": PATH.join(places), "text": chunk.text}
        said = (problem["title"], chunk.text)
        known = {
            "root": root,
            "source": source,
            "title": document,
            "heading": PATH.join(chunk.heading),
            "symbol": chunk.symbol,
            "page": chunk.page,
            "first_line": chunk.first_line,
            "last_line": chunk.last_line,
            "position": position,
            "chunks": len(chunks),
            "digest": file_digest,
        }
        identity = [store.tenant or "", store.schema.name, root, source, *said, seen[said]]
        cases.append(
            Case(
                problem=problem,
                solution=chunk.text,
                metadata={name: value for name, value in known.items() if value not in (None, "")},
                id=str(uuid.uuid5(CASE_NAMESPACE, json.dumps(identity, ensure_ascii=False))),
            )
        )
        seen[said] += 1
    return cases


def place(case: Case, names: Mapping[str, str]) -> str:
    """Say where a chunk stands: its file, lines or page, and the symbol or headings there.

    Args:
        case: The chunk.
        names: Root to what its files are named from on, as several may be in one store; see
            ``roots.root_names``. A root that is not in it is named in full.
    """
    known = case.metadata
    root = str(known.get("root", ""))
    root = names.get(root, root)
    told = str(PurePosixPath(root, known.get("source", case.id)))
    if "page" in known:
        told += f", page {known['page']}"
    if "first_line" in known:
        first, last = known["first_line"], known["last_line"]
        told += f", line {first}" if first == last else f", lines {first}-{last}"
    inside = known.get("symbol") or known.get("heading")
    return f"{told} ({inside})" if inside else told
