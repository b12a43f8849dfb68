"""The commands `casewright ask`, which answers a question, and `show`, which prints a saved run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Context, Option, Typer, echo

from casewright.errors import InputError
from casewright.serve.cli import options
from casewright.serve.cli.domain_options import DomainCommand, DomainValues, gc_paused
from casewright.serve.cli.options import Flags, with_flags
from casewright.serve.cli.output import check_new_file, print_answer, print_json, print_run

app = Typer(add_completion=False)


@app.command(cls=DomainCommand)
@with_flags("domain", "planner", "adapter", "device", "dtype", "generator", "encoder", "feedback")
def ask(
    command: Context,
    flags: Flags,
    question: Annotated[
        str | None, Argument(help="The question; a domain may have options that replace it.")
    ] = None,
    scope: options.Scope = None,
    tenant: options.Tenant = None,
    context: options.ContextText = None,
    history: options.HistoryFile = None,
    examples: options.Examples = None,
    budget: options.Budget = None,
    full: Annotated[
        bool, Option("--full", help="Quote whole results, if no language model writes the answer.")
    ] = False,
    approve: options.Approve = False,
    approve_above: Annotated[
        list[str] | None,
        Option(help="Like --approve, but only above this price.", metavar="NAME=NUMBER"),
    ] = None,
    dry_run: options.DryRun = False,
    save: options.SaveRun = None,
    mend: Annotated[
        str,
        Option(help="When to replan once: failure, empty (failed or empty steps), or off."),
    ] = "off",
    corrections: Annotated[
        Path | None,
        Option(help="Add a mended run's plan to this file of annotated messages.", metavar="FILE"),
    ] = None,
    deadline: Annotated[
        float | None, Option(help="Time limit; then answer from what was found.", metavar="SECONDS")
    ] = None,
    config: options.ConfigFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Answer a question: plan, run the plan, and write an answer that cites its evidence.

    A domain adds its own options, which casewright domains lists.
    """
    from casewright.planner.request import check_question
    from casewright.serve.session.choice import read_chosen_parts
    from casewright.stores.encoders.sources import default_encoder, preload

    check_new_file("--save", save)
    values: DomainValues = command.obj
    chosen = read_chosen_parts(config, values.domain, **flags)
    if question is None and save is None and values.question_replacements:
        _ask_without_question(values, chosen.generator, as_json=as_json)
        return
    if question is None or values.question_replacements:
        raise InputError(_usage(values))
    check_question(question)
    if chosen.encoder is None:
        # A thread loads the encoder while the imports below run.
        preload(default_encoder())
    with gc_paused():
        from langgraph.checkpoint.memory import InMemorySaver

        from casewright.serve.cli.waiting import ask_user, print_dry_run
        from casewright.serve.session import option_values
        from casewright.serve.session.dialogue import Dialogue
        from casewright.serve.session.session import open_chosen

    fields, turns = option_values.read_context(context), option_values.read_history(history)
    if corrections is not None and mend == "off":
        raise InputError(
            "--corrections keeps the plans of mended runs. Give --mend too: empty or failure."
        )
    save_correction = _correction_writer(corrections)
    user_scope = option_values.command_scope(values.domain.scopes, scope, values.scope, tenant)
    limits = option_values.read_budget("--budget", budget)
    approval_limits = option_values.read_budget("--approve-above", approve_above)
    if dry_run and (save is not None or approve or approve_above):
        raise InputError("--dry-run runs nothing. Leave out --save, --approve, --approve-above.")
    with closing(open_chosen(chosen, user_scope, values.opening, examples=examples)) as session:
        if dry_run:
            print_dry_run(session, question, fields, turns, limits, as_json=as_json)
            return
        graph = session.graph(
            chosen.generator, InMemorySaver(), full=full, mend=mend, retain=save_correction
        )
        # "declared": approve only plans with a tool that declares ``approval``.
        policy: Any = "always" if approve else approval_limits or "declared"
        if deadline is not None:
            limits = {**limits, "deadline": deadline}
        dialogue = Dialogue(
            graph, user_scope, turns, get_replies=ask_user, limits=limits, approve=policy
        )
        result = dialogue.ask(question, fields)
    print_run(result, question, save, as_json=as_json)


def _correction_writer(file: Path | None) -> Callable[[Mapping[str, Any]], object] | None:
    """Return a function that adds a record to the annotated messages in a file, or ``None``."""
    if file is None:
        return None
    from casewright.finetune.queries.correction import keep_correction
    from casewright.finetune.queries.drafts import message_id
    from casewright.finetune.queries.query_files import check_output

    check_output(file)
    return lambda record: keep_correction(file, {"id": message_id("m", record), **record})


def _usage(values: DomainValues) -> str:
    """Return an error message that says which options go with a question, and which without one."""
    domain = values.domain
    # The options in ``openers`` go with or without a question: they choose the stores.
    own_options = [option for option in domain.options if option.name not in domain.openers]
    if not own_options:
        return "Give a question."
    first, other_names = own_options[0], [f"--{option.name}" for option in own_options[1:]]
    return (
        f"Give a question, or --{first.name} {first.metavar} without one; {', '.join(other_names)} "
        f"go with --{first.name}, --save goes with a question."
    )


def _ask_without_question(values: DomainValues, generator: str, *, as_json: bool) -> None:
    """Print the domain's answer to the options that need no question."""
    from casewright.domains.own_answer import OwnRequest
    from casewright.graph.named import EXTRACTIVE, check_generator
    from casewright.planner import chat_model
    from casewright.planner.chat_call import chat_text
    from casewright.serve.session.defaults import open_stores

    assert values.domain.answer is not None
    check_generator(generator)
    request = OwnRequest(values.question_replacements)
    if generator != EXTRACTIVE:
        chat = chat_text(chat_model(generator))
        request = OwnRequest(values.question_replacements, chat, generator)
    with closing(open_stores(values.domain)) as opened:
        answer = values.domain.answer(opened, request)
    if as_json:
        print_json(answer.record)
        return
    for line in answer.lines:
        echo(line)


@app.command()
def show(
    file: Annotated[Path, Argument(help="File that casewright ask --save wrote.", metavar="FILE")],
    as_json: options.AsJson = False,
) -> None:
    """Show a saved run: the question, then plan, answer and evidence as ask printed them.

    No step runs again. With --json, print only the answer, as ask --json did.
    """
    from casewright.graph.run_file import read_run

    run = read_run(file)
    if as_json:
        print_json(run.answer.to_json())
    else:
        print_answer(run.answer.to_json(), run.question)
