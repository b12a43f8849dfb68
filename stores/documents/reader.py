"""Converts a file's bytes to text parts: pages, Markdown, and records of data.

LlamaIndex's readers are not used: the text readers return undecoded bytes, or drop bytes that are
not UTF-8; the DOCX and notebook readers lose headings and tables; the PDF reader needs pandas.
"""

from __future__ import annotations

import codecs
import io
import logging
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from casewright.errors import InputError, one_line
from casewright.stores.documents.file_walk import Kind
from casewright.stores.documents.html_text import html_text
from casewright.stores.documents.records import json_records, table_records

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: Minimum share of zero bytes in UTF-16 without a byte order mark; European text has about half.
MIN_UTF16_ZERO_SHARE = 0.3
#: Maximum bytes of an unpacked DOCX file.
MAX_UNPACKED_BYTES = 200_000_000
#: The metadata block at the top of a Markdown file.
FRONT_MATTER = re.compile(r"\A---\n(?:[^\n]*\n){0,200}?---\n")
FRONT_TITLE = re.compile(r"(?m)^title:[ \t]*[\"']?(.*?)[\"']?[ \t]*$")
#: A directive, target, role or underlined title in reStructuredText.
RST_MARK = re.compile(r"(?m)^\.\. (?:[\w:-]+::|_[^\n]+:)|:[a-z][\w:-]*:`[^`\n]+`|^([=~-])\1{3,}$")
#: A text file with at least this many such marks is read as reStructuredText.
MIN_MARKS = 2
#: A remark that programs write at the top of generated files.
GENERATED_MARK = re.compile(
    rb"(?i)@generated\b|\bgenerated\b[^\n]{0,200}\bdo not (?:edit|modify)|"
    rb"\bdo not (?:edit|modify)\b[^\n]{0,200}\n?[^\n]{0,200}\bgenerated\b"
)
#: Number of first bytes of a file that are searched for this remark.
TOP_BYTES = 600
#: Code whose lines are longer on average was minified.
MAX_MEAN_LINE_BYTES = 400
#: The start of a log line: its time, after a bracket or a level.
LOG_LINE = re.compile(rb"\W{0,3}(?:[A-Z]{4,8}\W{1,3})?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d")
#: Number of first lines of a text that are searched for log lines.
EXAMINED_LINES = 200
#: A log has at least this many lines, and at least this share of them begins with a time.
MIN_LOG_LINES, MIN_LOG_SHARE = 20, 0.8
#: A source file's declaration of its encoding, in one of its first two lines (PEP 263).
DECLARED_ENCODING = re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


@dataclass(frozen=True, slots=True)
class Part:
    """A text that is split separately, with ``\\n`` as line end.

    ``page`` is its page, from 1. ``line_numbers`` are the line numbers that its lines have in the
    file; empty if these are 1, 2, ….
    """

    text: str
    page: int | None = None
    line_numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file: its parts, and its title, if known.

    ``kind`` decides how the parts are split later. ``has_lines`` is true if line numbers are known;
    ``note`` states a guessed encoding.
    """

    kind: Kind
    parts: tuple[Part, ...]
    title: str = ""
    has_lines: bool = False
    note: str = ""


def is_text(data: bytes) -> bool:
    """Return ``True`` for text, which is in UTF-8 unless a byte order mark tells its encoding."""
    try:
        return "\0" not in data.decode(_bom_encoding(data) or "utf-8")
    except UnicodeDecodeError:
        return False


def refusal_reason(data: bytes, kind: Kind | None) -> str:
    """Return why a file is not read, judged by its bytes; empty if it may be a document."""
    if kind is None and not is_text(data):
        return "it is not text, and of an unknown type"
    if kind is None or kind.name in ("text", "data"):
        lines = data.split(b"\n", EXAMINED_LINES)[:EXAMINED_LINES]
        log_line_count = sum(bool(LOG_LINE.match(line)) for line in lines)
        if len(lines) >= MIN_LOG_LINES and log_line_count >= MIN_LOG_SHARE * len(lines):
            return "it is a log"
    elif kind.name == "code":
        is_minified = len(data) > MAX_MEAN_LINE_BYTES * (data.count(b"\n") + 1)
        if is_minified or GENERATED_MARK.search(data[:TOP_BYTES]):
            return "it was made by a program, for programs"
    return ""


def read_document(data: bytes, kind: Kind) -> Document:
    """Return the content of a file; on failure, raise ``InputError`` without naming the file."""
    if kind.name == "pdf":
        return Document(kind, _pdf_pages(data))
    if kind.name == "docx":
        return Document(kind, (Part(html_text(_docx_html(data))[1]),))
    text, note = _decode(data, _declared_encoding(data, kind))
    if "\0" in text:
        raise InputError("it is not text: it has zero bytes")
    text = _clean(text)
    document = Document(kind, (Part(text),), has_lines=True)
    if kind.name == "html":
        title, markdown = html_text(text)
        document = Document(kind, (Part(markdown),), title)
    elif kind.name == "rst" or (kind.name == "text" and len(RST_MARK.findall(text)) >= MIN_MARKS):
        from casewright.stores.documents.rst_text import rst_text

        markdown, line_numbers = rst_text(text)
        part = Part(markdown, line_numbers=tuple(line_numbers))
        document = Document(Kind("rst"), (part,), has_lines=True)
    elif kind.name == "markdown" and (front_matter := FRONT_MATTER.match(text)):
        title_match = FRONT_TITLE.search(front_matter[0])
        title = title_match[1] if title_match else ""
        # Blank lines replace the metadata block, so that later lines keep their numbers.
        body = "\n" * front_matter[0].count("\n") + text[front_matter.end() :]
        document = Document(kind, (Part(body),), title, has_lines=True)
    elif kind.name == "notebook":
        document = Document(kind, (Part(_notebook(text)),))
    elif kind.name in ("table", "json"):
        records = table_records(text) if kind.name == "table" else json_records(text)
        if records is not None:
            numbers = tuple(number for _, number in records if number is not None)
            part = Part("\n".join(f"- {line}" for line, _ in records), line_numbers=numbers)
            document = Document(kind, (part,), has_lines=bool(numbers))
    return replace(document, note=note)


def _declared_encoding(data: bytes, kind: Kind) -> str:
    if kind.name == "html":
        from bs4.dammit import EncodingDetector

        return EncodingDetector.find_declared_encoding(data, is_html=True) or ""
    match = DECLARED_ENCODING.match(data) if kind.name == "code" else None
    return match[1].decode() if match else ""


def _bom_encoding(data: bytes) -> str:
    return next((name for mark, name in BYTE_ORDER_MARKS if data.startswith(mark)), "")


def _decode(data: bytes, declared_encoding: str) -> tuple[str, str]:
    """Return the decoded text, and a note if its encoding had to be guessed."""
    encoding = _bom_encoding(data) or declared_encoding
    if not encoding and data.count(0) >= MIN_UTF16_ZERO_SHARE * max(1, len(data)):
        is_little_endian = data[1::2].count(0) > data[::2].count(0)
        guesses = ["utf-16-le" if is_little_endian else "utf-16-be"]
    else:
        try:
            return data.decode(encoding or "utf-8"), ""
        except LookupError as error:
            reason = f"it says that its encoding is {encoding}, which is not known"
            raise InputError(reason) from error
        except UnicodeDecodeError:
            # Windows-1252 is tried first; it is Latin-1 with letters for most control characters.
            guesses = ["cp1252", "latin-1"]
    for guess in guesses:
        with suppress(UnicodeDecodeError):
            expected = (encoding or "utf-8").upper()
            return data.decode(guess), f"read as {guess.upper()}, since it is not {expected}"
    raise InputError("it is not text: it has zero bytes")


def _docx_html(data: bytes) -> str:
    import mammoth  # type: ignore[import-untyped]

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > (limit := MAX_UNPACKED_BYTES):
            raise InputError(f"it has {size:,} bytes unpacked; at most {limit:,} are read")
        return str(mammoth.convert_to_html(io.BytesIO(data)).value)
    except (zipfile.BadZipFile, KeyError) as error:
        raise InputError(f"it is not a readable DOCX file: {one_line(error)}") from error


def _notebook(text: str) -> str:
    """Return a notebook's cells as Markdown: prose unchanged, code in fences."""
    import nbformat

    try:
        notebook: Any = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise InputError(f"it is not a readable notebook: {one_line(error)}") from error
    language = notebook.metadata.get("kernelspec", {}).get("language", "")
    return "\n\n".join(
        cell.source if cell.cell_type == "markdown" else f"```{language}\n{cell.source}\n```"
        for cell in notebook.cells
        if cell.source.strip()
    )


def _clean(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


@contextmanager
def _silence(logger: logging.Logger) -> Iterator[None]:
    """Silence a logger, so that it does not print between the lines of a command's output."""
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
        with _silence(logging.getLogger("pypdf")):
            pages = [page.extract_text() for page in PdfReader(io.BytesIO(data)).pages]
    # pypdf raises DependencyError if a package that decrypts is not installed.
    except (FileNotDecryptedError, DependencyError) as error:
        raise InputError("it is encrypted; save it without a password") from error
    except Exception as error:
        raise InputError(f"it is not a readable PDF: {one_line(error)}") from error
    parts = tuple(Part(_clean(text).replace("\0", ""), page) for page, text in enumerate(pages, 1))
    if not any(part.text.strip() for part in parts):
        raise InputError("its pages have no text; they may be scanned: run OCR over it first")
    return parts
