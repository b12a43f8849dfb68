"""Lists the files in a folder and its subfolders in a fixed order; tells the kind of a file."""

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
    """A kind of file; the kind ``data`` is text, such as YAML, that is split only at line ends.

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


def kind_of(path: str) -> Kind | None:
    """Return the kind of a file by the ending of its path; ``None`` if the ending is unknown."""
    return _KINDS_BY_ENDING.get(PurePosixPath(path).suffix.removeprefix(".").lower())


#: Names of folders with installed or generated files.
SKIPPED_FOLDERS = ("node_modules", "__pycache__")
#: Files that mark a folder as a virtual environment, a cache, or a case store.
MARKER_FILES = ("pyvenv.cfg", "CACHEDIR.TAG", LOCK_FILE)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A regular file; ``relative_path`` is relative to the root, with ``/`` as separator."""

    path: Path
    relative_path: str
    size: int  # in bytes


def skip_reason(file: SourceFile, kind: Kind | None) -> str:
    """Return why a file is not read, judged by name and size; empty if it may be a document."""
    if LOG_NAME.fullmatch(file.relative_path):
        return "it is a log"
    if file.relative_path.lower().endswith(GENERATED_ENDINGS):
        return "it was made by a program, for programs"
    if file.size > MAX_DATA_BYTES and (kind is None or kind.name in DATA_KINDS):
        description = "of an unknown type" if kind is None else "data"
        return f"it is {description}, and has more than {MAX_DATA_BYTES:,} bytes"
    return ""


@dataclass(slots=True)
class WalkResult:
    """The chosen ``files`` in a folder, and the paths that are not read, each with the reason.

    ``failed`` has paths that cannot be read; ``skipped`` has links that lead out of the folder, and
    paths that are not regular files.
    """

    files: list[SourceFile] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def walk(root: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> WalkResult:
    """Return the files that the patterns choose (``is_chosen``) below ``root``, a resolved path.

    Links are not followed: a linked file in the folder is read at its own path. Hidden files and
    folders, ``SKIPPED_FOLDERS``, virtual environments and case stores are left out.
    ``.gitignore`` is not read. Raise ``InputError`` for an empty pattern.
    """
    check_patterns((*include, *exclude))
    result = WalkResult()
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            result.failed.append((_relative_path(folder, root), _failure(error)))
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            relative_path = _relative_path(Path(entry.path), root)
            if not is_unicode(relative_path):
                escaped_path = relative_path.encode(errors="backslashreplace").decode()
                result.failed.append((escaped_path, "its name is not valid Unicode"))
                continue
            if matches(relative_path, exclude):
                continue
            if entry.is_dir(follow_symlinks=False):
                # ``Path.exists`` would raise an error if the folder may not be searched.
                has_marker = any(os.path.exists(os.path.join(entry.path, n)) for n in MARKER_FILES)
                if entry.name not in SKIPPED_FOLDERS and not has_marker:
                    folders.append(Path(entry.path))
            elif is_chosen(relative_path, include):
                if entry.is_symlink():
                    _check_link(Path(entry.path), relative_path, root, result)
                else:
                    _add_file(Path(entry.path), relative_path, result)
    result.failed.sort()
    result.skipped.sort()
    result.files.sort(key=lambda file: file.relative_path)
    return result


def check_patterns(patterns: Sequence[str]) -> None:
    """Raise ``InputError`` for an empty pattern."""
    if not all(pattern.strip("/") for pattern in patterns):
        raise InputError("A pattern of files is empty. Give one such as '*.md' or docs/api.")


def is_chosen(path: str, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> bool:
    """Return ``True`` if a path matches ``include`` (if given) and does not match ``exclude``."""
    return (not include or matches(path, include)) and not matches(path, exclude)


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Return ``True`` if a path matches one of the patterns.

    A pattern is compared to the path and to the path of each parent folder. A pattern without a
    ``/`` is also compared to the names of the file and of these folders. ``*`` matches any text,
    also ``/``; ``?`` and ``[…]`` match one character.
    """
    parts = path.split("/")
    paths = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    for pattern in patterns:
        relative_pattern = pattern.removeprefix("./").strip("/")
        for variant in (relative_pattern, relative_pattern.removeprefix("**/")):
            names = [] if "/" in variant else parts
            if any(fnmatchcase(text, variant) for text in (*paths, *names)):
                return True
    return False


def _check_link(path: Path, relative_path: str, root: Path, result: WalkResult) -> None:
    """Add a link to ``failed`` or ``skipped`` of the result, unless it leads into the folder."""
    try:
        target = path.resolve(strict=True)
    except FileNotFoundError:
        result.failed.append((relative_path, "it is a broken link"))
    except (OSError, RuntimeError):
        result.failed.append((relative_path, "it is a link in a ring of links"))
    else:
        if not target.is_relative_to(root):
            result.skipped.append((relative_path, "it is a link that leads out of the folder"))


def _add_file(path: Path, relative_path: str, result: WalkResult) -> None:
    try:
        status = path.stat()
    except OSError as error:
        result.failed.append((relative_path, _failure(error)))
    else:
        if path.is_file():
            result.files.append(SourceFile(path, relative_path, status.st_size))
        else:
            # Reading a pipe would block.
            result.skipped.append((relative_path, "it is not a regular file"))


def is_unicode(path: str) -> bool:
    """Return ``True`` if a path is valid Unicode; on some systems a name may be any bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _relative_path(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _failure(error: OSError) -> str:
    return f"it cannot be read: {error.strerror or error}"
