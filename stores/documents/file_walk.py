"""The files below a folder that may hold documents, in one order on every machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from casewright.errors import InputError
from casewright.stores.engines.folder import LOCK_FILE

#: Folders of what is installed or made, not written.
MADE = ("node_modules", "__pycache__")
#: A folder that holds one of these is a virtual environment, a cache, or a case store.
MARKS = ("pyvenv.cfg", "CACHEDIR.TAG", LOCK_FILE)


@dataclass(frozen=True, slots=True)
class Found:
    """A regular file.

    Attributes:
        path: Where it is.
        source: The same from the root on, with ``/`` between the parts.
        size: In bytes.
    """

    path: Path
    source: str
    size: int


@dataclass(slots=True)
class Walk:
    """What is below a folder.

    Attributes:
        files: Those wanted, ordered by source.
        failed: Files and folders that cannot be read, each with the reason.
        skipped: What is wanted and is no file to read, each with the reason.
    """

    files: list[Found] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def walk(root: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Walk:
    """Find the files below a folder, without following links.

    What a link inside of the root leads to is read in its own place. Hidden files and folders,
    ``node_modules``, ``__pycache__``, virtual environments and case stores are passed over;
    ``.gitignore`` is not read.

    Args:
        root: A folder, resolved.
        include: Patterns of files, of which each must match one; empty for all.
        exclude: Patterns of files and folders to leave out; see ``matches``.

    Raises:
        InputError: A pattern is empty.
    """
    check_patterns((*include, *exclude))
    found = Walk()
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            found.failed.append((_source(folder, root), _reason(error)))
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            source = _source(Path(entry.path), root)
            if not is_unicode(source):
                shown = source.encode(errors="backslashreplace").decode()
                found.failed.append((shown, "its name is no Unicode"))
                continue
            if matches(source, exclude):
                continue
            wanted = chosen(source, include)
            if entry.is_symlink():
                if wanted:
                    _link(Path(entry.path), source, root, found)
            elif entry.is_dir():
                if entry.name not in MADE and not _marked(Path(entry.path)):
                    folders.append(Path(entry.path))
            elif wanted:
                _file(Path(entry.path), source, found)
    for listed in (found.failed, found.skipped):
        listed.sort()
    found.files.sort(key=lambda file: file.source)
    return found


def check_patterns(patterns: Sequence[str]) -> None:
    """Raise ``InputError`` for a pattern that is empty."""
    if not all(pattern.strip("/") for pattern in patterns):
        raise InputError("A pattern of files is empty. Give one such as '*.md' or docs/api.")


def chosen(source: str, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> bool:
    """Say whether patterns choose a file: it matches one to include, or there is none, and none
    to exclude.
    """
    return (not include or matches(source, include)) and not matches(source, exclude)


def matches(source: str, patterns: Sequence[str]) -> bool:
    """Say whether a path matches one of the patterns.

    A pattern is compared to the whole path, to each folder that it leads through, and, where it
    has no ``/``, to each of its names. ``*`` stands for any letters, ``/`` among them; ``?`` and
    ``[…]`` for one.
    """
    return any(
        fnmatchcase(piece, bare)
        for pattern in patterns
        for bare in _spellings(pattern)
        for piece in _pieces(source, names="/" not in bare)
    )


def _spellings(pattern: str) -> Iterator[str]:
    bare = pattern.removeprefix("./").strip("/")
    yield bare
    if bare.startswith("**/"):
        yield bare.removeprefix("**/")


def _pieces(source: str, *, names: bool) -> Iterator[str]:
    parts = source.split("/")
    for end in range(1, len(parts) + 1):
        yield "/".join(parts[:end])
    if names:
        yield from parts


def _link(path: Path, source: str, root: Path, found: Walk) -> None:
    try:
        target = path.resolve(strict=True)
    except FileNotFoundError:
        found.failed.append((source, "it is a link to what is not there"))
    except (OSError, RuntimeError):
        found.failed.append((source, "it is a link in a ring of links"))
    else:
        if not target.is_relative_to(root):
            found.skipped.append((source, "it is a link that leads out of the folder"))


def _file(path: Path, source: str, found: Walk) -> None:
    try:
        status = path.stat()
    except OSError as error:
        found.failed.append((source, _reason(error)))
    else:
        if path.is_file():
            found.files.append(Found(path, source, status.st_size))
        else:
            # A pipe would be waited for.
            found.skipped.append((source, "it is no regular file"))


def is_unicode(name: str) -> bool:
    """Say whether a path can be written as UTF-8; a name may be any bytes on some systems."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _marked(folder: Path) -> bool:
    # Unlike a path's own method, this one is silent about a folder that may not be looked into.
    return any(os.path.exists(folder / mark) for mark in MARKS)


def _source(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _reason(error: OSError) -> str:
    return f"it cannot be read: {error.strerror or error}"
