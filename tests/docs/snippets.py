"""Fenced blocks of the documentation's pages: how they are read, run and compared.

- ```` ```python ```` blocks of a page run in order, in one module, in a folder of the page's own; a
  ```` ```text ```` block right after one is its output.
- In ```` ```console ```` blocks, the lines ``$ casewright …`` run in that folder, with the shop's
  stores; the lines below them are printed in that order, and more may be printed.
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
    "The stated reason; ``None`` if the block is run."
    follows: bool
    "Only blank lines separate this block from the block before."

    def __str__(self) -> str:
        return f"{self.page.parent.name}/{self.page.name}:{self.line} ({self.language})"


def fences(page: Path) -> list[Fence]:
    """Return the fenced blocks of a page, including those in lists."""
    blocks: list[Fence] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    index, between = 0, ["the page's start"]
    while index < len(lines):
        opening = _OPENING.match(lines[index])
        if opening is None:
            between.append(lines[index])
            index += 1
            continue
        indent, start = len(opening["indent"]), index + 1
        while lines[index + 1].strip() != opening["ticks"]:
            index += 1
        mark = _MARK.match(between[-1]) if between else None
        title = _TITLE.search(opening["rest"])
        blocks.append(
            Fence(
                page,
                start,
                opening["language"],
                title[1] if title else "",
                "".join(line[indent:] + "\n" for line in lines[start : index + 1]),
                mark["reason"].strip() if mark else None,
                not any(line.strip() for line in between),
            )
        )
        index, between = index + 2, []
    return blocks


def line_pattern(line: str) -> str:
    """Return the regular expression for one shown line."""
    parts = [" ".join(part.split()) for part in line.split("…")]
    return ".*?".join(re.sub(r"\d+", r"\\d+", re.escape(part)) for part in parts)


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def difference(shown: str, printed: str) -> str:
    """Return how the shown text differs from the printed text, by line; empty if it does not."""
    pattern = "".join(
        r"(?:.*\n)?" if line == "…" else line_pattern(line) + r"\n" for line in _lines(shown)
    )
    lines = "".join(line + "\n" for line in _lines(printed))
    return (
        "" if re.fullmatch(pattern, lines, re.DOTALL) else f"shown:\n{shown}\nprinted:\n{printed}"
    )


def missing_line(shown: str, printed: str) -> str:
    """Return the first shown line that is not printed after those before it; empty if none.

    Lines may be broken elsewhere: a terminal has its own width.
    """
    rest = " ".join(printed.split())
    for line in _lines(shown):
        match = re.search(rf"(?<!\S){line_pattern(line)}(?!\S)", rest) if line != "…" else None
        if line != "…" and match is None:
            return f"not printed, or not in this place: {line}\nprinted:\n{printed}"
        rest = rest[match.end() :] if match else rest
    return ""


#: A function that runs a command in a folder, and returns its exit status and output.
Runner = Callable[[Command, Path], tuple[int, str]]


def run_page(page: Path, folder: Path, run: Runner) -> None:
    """Run the blocks of a page in their order.

    Raises:
        AssertionError: A block failed or printed other text; the message names it.
    """
    # Classes and annotations are looked up by the name of their module.
    module = ModuleType(f"page_{page.stem.replace('-', '_')}")
    last: str | None = None
    so_far = ""
    with _registered(module), contextlib.chdir(folder):
        for fence in fences(page):
            if fence.language == "text" and fence.follows and last is not None:
                problem = difference(fence.text, last)
                # The text may also be the output of all blocks in a row.
                assert not problem or not difference(fence.text, so_far), f"{fence}: {problem}"
            in_a_row = fence.follows and last is not None and fence.language == "python"
            last, so_far = None, so_far if in_a_row else ""
            if fence.not_run is not None:
                continue
            if fence.language in ("toml", "json"):
                (tomllib if fence.language == "toml" else json).loads(fence.text)
            if fence.title:
                path = folder / fence.title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(fence.text, encoding="utf-8")
            elif fence.language == "python":
                last = _execute_block(fence, module)
                so_far += last
            elif fence.language == "console":
                _run_console(fence, folder, run)


@contextlib.contextmanager
def _registered(module: ModuleType) -> Iterator[None]:
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        del sys.modules[module.__name__]


def _execute_block(fence: Fence, module: ModuleType) -> str:
    # Errors name the lines of the page.
    code = compile("\n" * fence.line + fence.text, str(fence.page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(code, module.__dict__)
        except Exception as error:
            raise AssertionError(f"{fence}: {type(error).__name__}: {error}") from error
    return out.getvalue()


def _run_console(fence: Fence, folder: Path, run: Runner) -> None:
    for line, shown in typed_lines(fence.text):
        for command in commands_of(line):
            assert command.arguments[:1] != ("serve",), f"{fence}: it does not end; mark it"
            code, printed = run(command, folder)
            assert code == 0, f"{fence}: {line}\nended with {code}:\n{printed}"
            problem = missing_line(shown, printed)
            assert not problem, f"{fence}: {line}\n{problem}"


def typed_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command line of a console with the output that is shown below it."""
    for part in re.split(r"(?m)^\$ ", text.replace("\\\n", " "))[1:]:
        line, _, output = part.partition("\n")
        yield line, output
