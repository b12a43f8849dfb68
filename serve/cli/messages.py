"""The commands `casewright draft` and `correct`: they write annotated messages, with plans."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Abort, Argument, Option, Typer, echo, prompt

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson, ContextText, DomainOrFile, HistoryFile, Seed
from casewright.serve.cli.output import fail, print_json, visible
from casewright.serve.cli.own_tools import OwnTools, own_tools

if TYPE_CHECKING:
    from casewright.finetune.queries.drafts import ReviewBatch
    from casewright.finetune.queries.query_files import QueryFile

#: Names of generators of proposals: one varies the tools' examples, the other is a language model.
TEMPLATE, SMOLLM2 = "template", "smollm2"
#: Minimum number of messages for ``finetune adapt``.
MIN_MESSAGES = 20

app = Typer(add_completion=False)


@app.command("draft")
def draft(
    domain: DomainOrFile,
    output: Annotated[
        Path, Option(help="The file for accepted messages, JSON Lines.", metavar="FILE")
    ],
    generator: Annotated[
        str,
        Option(
            help="The writer: template (varies the tools' examples), smollm2, local:FOLDER or "
            "provider:model.",
            metavar="NAME",
        ),
    ] = TEMPLATE,
    count: Annotated[int, Option(min=1, max=500, help="Limit of proposals.")] = 40,
    yes: Annotated[bool, Option("--yes", "-y", help="Accept all without a prompt.")] = False,
    seed: Seed = 0,
    seconds: Annotated[float, Option(min=0.1, help="Deadline of a language model's call.")] = 120.0,
    as_json: AsJson = False,
) -> None:
    """Propose annotated messages for your tools, for a person to accept or reject.

    The proposed plans are valid. No proposal is like a message of the domain or of the file.
    """
    from casewright.finetune.queries.query_files import QueryFile, check_output
    from casewright.planner import AnnotatedQuery

    check_output(output)
    file = QueryFile(output)
    with own_tools(domain) as tools:
        domain_messages = {query.query for query in tools.queries}
        # The domain may already read its queries from the same file.
        new_records = [r for r in file.records if r["query"] not in domain_messages]
        tools = replace(tools, queries=[*tools.queries, *map(AnnotatedQuery.read, new_records)])
        proposals = _make_proposals(tools, generator, count, seed, seconds)
    accepted_count = _review_proposals(file, proposals, accepts_all=yes)
    total_count = len(file.records) + accepted_count
    missing_count = max(0, MIN_MESSAGES - total_count)
    if missing_count:
        command = f"casewright draft --domain {domain} --output {output} --generator provider:model"
    else:
        command = f"casewright finetune adapt --domain {domain} --input {output} --output adapter"
    facts: dict[str, Any] = {
        "file": str(output),
        "proposed": len(proposals.records),
        "kept": accepted_count,
        "messages": total_count,
        "left_out": {reason.value: count for reason, count in proposals.rejected.most_common()},
        "next": [command],
    }
    if as_json:
        print_json(facts)
        return
    left_out = ", ".join(f"{count} × {reason}" for reason, count in facts["left_out"].items())
    echo(
        f"{output}: {accepted_count} of {len(proposals.records)} proposals were accepted; the file "
        f"has {total_count} messages." + (f" Not proposed: {left_out}." if left_out else "")
    )
    hint = f" Training needs {missing_count} more messages." if missing_count else ""
    echo(f"Pass the file to own_domain(): planners then use the messages.{hint} Next:\n  {command}")


@app.command("correct")
def correct(
    domain: DomainOrFile,
    output: Annotated[
        Path, Option(help="The file of annotated messages, JSON Lines.", metavar="FILE")
    ],
    question: Annotated[str | None, Argument(help="The question.")] = None,
    run: Annotated[
        Path | None, Option(help="A file of ask --save, in place of the question.", metavar="FILE")
    ] = None,
    plan: Annotated[
        list[str] | None,
        Option(help="A step of the right plan; repeatable; by default from stdin.", metavar="STEP"),
    ] = None,
    context: ContextText = None,
    history: HistoryFile = None,
    as_json: AsJson = False,
) -> None:
    """Turn a wrong plan into an annotated message: the question with its right plan.

    The message replaces a message with the same question in the file.
    """
    from casewright.finetune.queries.correction import correction_record, keep_correction
    from casewright.finetune.queries.query_files import check_output
    from casewright.graph.run_file import read_run
    from casewright.serve.session.option_values import read_context, read_history

    if (question is None) == (run is None):
        raise InputError("Give either the question or --run FILE.")
    check_output(output)
    context_fields, turns = read_context(context), read_history(history)
    if run is not None:
        saved = read_run(run)
        question = saved.question
        if not plan:
            echo(visible(f"{question}\n{saved.answer.plan}"), err=True)
    plan_text = "\n".join(plan or _read_steps())
    with own_tools(domain) as tools:
        record = correction_record(str(question), plan_text, tools.toolbox, context_fields, turns)
    outcome = keep_correction(output, record)
    if as_json:
        print_json({"file": str(output), "outcome": outcome, "message": record})
        return
    echo(f"{output}: {outcome}.")
    echo(
        "Planners whose domain reads that file use it at once. To train on it:\n"
        f"  casewright finetune adapt --domain {domain} --input {output} --output adapter"
    )


def _read_steps() -> list[str]:
    """Return the lines from stdin up to an empty line."""
    if sys.stdin.isatty():
        echo("The right plan, one step per line; an empty line ends it:", err=True)
    return [line.rstrip("\n") for line in takewhile(str.strip, sys.stdin)]


def _make_proposals(
    tools: OwnTools, generator: str, count: int, seed: int, seconds: float
) -> ReviewBatch:
    from casewright.finetune.folds import NEAR_DUPLICATE_SIMILARITY
    from casewright.finetune.queries.drafts import template_drafts, usable_drafts
    from casewright.finetune.queries.query_writer import SeenQuestions

    records = list(template_drafts(tools.toolbox, tools.queries, seed))
    seen_questions = SeenQuestions(tools.encoder, NEAR_DUPLICATE_SIMILARITY)
    seen_questions.add([*(query.query for query in tools.queries), *tools.held_out])
    if generator != TEMPLATE:
        records = _model_records(tools, generator, records[:count], count, seconds)
    return usable_drafts(records, tools.toolbox, seen_questions, count)


def _model_records(
    tools: OwnTools, generator: str, templates: Sequence[dict[str, Any]], count: int, seconds: float
) -> list[dict[str, Any]]:
    """Let a language model write messages with plans; queries and templates are its examples."""
    from casewright.finetune.queries.query_writer import QueryWriter
    from casewright.planner import AnnotatedQuery
    from casewright.stores.progress import note, progress_bar

    queries = [*tools.queries, *(AnnotatedQuery.read(template) for template in templates)]
    chat = _open_chat(generator)
    writer = QueryWriter(
        chat, tools.toolbox, queries, tools.encoder, excluded=tools.held_out, seconds=seconds
    )
    kind_count = len(writer.kinds)
    count_per_kind = ceil(count / max(1, kind_count))
    note(f"Asking {generator} for messages of {kind_count} kinds of plans …")
    with progress_bar("Writing", kind_count, show=sys.stderr.isatty()) as advance:
        report = writer.write(count_per_kind, advance)
    if report.stop_reason and not report.records:
        fail(f"Nothing was written. {report.stop_reason}")
    return report.records


def _open_chat(generator: str) -> Any:
    from casewright.planner import chat_model
    from casewright.planner.named import LOCAL, ModelSettings, local_model

    if generator != SMOLLM2 and ":" not in generator:
        raise InputError(
            f"There is no generator {generator!r}. Generators are: {TEMPLATE}, {SMOLLM2}, "
            f"{LOCAL}FOLDER, or a chat model as provider:model, for example openai:gpt-4o-mini."
        )
    if generator == SMOLLM2 or generator.startswith(LOCAL):
        from casewright.planner.local_chat import LocalChat

        return LocalChat(model=local_model(generator, ModelSettings()))
    return chat_model(generator)


def _review_proposals(file: QueryFile, proposals: ReviewBatch, *, accepts_all: bool) -> int:
    """Show each proposal, add the accepted ones to a file, and return how many were accepted."""
    accepted_count = 0
    for number, record in enumerate(proposals.records, 1):
        if not accepts_all:
            context = f"  {record['context']}" if record["context"] else ""
            plan = record["plan"].replace("\n", "\n    ")
            text = f"{number}/{len(proposals.records)}  {record['query']}{context}\n    {plan}"
            echo(visible(text), err=True)
            answer = _read_answer()
            if answer == "q":
                break
        if accepts_all or answer == "y":
            file.append(record)
            accepted_count += 1
    return accepted_count


def _read_answer() -> str:
    """Return the typed answer: y, n or q; q at the end of the input."""
    while True:
        try:
            typed = prompt("Accept it? y or n; q quits", default="y", err=True).strip().lower()
        except Abort:
            return "q"
        if typed[:1] in ("y", "n", "q"):
            return str(typed[:1])
