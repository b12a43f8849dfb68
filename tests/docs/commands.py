"""Command lines of the documentation's pages, checked against the program's commands."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_OPERATORS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "(", ")"}
_VARIABLE = re.compile(r"[A-Z_]+=")
_OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
#: A placeholder for the name of a command.
_ANY = re.compile(r"[A-Z…\[].*")


@dataclass(frozen=True)
class Command:
    """One call of ``casewright``: its variables, its piped input and its arguments."""

    variables: dict[str, str]
    piped: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(("casewright", *self.arguments))


def commands_of(line: str) -> Iterator[Command]:
    """Yield the calls of ``casewright`` on a shell's line, with the input from ``printf``."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.commenters = "#"
    reader.whitespace_split = True
    words: list[str] = []
    piped = ""
    for word in [*reader, ";"]:
        if word not in _OPERATORS:
            words.append(word)
            continue
        start = next((n for n, item in enumerate(words) if not _VARIABLE.match(item)), len(words))
        if words[start : start + 1] == ["casewright"]:
            pairs = (item.partition("=") for item in words[:start])
            yield Command({n: v for n, _, v in pairs}, piped, tuple(words[start + 1 :]))
        is_text = words[:1] == ["printf"] and word == "|"
        piped = words[1].replace("\\n", "\n") if is_text else ""
        words = []


def mistake(words: list[str]) -> str:
    """Return the mistake in the words of a call after ``casewright``; empty if there is none.

    Placeholders are accepted: ``NAME`` or ``…`` for a command, anything for an argument.
    """
    path, command, rest = _find_command(words)
    if hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        return "" if _ANY.fullmatch(rest[0]) else f"no command {path} {rest[0]}"
    options = {option for word in rest for option in _OPTION.findall(word.split("=")[0])}
    unknown = sorted(options - _options(command))
    return f"{path} has no option {', '.join(unknown)}" if unknown else ""


def options_of(words: list[str]) -> set[str]:
    """Return the options of the command that a call's words name."""
    return _options(_find_command(words)[1])


def _find_command(words: list[str]) -> tuple[str, Any, list[str]]:
    """Return the path and the command of a call, and the words after them."""
    path, command, rest = "casewright", program(), list(words)
    while hasattr(command, "commands") and rest and rest[0] in command.commands:
        name = rest.pop(0)
        path, command = f"{path} {name}", command.commands[name]
    return path, command, rest


def _options(command: Any) -> set[str]:
    options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    return options | {"--help", "-h"} | (_extras() if command.name in ("ask", "chat") else set())


@functools.cache
def _extras() -> set[str]:
    """Return the options that domains add."""
    from casewright.domains import domain_names, find_domain

    domains = [find_domain(name) for name in domain_names()]
    names = {name for item in domains for name in (*item.scopes, *(o.name for o in item.options))}
    return {f"--{name}" for name in names}


@functools.cache
def program() -> Any:
    """Return all commands; Typer has its own click, so callers check attributes, not types."""
    import typer

    from casewright.serve.cli.commands import app

    return typer.main.get_command(app)
