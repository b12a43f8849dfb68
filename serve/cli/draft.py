"""`casewright draft`: annotated messages proposed, and kept or dropped by a person."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Abort, Option, Typer, echo, prompt

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson, ToolsOf
from casewright.serve.cli.output import fail, print_json, visible
from casewright.serve.cli.own_tools import OwnTools, own_tools

if TYPE_CHECKING:
    from casewright.finetune.queries.drafts import Drafts
    from casewright.finetune.queries.query_files import ResumedLines

TEMPLATE, SMOLLM2 = "template", "smollm2"
#: Messages that are enough for ``finetune adapt``.
ENOUGH = 20

app = Typer(add_completion=False)


@app.command("draft")
def draft(
    domain: ToolsOf,
    output: Annotated[
        Path, Option(help="Where what is kept is added, JSON Lines.", metavar="FILE")
    ],
    generator: Annotated[
        str,
        Option(
            help="Who words them: template, of the tools' examples; smollm2, local:FOLDER or "
            "provider:model.",
            metavar="NAME",
        ),
    ] = TEMPLATE,
    count: Annotated[int, Option(min=1, max=500, help="At most how many to propose.")] = 40,
    yes: Annotated[bool, Option("--yes", "-y", help="Keep all, without a question.")] = False,
    seed: Annotated[int, Option(min=0, help="Of what is drawn.")] = 0,
    seconds: Annotated[float, Option(min=0.1, help="Deadline of a language model's call.")] = 120.0,
    as_json: AsJson = False,
) -> None:
    """Propose annotated messages for your tools, to be kept or dropped one by one.

    Their plans can be run, and messages similar to known ones are left out. Another run proposes
    what the file does not hold yet.
    """
    from casewright.finetune.queries.query_files import ResumedLines, check_output
    from casewright.planner import AnnotatedQuery

    check_output(output)
    file = ResumedLines(output)
    with own_tools(domain) as tools:
        known = {query.query for query in tools.queries}
        # The domain may read the same file.
        new = [AnnotatedQuery.read(r) for r in file.records if r["query"] not in known]
        tools = replace(tools, queries=[*tools.queries, *new])
        drafts = _proposals(tools, generator, count, seed, seconds)
    kept = _review(file, drafts, yes=yes)
    total = len(file.records) + kept
    following = [f"casewright draft --domain {domain} --output {output} --generator provider:model"]
    if total >= ENOUGH:
        following = [
            f"casewright finetune adapt --domain {domain} --input {output} --output adapter"
        ]
    facts: dict[str, Any] = {
        "file": str(output),
        "proposed": len(drafts.records),
        "kept": kept,
        "messages": total,
        "left_out": {why.value: number for why, number in drafts.dropped.most_common()},
        "next": following,
    }
    if as_json:
        print_json(facts)
        return
    left_out = ", ".join(f"{number} × {why}" for why, number in facts["left_out"].items())
    echo(
        f"{output}: {kept} of {len(drafts.records)} proposals were kept; it has {total} messages."
        + (f" Left out before: {left_out}." if left_out else "")
    )
    more = "" if total >= ENOUGH else f" {ENOUGH - total} more are enough to train on."
    echo(
        f"Give the file to own_domain, and planners know them at once.{more} Next:\n"
        f"  {following[0]}"
    )


def _proposals(tools: OwnTools, generator: str, count: int, seed: int, seconds: float) -> Drafts:
    from casewright.finetune.folds import SAME_GROUP
    from casewright.finetune.queries.drafts import template_drafts, worth_a_look
    from casewright.finetune.queries.query_writer import SeenQuestions

    records = [draft.record() for draft in template_drafts(tools.toolbox, tools.queries, seed)]
    seen = SeenQuestions(tools.encoder, SAME_GROUP)
    seen.add([*(query.query for query in tools.queries), *tools.apart])
    if generator != TEMPLATE:
        records = _written(tools, generator, records[:count], count, seconds)
    return worth_a_look(records, tools.toolbox, seen, count)


def _written(
    tools: OwnTools, generator: str, templates: Sequence[dict[str, Any]], count: int, seconds: float
) -> list[dict[str, Any]]:
    """Return messages that a language model writes, of the templates' kinds of plans."""
    from casewright.finetune.queries.query_writer import QueryWriter
    from casewright.planner import AnnotatedQuery
    from casewright.stores.progress import note, progress_bar

    queries = [*tools.queries, *(AnnotatedQuery.read(template) for template in templates)]
    chat = _chat(generator)
    writer = QueryWriter(
        chat, tools.toolbox, queries, tools.encoder, apart=tools.apart, seconds=seconds
    )
    kinds = len(writer.wanted)
    note(f"Asking {generator} for messages of {kinds} kinds of plans …")
    with progress_bar("Writing", kinds, show=sys.stderr.isatty()) as advance:
        report = writer.write(-(-count // max(1, kinds)), advance)
    if report.stopped and not report.records:
        fail(f"Nothing was written. {report.stopped}")
    return report.records


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

        return LocalChat(model=local_model(generator, ModelSettings()))
    return chat_model(generator)


def _review(file: ResumedLines, drafts: Drafts, *, yes: bool) -> int:
    """Show each proposal and write those that are kept; return how many."""
    kept = 0
    for number, record in enumerate(drafts.records, 1):
        if not yes:
            context = f"  {record['context']}" if record["context"] else ""
            plan = record["plan"].replace("\n", "\n    ")
            text = f"{number}/{len(drafts.records)}  {record['query']}{context}\n    {plan}"
            echo(visible(text), err=True)
            answer = _answer()
            if answer == "q":
                break
        if yes or answer == "y":
            file.append(record)
            kept += 1
    return kept


def _answer() -> str:
    """Return the typed y, n or q; q at the end of the input."""
    while True:
        try:
            typed = prompt("Keep it? y/n, q ends", default="y", err=True).strip().lower()
        except Abort:
            return "q"
        if typed[:1] in ("y", "n", "q"):
            return str(typed[:1])
