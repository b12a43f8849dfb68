"""A file's bytes as text parts: a PDF's pages, HTML as Markdown, other text unchanged.

LlamaIndex's readers are not used: those of text return undecoded bytes, or drop bytes that are not
UTF-8; that of PDF calls pypdf, as this does, and its package needs pandas.
"""

from __future__ import annotations

import codecs
import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from casewright.errors import InputError, told
from casewright.stores.documents.file_walk import Kind
from casewright.stores.documents.html_text import html_text

#: Byte order marks and their encodings.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: A source file's declaration of its encoding, in one of its first two lines (PEP 263).
CODING = re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


@dataclass(frozen=True, slots=True)
class Part:
    """A text that is split by itself, with ``\\n`` at the end of lines, and its page from 1."""

    text: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file: its parts, to be split by ``kind``, and its title, empty if unknown.

    ``has_lines`` tells that the lines of the only part are lines of the file.
    """

    kind: Kind
    parts: tuple[Part, ...]
    title: str = ""
    has_lines: bool = False


def is_text(data: bytes) -> bool:
    """Return ``True`` if bytes of unknown kind are text: UTF-8, or with a byte order mark."""
    try:
        return "\0" not in _decoded(data, "")
    except InputError:
        return False


def read_document(data: bytes, kind: Kind) -> Document:
    """Return the content of a file, given its bytes and its kind (``kind_of``).

    The message of an ``InputError`` is the reason alone.
    """
    if kind.name == "pdf":
        return Document(kind, _pdf_pages(data))
    text = _decoded(data, _declared(data, kind))
    if "\0" in text:
        raise InputError("it is not text: it has zero bytes")
    text = _clean(text)
    if kind.name == "html":
        title, markdown = html_text(text)
        return Document(kind, (Part(markdown),), title)
    return Document(kind, (Part(text),), has_lines=True)


def _declared(data: bytes, kind: Kind) -> str:
    if kind.name == "html":
        from bs4.dammit import EncodingDetector

        return EncodingDetector.find_declared_encoding(data, is_html=True) or ""
    match = CODING.match(data) if kind.name == "code" else None
    return match[1].decode() if match else ""


def _decoded(data: bytes, declared: str) -> str:
    marked = next((name for mark, name in MARKS if data.startswith(mark)), "")
    encoding = marked or declared or "utf-8"
    try:
        return data.decode(encoding)
    except LookupError as error:
        raise InputError(f"it says that its encoding is {encoding}, which is not known") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        # A guessed encoding may be wrong without an error.
        raise InputError(
            f"it is not {encoding.upper()}: line {line} has the byte {data[error.start]:#04x}; "
            "save it as UTF-8"
        ) from error


def _clean(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


@contextmanager
def _silent(logger: logging.Logger) -> Iterator[None]:
    """Keep a logger from printing between a command's own lines."""
    handler, propagate = logging.NullHandler(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def _pdf_pages(data: bytes) -> tuple[Part, ...]:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    try:
        with _silent(logging.getLogger("pypdf")):
            pages = [page.extract_text() for page in PdfReader(io.BytesIO(data)).pages]
    # It is raised for a cipher whose package is not installed.
    except (FileNotDecryptedError, DependencyError) as error:
        raise InputError("it is encrypted; save it without a password") from error
    # pypdf raises errors of many kinds for damaged files.
    except Exception as error:
        raise InputError(f"it is not a readable PDF: {told(error)}") from error
    parts = tuple(Part(_clean(text).replace("\0", ""), page) for page, text in enumerate(pages, 1))
    if not any(part.text.strip() for part in parts):
        raise InputError("its pages have no text; they may be scanned: run OCR over it first")
    return parts
