"""The command `casewright chat`: a conversation in a terminal or from a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, suppress

from typer import Context, Typer, echo

from casewright.errors import CasewrightError
from casewright.serve.cli import options
from casewright.serve.cli.domain_options import ConversationCommand, DomainValues
from casewright.serve.cli.options import Flags, with_flags
from casewright.serve.cli.output import visible

app = Typer(add_completion=False)
#: A line that begins with this word sets the context, which follows as JSON.
CONTEXT_COMMAND = "/context"


@app.command(cls=ConversationCommand)
@with_flags("domain", "planner", "generator", "encoder")
def chat(
    command: Context,
    flags: Flags,
    scope: options.Scope = None,
    tenant: options.Tenant = None,
    context: options.ContextText = None,
    history: options.HistoryFile = None,
    config: options.ConfigFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Answer the questions of a conversation, each with the earlier turns as its history.

    A line is a question; "/context JSON" sets the context of the following questions. An empty line
    or Ctrl-D ends the conversation. With --json, each answer is one line of JSON.
    """
    from langgraph.checkpoint.memory import InMemorySaver

    from casewright.planner.request import check_question
    from casewright.serve.cli.waiting import ask_user
    from casewright.serve.session.choice import read_chosen_parts
    from casewright.serve.session.dialogue import Dialogue
    from casewright.serve.session.option_values import command_scope, read_context, read_history
    from casewright.serve.session.session import open_chosen

    context_fields, turns = read_context(context), read_history(history)
    domain_values: DomainValues = command.obj
    chosen = read_chosen_parts(config, domain_values.domain, **flags)
    user_scope = command_scope(domain_values.domain.scopes, scope, domain_values.scope, tenant)
    with closing(open_chosen(chosen, user_scope, domain_values.opening)) as session:
        graph = session.graph(chosen.generator, InMemorySaver())
        dialogue = Dialogue(graph, user_scope, turns, get_replies=ask_user)
        for line in _read_lines():
            try:
                if line.split()[0] == CONTEXT_COMMAND:
                    context_text = line.removeprefix(CONTEXT_COMMAND).strip()
                    context_fields = read_context(context_text or None)
                    continue
                check_question(line)
                answer = dialogue.ask(line, context_fields)["answer"]
            except CasewrightError as error:
                echo(visible(f"error: {error}"), err=True)
                continue
            # json.dumps escapes line ends and the characters that move a terminal's cursor.
            echo(json.dumps(answer) if as_json else visible(answer["text"]) + "\n")


def _read_lines() -> Iterator[str]:
    """Yield lines from the terminal or a pipe, up to an empty line or the end of the input."""
    is_terminal = sys.stdin.isatty()
    if hasattr(sys.stdin, "reconfigure"):
        # With this error handler, invalid UTF-8 in a line does not end the conversation.
        sys.stdin.reconfigure(errors="surrogateescape")
    with suppress(EOFError):
        while line := (input("> ") if is_terminal else sys.stdin.readline()).strip():
            yield line
