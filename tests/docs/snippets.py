"""Fences of the documentation's pages: what they are, how they are run, and what they print.

- ```` ```python ```` blocks of a page run in order, in one module, in a folder of the page's own; a
  ```` ```text ```` block right after one is what it prints.
- Of ```` ```console ```` blocks the lines ``$ casewright …`` run in that folder, in a home with the
  shop's stores; what is shown below them is printed in that order, and more may be printed.
- Any block with ``title="FILE"`` is written to that file, and not run.
- ``<!-- not run: REASON -->`` on the line before keeps a block from being run.

Digits stand for any digits, ``…`` for anything, any white space for any other.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.docs.commands import Command, commands_of

ROOT = Path(__file__).parents[2]
_OPENING = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>\w*) *(?P<rest>.*)$")
_MARK = re.compile(r"^ *<!-- not run:(?P<reason>.*)-->$")
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Fence:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str
    text: str
    not_run: str | None
    "The reason that is given; ``None`` where the block is run."
    follows: bool
    "Nothing but blank lines stands between it and the block before."

    def __str__(self) -> str:
        return f"{self.page.parent.name}/{self.page.name}:{self.line} ({self.language})"


def fences(page: Path) -> list[Fence]:
    """Read the fenced blocks of a page, those of lists too."""
    found: list[Fence] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    at, between = 0, ["the page's start"]
    while at < len(lines):
        opening = _OPENING.match(lines[at])
        if opening is None:
            between.append(lines[at])
            at += 1
            continue
        indent, start = len(opening["indent"]), at + 1
        while lines[at + 1].strip() != opening["ticks"]:
            at += 1
        mark = _MARK.match(between[-1]) if between else None
        title = _TITLE.search(opening["rest"])
        found.append(
            Fence(
                page,
                start,
                opening["language"],
                title[1] if title else "",
                "".join(line[indent:] + "\n" for line in lines[start : at + 1]),
                mark["reason"].strip() if mark else None,
                not any(line.strip() for line in between),
            )
        )
        at, between = at + 2, []
    return found


def loosely(shown: str) -> str:
    """Return the pattern of one line that is shown."""
    parts = [" ".join(part.split()) for part in shown.split("…")]
    return ".*?".join(re.sub(r"\d+", r"\\d+", re.escape(part)) for part in parts)


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def differs(shown: str, printed: str) -> str:
    """Say how what is shown differs from what was printed, line by line; empty if it does not."""
    pattern = "".join(
        r"(?:.*\n)?" if line == "…" else loosely(line) + r"\n" for line in _lines(shown)
    )
    there = "".join(line + "\n" for line in _lines(printed))
    return (
        "" if re.fullmatch(pattern, there, re.DOTALL) else f"shown:\n{shown}\nprinted:\n{printed}"
    )


def lacks(shown: str, printed: str) -> str:
    """Say which shown line was not printed after those before it; empty if all were.

    Lines may be broken elsewhere: a terminal has its own width.
    """
    rest = " ".join(printed.split())
    for line in _lines(shown):
        found = re.search(rf"(?<!\S){loosely(line)}(?!\S)", rest) if line != "…" else None
        if line != "…" and found is None:
            return f"not printed, or not in this place: {line}\nprinted:\n{printed}"
        rest = rest[found.end() :] if found else rest
    return ""


#: Runs a command line in a folder: its exit status and what it printed.
Runner = Callable[[Command, Path], tuple[int, str]]


def run_page(page: Path, folder: Path, run: Runner) -> None:
    """Run the blocks of a page in their order.

    Raises:
        AssertionError: One failed or printed something else; the message says which.
    """
    # As a module of its own: classes and annotations are looked up by a module's name.
    module = ModuleType(f"page_{page.stem.replace('-', '_')}")
    last: str | None = None
    so_far = ""
    with _known(module), contextlib.chdir(folder):
        for fence in fences(page):
            if fence.language == "text" and fence.follows and last is not None:
                problem = differs(fence.text, last)
                # Of several blocks in a row it may be what all of them print.
                assert not problem or not differs(fence.text, so_far), f"{fence}: {problem}"
            in_a_row = fence.follows and last is not None and fence.language == "python"
            last, so_far = None, so_far if in_a_row else ""
            if fence.not_run is not None:
                continue
            if fence.language in ("toml", "json"):
                (tomllib if fence.language == "toml" else json).loads(fence.text)
            if fence.title:
                place = folder / fence.title
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(fence.text, encoding="utf-8")
            elif fence.language == "python":
                last = _executed(fence, module)
                so_far += last
            elif fence.language == "console":
                _typed(fence, folder, run)


@contextlib.contextmanager
def _known(module: ModuleType) -> Iterator[None]:
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        del sys.modules[module.__name__]


def _executed(fence: Fence, module: ModuleType) -> str:
    # Errors tell the page's own lines.
    code = compile("\n" * fence.line + fence.text, str(fence.page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(code, module.__dict__)
        except Exception as error:
            raise AssertionError(f"{fence}: {type(error).__name__}: {error}") from error
    return out.getvalue()


def _typed(fence: Fence, folder: Path, run: Runner) -> None:
    for line, shown in typed(fence.text):
        for command in commands_of(line):
            assert command.arguments[:1] != ("serve",), f"{fence}: it does not end; mark it"
            code, printed = run(command, folder)
            assert code == 0, f"{fence}: {line}\nended with {code}:\n{printed}"
            problem = lacks(shown, printed)
            assert not problem, f"{fence}: {line}\n{problem}"


def typed(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a console that were typed, each with what is shown below it."""
    for part in re.split(r"(?m)^\$ ", text.replace("\\\n", " "))[1:]:
        line, _, shown = part.partition("\n")
        yield line, shown
