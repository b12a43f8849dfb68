"""A file's bytes as text parts: pages of a PDF, a page of HTML as Markdown, any other as it is.

PDFs are read by LlamaIndex's reader. Its readers of text are not used: they hand on bytes that were
not decoded, or drop what is no UTF-8.
"""

from __future__ import annotations

import codecs
import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from casewright.errors import InputError, told
from casewright.stores.documents.html_text import html_text
from casewright.stores.documents.kinds import Kind

#: What a file begins with that says its encoding.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: What a source file may say of its encoding, in one of its first two lines (PEP 263).
CODING = re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


@dataclass(frozen=True, slots=True)
class Part:
    """Text of a document that is split by itself.

    Attributes:
        text: With ``\\n`` at the end of lines.
        page: The number of the page that it is, from 1; ``None`` where there are no pages.
    """

    text: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read.

    Attributes:
        kind: How its parts are to be split.
        parts: Its text.
        title: What it calls itself; empty where that is not known.
        has_lines: The lines of its one part are lines of the file.
    """

    kind: Kind
    parts: tuple[Part, ...]
    title: str = ""
    has_lines: bool = False


def is_text(data: bytes) -> bool:
    """Say whether bytes of no known kind are text: UTF-8, or what they begin with says so."""
    try:
        return "\0" not in _decoded(data, "")
    except InputError:
        return False


def read_document(data: bytes, source: str, kind: Kind) -> Document:
    """Read a file.

    Args:
        data: All of its bytes.
        source: Its name, for its ending.
        kind: See ``kind_of``.

    Raises:
        InputError: It cannot be read; the message is the reason alone.
    """
    if kind.name == "pdf":
        return Document(kind, _pdf_pages(data, source))
    text = _decoded(data, _declared(data, kind))
    if "\0" in text:
        raise InputError("it is no text: it has zero bytes")
    text = _clean(text)
    if kind.name == "html":
        title, told_ = html_text(text)
        return Document(kind, (Part(told_),), title)
    return Document(kind, (Part(text),), has_lines=True)


def _declared(data: bytes, kind: Kind) -> str:
    """Return the encoding that a page or a source file says it has; empty where it says none."""
    if kind.name == "html":
        from bs4.dammit import EncodingDetector

        return EncodingDetector.find_declared_encoding(data, is_html=True) or ""
    found = CODING.match(data) if kind.name == "code" else None
    return found[1].decode() if found else ""


def _decoded(data: bytes, declared: str) -> str:
    marked = next((name for mark, name in MARKS if data.startswith(mark)), "")
    encoding = marked or declared or "utf-8"
    try:
        return data.decode(encoding)
    except LookupError as error:
        raise InputError(f"it says that its encoding is {encoding}, which is not known") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        # Guessed, a wrong encoding would be read without a word.
        raise InputError(
            f"it is not {encoding.upper()}: line {line} has the byte {data[error.start]:#04x}; "
            "save it as UTF-8"
        ) from error


def _clean(text: str) -> str:
    """Return text with one kind of line end, and no half of a surrogate pair."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


class _InMemory:
    """The bytes of one file where a file system is asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def open(self, path: str, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


@contextmanager
def _silent(logger: logging.Logger) -> Iterator[None]:
    """Have a logger print nothing: it would stand between a command's own lines.

    To the root logger this is also what keeps another module from setting it up: when LlamaIndex's
    readers are imported, the one of slides would.
    """
    handler, propagate = logging.NullHandler(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def _pdf_pages(data: bytes, source: str) -> tuple[Part, ...]:
    with _silent(logging.getLogger()):
        from llama_index.readers.file import PDFReader  # type: ignore[import-untyped]
    from tenacity import RetryError

    try:
        with _silent(logging.getLogger("pypdf")):
            pages = PDFReader().load_data(Path(source), fs=_InMemory(data))
    except RetryError as error:
        reason = error.last_attempt.exception()
        # The last of these: the cipher needs a package that is not installed.
        if type(reason).__name__ in ("FileNotDecryptedError", "DependencyError"):
            raise InputError("it is encrypted; save it without a password") from error
        raise InputError(f"it is no PDF that can be read: {told(reason or error)}") from error
    parts = tuple(
        Part(_clean(page.text).replace("\0", ""), number) for number, page in enumerate(pages, 1)
    )
    if not any(part.text.strip() for part in parts):
        raise InputError("its pages have no text; they may be scanned: run OCR over it first")
    return parts
