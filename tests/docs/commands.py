"""Command lines of the documentation's pages, and whether the program has such commands."""

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
#: Stands for a command's name.
_ANY = re.compile(r"[A-Z…\[].*")


@dataclass(frozen=True)
class Command:
    """One call of ``casewright`` as it is typed: variables, what is piped in, arguments."""

    variables: dict[str, str]
    piped: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(("casewright", *self.arguments))


def commands_of(line: str) -> Iterator[Command]:
    """Yield the calls of ``casewright`` on a shell's line, with what ``printf`` pipes into them."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.commenters = "#"
    reader.whitespace_split = True
    words: list[str] = []
    piped = ""
    for word in [*reader, ";"]:
        if word not in _OPERATORS:
            words.append(word)
            continue
        start = next((n for n, one in enumerate(words) if not _VARIABLE.match(one)), len(words))
        if words[start : start + 1] == ["casewright"]:
            pairs = (one.partition("=") for one in words[:start])
            yield Command({n: v for n, _, v in pairs}, piped, tuple(words[start + 1 :]))
        is_text = words[:1] == ["printf"] and word == "|"
        piped = words[1].replace("\\n", "\n") if is_text else ""
        words = []


def mistakes(words: list[str]) -> str:
    """Say what is wrong with a call's words, ``casewright`` left out; empty if nothing is.

    Placeholders are let through: ``NAME`` or ``…`` for a command, anything for an argument.
    """
    path, command, rest = _called(words)
    if hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        return "" if _ANY.fullmatch(rest[0]) else f"no command {path} {rest[0]}"
    given = {found for word in rest for found in _OPTION.findall(word.split("=")[0])}
    unknown = sorted(given - _options(command))
    return f"{path} has no option {', '.join(unknown)}" if unknown else ""


def options_of(words: list[str]) -> set[str]:
    """Return the options of the command that a call's words name."""
    return _options(_called(words)[1])


def _called(words: list[str]) -> tuple[str, Any, list[str]]:
    """Return the command that is called, by its path, and the words after it."""
    path, command, rest = "casewright", program(), list(words)
    while hasattr(command, "commands") and rest and rest[0] in command.commands:
        name = rest.pop(0)
        path, command = f"{path} {name}", command.commands[name]
    return path, command, rest


def _options(command: Any) -> set[str]:
    named = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    return named | {"--help", "-h"} | (_of_domains() if command.name in ("ask", "chat") else set())


@functools.cache
def _of_domains() -> set[str]:
    """Return the options that domains add."""
    from casewright.domains import domain_names, find_domain

    known = [find_domain(name) for name in domain_names()]
    names = {name for one in known for name in (*one.scopes, *(o.name for o in one.options))}
    return {f"--{name}" for name in names}


@functools.cache
def program() -> Any:
    """Return all commands. Typer brings a click of its own: they are told by what they have."""
    import typer

    from casewright.serve.cli.commands import app

    return typer.main.get_command(app)
