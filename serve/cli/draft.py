"""`casewright draft`: annotated messages proposed, and kept or dropped by a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson, ToolsOf

if TYPE_CHECKING:
    from casewright.finetune.queries.drafts import Drafts
    from casewright.finetune.queries.query_files import ResumedLines
    from casewright.serve.cli.own_tools import OwnTools

TEMPLATE, SMOLLM2 = "template", "smollm2"
#: As many are enough for ``finetune adapt``.
ENOUGH = 20


app = typer.Typer(add_completion=False)


@app.command("draft")
def draft(
    domain: ToolsOf,
    output: Annotated[
        Path, typer.Option(help="Where what is kept is added, JSON Lines.", metavar="FILE")
    ],
    generator: Annotated[
        str,
        typer.Option(
            help="Who words them: template makes them of the examples that the tools have; "
            "smollm2, local:FOLDER or a chat model as provider:model writes them.",
            metavar="NAME",
        ),
    ] = TEMPLATE,
    count: Annotated[int, typer.Option(min=1, max=500, help="At most how many to propose.")] = 40,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Keep all, without a question.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn.")] = 0,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="Deadline of a language model's call.")
    ] = 120.0,
    as_json: AsJson = False,
) -> None:
    """Propose annotated messages for your tools, to be kept or dropped one by one.

    Their plans can be run; what is nearly there already is left out. Run again, it goes on with
    what the file does not hold yet.
    """
    from casewright.finetune.queries.query_files import ResumedLines, check_output
    from casewright.serve.cli.output import print_json
    from casewright.serve.cli.own_tools import own_tools

    check_output(output)
    kept = ResumedLines(output)
    with own_tools(domain, None, None) as own:
        # The domain may read the very file that is added to.
        own = replace(own, queries=[*own.queries, *_annotated(kept.records, own)])
        made = _proposed(own, generator, count, seed, seconds)
    taken = sum(_kept(kept, made, yes=yes))
    there = len(kept.records) + taken
    following = [f"casewright draft --domain {domain} --output {output} --generator provider:model"]
    if there >= ENOUGH:
        following = [
            f"casewright finetune adapt --domain {domain} --input {output} --output adapter"
        ]
    told: dict[str, Any] = {
        "file": str(output),
        "proposed": len(made.records),
        "kept": taken,
        "messages": there,
        "left_out": {why.value: number for why, number in made.dropped.most_common()},
        "next": following,
    }
    if as_json:
        print_json(told)
        return
    left_out = ", ".join(f"{number} × {why}" for why, number in told["left_out"].items())
    typer.echo(
        f"{output}: {taken} of {len(made.records)} proposals were kept; it has {there} messages."
        + (f" Left out before: {left_out}." if left_out else "")
    )
    more = "" if there >= ENOUGH else f" {ENOUGH - there} more are enough to train on."
    typer.echo(
        f"Give the file to own_domain, and planners know them at once.{more} Next:\n"
        f"  {following[0]}"
    )


def _annotated(records: Sequence[dict[str, Any]], own: OwnTools) -> list[Any]:
    from casewright.planner import AnnotatedQuery

    known = {query.query for query in own.queries}
    return [AnnotatedQuery.read(one) for one in records if one["query"] not in known]


def _proposed(own: OwnTools, generator: str, count: int, seed: int, seconds: float) -> Drafts:
    from casewright.finetune.folds import SAME_GROUP
    from casewright.finetune.queries.drafts import template_drafts, worth_a_look
    from casewright.finetune.queries.query_writer import SeenQuestions

    drafts = [one.record() for one in template_drafts(own.toolbox, own.queries, seed)]
    seen = SeenQuestions(own.encoder, SAME_GROUP)
    seen.add([*(query.query for query in own.queries), *own.apart])
    if generator != TEMPLATE:
        drafts = _written(own, generator, drafts, count, seconds)
    return worth_a_look(drafts, own.toolbox, seen, count)


def _written(
    own: OwnTools, generator: str, drafts: Sequence[dict[str, Any]], count: int, seconds: float
) -> list[dict[str, Any]]:
    """Return what a language model writes, of the kinds of plans that templates have."""
    from casewright.finetune.queries.query_writer import QueryWriter, WriterSettings
    from casewright.planner import AnnotatedQuery
    from casewright.serve.cli.finetune.queries import fail, shown
    from casewright.stores.progress import note, progress_bar

    queries = [*own.queries, *(AnnotatedQuery.read(one) for one in drafts[:count])]
    writer = QueryWriter(_chat(generator), own.toolbox, queries, own.encoder, apart=own.apart)
    settings = WriterSettings(per_shape=-(-count // max(1, len(writer.wanted))), seconds=seconds)
    writer = QueryWriter(
        _chat(generator), own.toolbox, queries, own.encoder, settings, apart=own.apart
    )
    note(f"Asking {generator} for messages of {len(writer.wanted)} kinds of plans …")
    made: list[dict[str, Any]] = []
    with progress_bar("Writing", len(writer.wanted), show=shown(True)) as advance:
        report = writer.write(lambda record: made.append(dict(record)), (), advance)
    if report.stopped and not made:
        fail(f"Nothing was written. {report.stopped}")
    return made


def _chat(generator: str) -> Any:
    from casewright.planner import chat_model
    from casewright.planner.named import LOCAL, ModelSettings, local_model

    if generator != SMOLLM2 and ":" not in generator:
        raise InputError(
            f"There is no generator {generator!r}. Generators are: {TEMPLATE}, {SMOLLM2}, "
            f"{LOCAL}FOLDER, or a chat model as provider:model, for example openai:gpt-4o-mini."
        )
    if generator == SMOLLM2 or generator.startswith(LOCAL):
        from casewright.planner.local_chat import LocalChat

        return LocalChat.of(local_model(generator, ModelSettings()))
    return chat_model(generator)


def _kept(file: ResumedLines, made: Drafts, *, yes: bool) -> Sequence[bool]:
    """Show each proposal and write those that are kept; say of each whether it was."""
    from casewright.serve.cli.output import visible

    answers = []
    for number, record in enumerate(made.records, 1):
        if not yes:
            context = f"  {record['context']}" if record["context"] else ""
            plan = record["plan"].replace("\n", "\n    ")
            typer.echo(
                visible(f"{number}/{len(made.records)}  {record['query']}{context}\n    {plan}"),
                err=True,
            )
            answer = _answer()
            if answer == "q":
                break
        answers.append(yes or answer == "y")
        if answers[-1]:
            file.append(record)
    return answers


def _answer() -> str:
    """Return y, n or q as it is typed; q where nothing more is."""
    while True:
        try:
            typed = typer.prompt("Keep it? y/n, q ends", default="y", err=True).strip().lower()
        except typer.Abort:
            return "q"
        if typed[:1] in ("y", "n", "q"):
            return str(typed[:1])
