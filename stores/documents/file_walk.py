"""Lists the files below a folder that may be documents, in a fixed order, with their kinds."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Literal

from casewright.errors import InputError
from casewright.stores.engines.folder import LOCK_FILE

KindName = Literal[
    "text", "markdown", "rst", "html", "pdf", "docx", "notebook", "code", "table", "json", "data"
]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file; the kind ``data`` is text, such as YAML, that is split between lines.

    ``language`` is a key of ``LANGUAGES`` for source code, else empty.
    """

    name: KindName
    language: str = ""


#: Files of ``DATA_KINDS``, or of an unknown kind, are not read if they have more bytes than this.
MAX_DATA_BYTES = 200_000
#: File endings of generated text: drawings, minified code, lock files.
GENERATED_ENDINGS = (".svg", ".map", ".lock", ".min.js", ".min.css", "-lock.json", "-lock.yaml")
DATA_KINDS: tuple[KindName, ...] = ("table", "json", "data")
#: The name of a log file, which may be rotated (``x.log.1``).
LOG_NAME = re.compile(r".*\.log(\.\d+)?", re.IGNORECASE)
#: The kinds of files that are read, for help texts.
READ_KINDS = (
    "text, Markdown, reStructuredText, HTML, PDF, DOCX, notebooks, source code, and data such as "
    "CSV, JSON and YAML"
)

#: The endings of source files by language.
LANGUAGES = {
    "bash": "sh bash zsh",
    "c": "c h",
    "cpp": "cc cpp cxx hh hpp hxx",
    "csharp": "cs",
    "go": "go",
    "java": "java",
    "javascript": "js jsx mjs cjs",
    "kotlin": "kt kts",
    "lua": "lua",
    "php": "php",
    "python": "py pyi",
    "r": "r",
    "ruby": "rb",
    "rust": "rs",
    "scala": "scala sc",
    "sql": "sql",
    "swift": "swift",
    "tsx": "tsx",
    "typescript": "ts mts cts",
}
_ENDINGS_BY_KIND = {
    Kind("text"): "txt text adoc org tex",
    Kind("markdown"): "md mdx markdown mdown mkd",
    Kind("rst"): "rst rest",
    Kind("html"): "html htm xhtml",
    Kind("pdf"): "pdf",
    Kind("docx"): "docx",
    Kind("notebook"): "ipynb",
    Kind("table"): "csv tsv",
    Kind("json"): "json jsonl ndjson",
    Kind("data"): "yaml yml toml xml ini cfg",
    **{Kind("code", language): endings for language, endings in LANGUAGES.items()},
}
_KINDS_BY_ENDING = {end: kind for kind, ends in _ENDINGS_BY_KIND.items() for end in ends.split()}


def kind_of(source: str) -> Kind | None:
    """Return the kind of the file with a relative path; ``None`` for an unknown ending."""
    return _KINDS_BY_ENDING.get(PurePosixPath(source).suffix.removeprefix(".").lower())


#: Names of folders with installed or generated files.
SKIPPED_FOLDERS = ("node_modules", "__pycache__")
#: Files that mark a folder as a virtual environment, a cache, or a case store.
MARKER_FILES = ("pyvenv.cfg", "CACHEDIR.TAG", LOCK_FILE)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A regular file: its path, its path relative to the root with ``/``, and its size in bytes."""

    path: Path
    source: str
    size: int


def skip_reason(file: SourceFile, kind: Kind | None) -> str:
    """Return why a file is not read, judged by name and size; empty if it may be a document."""
    if LOG_NAME.fullmatch(file.source):
        return "it is a log"
    if file.source.lower().endswith(GENERATED_ENDINGS):
        return "it was made by a program, for programs"
    if file.size > MAX_DATA_BYTES and (kind is None or kind.name in DATA_KINDS):
        description = "of an unknown type" if kind is None else "data"
        return f"it is {description}, and has more than {MAX_DATA_BYTES:,} bytes"
    return ""


@dataclass(slots=True)
class WalkResult:
    """The chosen ``files`` below a folder, and other paths, each with a reason.

    Paths in ``failed`` cannot be read; paths in ``skipped`` are no regular files of the folder.
    """

    files: list[SourceFile] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def walk(root: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> WalkResult:
    """Return the files below a resolved folder that the patterns choose; links are not followed.

    A link to a file of the folder is left out, since that file is read at its own path. Hidden
    files and folders, ``SKIPPED_FOLDERS``, virtual environments and case stores are left out;
    ``.gitignore`` is not read. Raise ``InputError`` for an empty pattern; see ``is_chosen``.
    """
    check_patterns((*include, *exclude))
    result = WalkResult()
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            result.failed.append((_source(folder, root), _reason(error)))
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            source = _source(Path(entry.path), root)
            if not is_unicode(source):
                escaped_source = source.encode(errors="backslashreplace").decode()
                result.failed.append((escaped_source, "its name is not valid Unicode"))
                continue
            if matches(source, exclude):
                continue
            if entry.is_dir(follow_symlinks=False):
                # ``Path.exists`` would raise an error if the folder may not be searched.
                has_marker = any(os.path.exists(os.path.join(entry.path, n)) for n in MARKER_FILES)
                if entry.name not in SKIPPED_FOLDERS and not has_marker:
                    folders.append(Path(entry.path))
            elif is_chosen(source, include):
                if entry.is_symlink():
                    _add_link(Path(entry.path), source, root, result)
                else:
                    _add_file(Path(entry.path), source, result)
    result.failed.sort()
    result.skipped.sort()
    result.files.sort(key=lambda file: file.source)
    return result


def check_patterns(patterns: Sequence[str]) -> None:
    """Raise ``InputError`` for an empty pattern."""
    if not all(pattern.strip("/") for pattern in patterns):
        raise InputError("A pattern of files is empty. Give one such as '*.md' or docs/api.")


def is_chosen(source: str, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> bool:
    """Return ``True`` if a file matches ``include``, if any, and does not match ``exclude``."""
    return (not include or matches(source, include)) and not matches(source, exclude)


def matches(source: str, patterns: Sequence[str]) -> bool:
    """Return ``True`` if a path matches one of the patterns.

    A pattern is compared to the path and to the path of each parent folder. A pattern without a
    ``/`` is also compared to the names of the file and of these folders. ``*`` matches any text,
    also ``/``; ``?`` and ``[…]`` match a character.
    """
    parts = source.split("/")
    paths = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    for pattern in patterns:
        relative_pattern = pattern.removeprefix("./").strip("/")
        for variant in (relative_pattern, relative_pattern.removeprefix("**/")):
            names = [] if "/" in variant else parts
            if any(fnmatchcase(text, variant) for text in (*paths, *names)):
                return True
    return False


def _add_link(path: Path, source: str, root: Path, result: WalkResult) -> None:
    try:
        target = path.resolve(strict=True)
    except FileNotFoundError:
        result.failed.append((source, "it is a broken link"))
    except (OSError, RuntimeError):
        result.failed.append((source, "it is a link in a ring of links"))
    else:
        if not target.is_relative_to(root):
            result.skipped.append((source, "it is a link that leads out of the folder"))


def _add_file(path: Path, source: str, result: WalkResult) -> None:
    try:
        status = path.stat()
    except OSError as error:
        result.failed.append((source, _reason(error)))
    else:
        if path.is_file():
            result.files.append(SourceFile(path, source, status.st_size))
        else:
            # Reading a pipe would block.
            result.skipped.append((source, "it is not a regular file"))


def is_unicode(name: str) -> bool:
    """Return ``True`` if a path is valid Unicode; on some systems a name may be any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _source(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _reason(error: OSError) -> str:
    return f"it cannot be read: {error.strerror or error}"
