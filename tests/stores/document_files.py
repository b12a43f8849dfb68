"""Documents for tests of ingestion, and functions that read their chunks from a store."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from casewright.stores import CaseStore, Encoder
from casewright.stores.documents.cases import document_schema
from tests.support.encoders import HashingEncoder


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, data in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def document_store(encoder: Encoder | None = None, location: str = ":memory:") -> CaseStore:
    return CaseStore(document_schema(encoder or HashingEncoder()), location)


def contents(store: CaseStore) -> dict[str, dict[str, Any]]:
    """Return all cases by id, without their times of creation."""
    return {case.id: {**case.to_json(), "created": ""} for case in store.all()}


def sources(store: CaseStore) -> list[str]:
    return sorted({str(case.metadata["source"]) for case in store.all()})


def chunks_of(store: CaseStore, source: str) -> list[dict[str, Any]]:
    """Return the metadata, id and text of each chunk of a file, by position."""
    chunks = [
        {**case.metadata, "id": case.id, "text": case.solution}
        for case in store.all({"source": source})
    ]
    return sorted(chunks, key=lambda chunk: chunk["position"])


def paragraph(name: str, words: int = 110) -> str:
    """Return a paragraph that is long enough to be a chunk by itself, and not too long."""
    return f"{name} " + " ".join(f"{name[0]}{number % 7}" for number in range(words // 2)) + "."


def pdf(pages: Sequence[str]) -> bytes:
    """Return a PDF with these lines of text on its pages; the page "" has no text."""
    objects: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for page in pages:
        text_lines = b"".join(b"(%s) Tj T* " % line.encode("latin-1") for line in page.split("\n"))
        stream = b"BT /F1 11 Tf 14 TL 40 780 Td " + text_lines + b"ET" if page else b""
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return (
        out
        + b"xref\n0 %d\n0000000000 65535 f \n" % size
        + table
        + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(out))
    )


def encrypted_pdf(password: str) -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(["secret words"]))))
    writer.encrypt(password, algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()
