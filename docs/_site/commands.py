"""MkDocs hook: fills in the reference of the command line, from Typer's commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

MARK = "<!-- commands -->"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the mark in a page by the reference of all commands."""
    return markdown.replace(MARK, "\n".join(commands())) if MARK in markdown else markdown


def commands() -> Iterator[str]:
    """Yield the lines of the reference: every command with its arguments and options."""
    import typer

    from casewright.serve.cli.commands import app

    yield from _command("casewright", typer.main.get_command(app), 2)


def _command(name: str, command: Any, level: int) -> Iterator[str]:
    """Yield the section of a command, then those of its subcommands.

    ``Any`` stands for a class of Typer that is not public.
    """
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    all_options = [p for p in command.params if p.param_type_name == "option"]
    options = [option for option in all_options if "--help" not in option.opts]
    subcommands = [(n, c) for n, c in getattr(command, "commands", {}).items() if not c.hidden]
    yield from ("#" * level + f" `{name}`", "", _text(command.help), "")
    words = [name, *map(_usage, arguments)]
    words += ["[OPTIONS]"] if options else []
    words += ["COMMAND …"] if subcommands else []
    yield from ("```text", " ".join(words), "```", "")
    described = [argument for argument in arguments if argument.help]
    if described:
        yield from ("| argument | |", "|---|---|")
        yield from (f"| `{_usage(arg)}` | {_cell(arg.help)} |" for arg in described)
        yield ""
    if options:
        context = command.context_class(command)
        yield from ("| option | | default |", "|---|---|---|")
        for option in options:
            yield f"| {_names(option, context)} | {_cell(option.help)} | {_default(option)} |"
        yield ""
    for subname, subcommand in subcommands:
        yield from _command(f"{name} {subname}", subcommand, level + 1)


def _usage(argument: Any) -> str:
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
    value = option.metavar or (kind if "|" in kind else kind.removesuffix(" range").upper())
    return f"{names} `{value}{' …' if option.multiple else ''}`"


def _default(option: Any) -> str:
    if option.required:
        return "required"
    value = option.default
    if value is None or value is False or value == () or callable(value):
        return "–"
    return f"`{option.opts[0]}`" if value is True else f"`{getattr(value, 'value', value)}`"


def _text(help_text: str | None) -> str:
    """Return a help text as Markdown: code in single backquotes, and no HTML."""
    return (help_text or "").replace("``", "`").replace("<", "&lt;").strip()


def _cell(help_text: str | None) -> str:
    return re.sub(r"\s+", " ", _text(help_text)).replace("|", "\\|")
