"""Fills in the reference of the command line, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

MARK = "<!-- commands -->"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the commands where the mark is."""
    return markdown.replace(MARK, "\n".join(commands())) if MARK in markdown else markdown


def commands() -> Iterator[str]:
    """Yield the lines that tell every command with its arguments and options."""
    import typer

    from casewright.serve.cli.commands import app

    yield from _command("casewright", typer.main.get_command(app), 2)


def _command(name: str, command: Any, level: int) -> Iterator[str]:
    """Tell one command, and those below it. Typer has its own classes, none of them public."""
    below = {key: one for key, one in getattr(command, "commands", {}).items() if not one.hidden}
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [
        one
        for one in command.params
        if one.param_type_name == "option" and "--help" not in one.opts
    ]
    yield from ("#" * level + f" `{name}`", "", _text(command.help), "")
    words = [name, *(_shown(one) for one in arguments)]
    words += ["[OPTIONS]"] if options else []
    words += ["COMMAND …"] if below else []
    yield from ("```text", " ".join(words), "```", "")
    described = [one for one in arguments if one.help]
    if described:
        yield from ("| argument | |", "|---|---|")
        yield from (f"| `{_shown(one)}` | {_cell(one.help)} |" for one in described)
        yield ""
    if options:
        context = command.context_class(command)
        yield from ("| option | | default |", "|---|---|---|")
        yield from (
            f"| {_names(one, context)} | {_cell(one.help)} | {_default(one)} |" for one in options
        )
        yield ""
    for key, one in below.items():
        yield from _command(f"{name} {key}", one, level + 1)


def _shown(argument: Any) -> str:
    word = (argument.metavar or argument.name).upper()
    if argument.nargs != 1:
        word += " …"
    return word if argument.required else f"[{word}]"


def _names(option: Any, context: Any) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    if option.secondary_opts:
        return f"{names} / " + ", ".join(f"`{name}`" for name in option.secondary_opts)
    if option.is_flag:
        return names
    kind = option.display_type(context).strip("<>")
    given = option.metavar or (kind if "|" in kind else kind.removesuffix(" range").upper())
    again = " …" if option.multiple else ""
    return f"{names} `{given}{again}`"


def _default(option: Any) -> str:
    if option.required:
        return "must be given"
    value = option.default
    if value is None or value is False or value == () or callable(value):
        return "–"
    return f"`{option.opts[0]}`" if value is True else f"`{getattr(value, 'value', value)}`"


def _text(help_text: str | None) -> str:
    """Return a help text as Markdown: ``code`` as in docstrings, no sign of its own."""
    return (help_text or "").replace("``", "`").replace("<", "&lt;").strip()


def _cell(help_text: str | None) -> str:
    return re.sub(r"\s+", " ", _text(help_text)).replace("|", "\\|")
