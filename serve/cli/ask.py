"""`casewright ask`: one question, or what a domain answers without one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from casewright.errors import InputError
from casewright.serve.cli.domain_options import DomainCommand, OfDomain
from casewright.serve.cli.flags import OPTIONS, Flags, with_flags
from casewright.serve.cli.options import (
    AsJson,
    ConfigFile,
    ContextText,
    Examples,
    HistoryFile,
    Scope,
    Tenant,
)
from casewright.serve.cli.show import check_run_file

if TYPE_CHECKING:
    from casewright.planner.chat_call import Chat

app = typer.Typer(add_completion=False)


@app.command(cls=DomainCommand)
@with_flags(*OPTIONS)
def ask(
    command: typer.Context,
    flags: Flags,
    question: Annotated[
        str | None, typer.Argument(help="What you want to know; or give options of the domain.")
    ] = None,
    scope: Scope = None,
    tenant: Tenant = None,
    context: ContextText = None,
    history: HistoryFile = None,
    examples: Examples = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Also save the run; casewright show opens it.", metavar="FILE"),
    ] = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question: plan, look up, and word an answer that cites its evidence.

    A domain adds options of its own, which casewright domains lists.
    """
    from casewright.planner.request import check_question
    from casewright.serve.session.chosen import chosen
    from casewright.stores.encoders.sources import default_encoder, preload

    if save is not None:
        check_run_file(save)
    of: OfDomain = command.obj
    using = chosen(config, of.domain, **flags)
    if question is None and save is None and of.own:
        _ask_without_question(of, using.generator, as_json=as_json)
        return
    if question is None or of.own:
        raise InputError(_both(of))
    check_question(question)
    if using.encoder is None:
        # Beside the imports that follow, which take as long.
        preload(default_encoder())
    from casewright.serve.cli.output import print_answer, print_json
    from casewright.serve.session.dialogue import Dialogue, read_context, read_history
    from casewright.serve.session.scopes import asker_of
    from casewright.serve.session.session import open_chosen

    known, said = read_context(context), read_history(history)
    asker = asker_of(of.domain.scopes, scope, of.scope, tenant)
    session = open_chosen(using, asker, of.opening, examples=examples)
    try:
        result = Dialogue(session.graph(using.generator), asker, said).ask(question, known)
    finally:
        session.close()
    if save is not None:
        from casewright.graph import Answer
        from casewright.graph.run_file import save_run

        save_run(save, Answer.from_state(result), question)
    (print_json if as_json else print_answer)(result["answer"])


def _both(of: OfDomain) -> str:
    """Say what goes with a question, and what goes without one."""
    own = [one for one in of.domain.options if one.name not in of.domain.openers]
    if not own:
        return "Give a question."
    more = ", ".join(f"--{one.name}" for one in own[1:])
    return (
        f"Give a question, or --{own[0].name} {own[0].metavar} without one; {more} go with "
        f"--{own[0].name}, --save goes with a question."
    )


def _ask_without_question(of: OfDomain, generator: str, *, as_json: bool) -> None:
    """Let the domain answer its own options, and print the answer.

    Raises:
        InputError: What they name cannot be used.
    """
    from casewright.domains.own_answer import OwnRequest
    from casewright.serve.cli.output import print_json
    from casewright.serve.session.place import place_of
    from casewright.stores import default_encoder

    assert of.domain.answer is not None
    chat = _chat(generator)
    request = OwnRequest(of.own, chat, generator) if chat else OwnRequest(of.own)
    opened = of.domain.open(place_of(of.domain.name, None), default_encoder(), False)
    try:
        found = of.domain.answer(opened, request)
    finally:
        opened.close()
    if as_json:
        print_json(found.told)
        return
    for line in found.lines:
        typer.echo(line)


def _chat(generator: str) -> Chat | None:
    from casewright.graph.named import EXTRACTIVE, check_generator

    check_generator(generator)
    if generator == EXTRACTIVE:
        return None
    from casewright.planner import chat_model
    from casewright.planner.chat_call import chat_text

    return chat_text(chat_model(generator))
