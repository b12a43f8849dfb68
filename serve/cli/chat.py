"""`casewright chat`: a conversation at a prompt, or piped."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import typer

from casewright.errors import CasewrightError
from casewright.serve.cli.domain_options import ConversationCommand, OfDomain
from casewright.serve.cli.flags import Flags, with_flags
from casewright.serve.cli.options import (
    AsJson,
    ConfigFile,
    ContextText,
    HistoryFile,
    Scope,
    Tenant,
)

app = typer.Typer(add_completion=False)
#: Before a line that says what is open now, as JSON.
CONTEXT = "/context"


@app.command(cls=ConversationCommand)
@with_flags("domain", "planner", "generator", "encoder")
def chat(
    command: typer.Context,
    flags: Flags,
    scope: Scope = None,
    tenant: Tenant = None,
    context: ContextText = None,
    history: HistoryFile = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Answer one question after the other, each with those before it in mind.

    A line is a question; "/context JSON" says what page is open from now on. An empty line or
    Ctrl-D ends it. With --json, each answer is one line.
    """
    import json

    from casewright.planner.request import check_question
    from casewright.serve.cli.output import visible
    from casewright.serve.session.chosen import chosen
    from casewright.serve.session.dialogue import Dialogue, read_context, read_history
    from casewright.serve.session.scopes import asker_of
    from casewright.serve.session.session import open_chosen

    known, said = read_context(context), read_history(history)
    of: OfDomain = command.obj
    using = chosen(config, of.domain, **flags)
    asker = asker_of(of.domain.scopes, scope, of.scope, tenant)
    session = open_chosen(using, asker, of.opening)
    try:
        graph = session.graph(using.generator)
        dialogue = Dialogue(graph, asker, said)
        for line in _lines():
            try:
                if line.split()[0] == CONTEXT:
                    known = read_context(line.removeprefix(CONTEXT).strip() or None)
                    continue
                check_question(line)
                answer = dialogue.ask(line, known)["answer"]
            except CasewrightError as error:
                # What cannot be answered is told, and the next question can be asked.
                typer.echo(visible(f"error: {error}"), err=True)
                continue
            if as_json:
                # In ASCII nothing ends the line early or moves a terminal's cursor.
                typer.echo(json.dumps(answer))
            else:
                typer.echo(visible(answer["text"]) + "\n")
    finally:
        session.close()


def _lines() -> Iterator[str]:
    """Yield what is typed or piped, until an empty line or the end."""
    terminal = sys.stdin.isatty()
    if hasattr(sys.stdin, "reconfigure"):
        # What is no UTF-8 is told as such, and ends nothing.
        sys.stdin.reconfigure(errors="surrogateescape")
    while True:
        try:
            line = input("> ") if terminal else sys.stdin.readline()
        except EOFError:
            return
        if not line.strip():
            return
        yield line.strip()
