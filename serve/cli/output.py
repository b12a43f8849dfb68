"""Output of commands: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NoReturn

from typer import Exit, echo

from casewright.errors import InputError

STATUS_MARKS = {"done": "✓", "empty": "∅", "failed": "✗", "timed_out": "⏱", "skipped": "↷"}
#: The text for each reason why a feedback loop stopped.
STOP_REASONS = {
    "settled": "nothing more was relevant",
    "nothing_relevant": "nothing was relevant; the first search's results are shown, unconfirmed",
    "exhausted": "nothing unseen was left",
    "rounds": "the limit of rounds was reached",
    "candidates": "the limit of candidates was reached",
    "tokens": "the limit of tokens was reached",
    "deadline": "the time limit was reached",
    "judge_failed": "it ended, since the judge failed",
    "search_failed": "it ended, since a search failed",
}

# Characters that move a terminal's cursor or reverse text direction, and lone surrogates.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Return a text in which characters that could manipulate a terminal are replaced."""
    # Windows' line ends are harmless.
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n").removesuffix("\r"))


def fail(message: str) -> NoReturn:
    """Print an error message after a command's results, and exit with code 2."""
    echo(f"error: {message}", err=True)
    raise Exit(2)


def check_new_file(option: str, file: Path | None) -> None:
    """Raise ``InputError`` if a file cannot be written; commands call this before long work."""
    if file is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
        raise InputError(f"{option} {file} cannot be written. Give a file in a folder that exists.")


def print_json(value: Any) -> None:
    """Print one JSON value on stdout."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # JSON has already escaped the line ends in texts; the other line ends are the layout.
    sys.stdout.write(_UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")


def print_facts(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print named values as JSON, or as a table for people."""
    if as_json:
        print_json(facts)
    else:
        print_table(["name", "value"], [[name, str(value)] for name, value in facts.items()])


def print_run(state: Mapping[str, Any], question: str, save: Path | None, *, as_json: bool) -> None:
    """Print the answer in a graph's final state, and save the run to a file if one is given."""
    if save is not None:
        from casewright.graph import Answer
        from casewright.graph.run_file import save_run

        save_run(save, Answer.from_state(state), question)
    (print_json if as_json else print_answer)(state["answer"])


def print_answer(answer: Mapping[str, Any], question: str = "") -> None:
    """Print an answer for people: question, plan with its steps, text and cited evidence."""
    from rich import markup
    from rich.console import Console
    from rich.table import Table

    from casewright.graph.answer import clarification

    def escape(text: str) -> str:
        return markup.escape(visible(text))

    console = Console(highlight=False)
    if question:
        console.print("[bold]Question[/bold]")
        console.print(escape(question) + "\n")
    steps = Table("", "step", "ms", "results", box=None, pad_edge=False, header_style="dim")
    for line, step in zip(answer["plan"].split("\n"), answer["steps"], strict=True):
        steps.add_row(
            STATUS_MARKS[step["status"]],
            escape(line),
            f"{step['milliseconds']:.0f}",
            f"{len(step['rows'])}" if step["status"] == "done" else escape(step["status"]),
        )
    console.print("[bold]Plan[/bold]")
    console.print(steps)
    if user_question := clarification(answer["planner"]):
        console.print(escape(f"\n{user_question}"))
    for step in answer["steps"]:
        lines = [line for report in step["reports"] if (line := _feedback_line(report))]
        if lines:
            console.print(f"\n[bold]Rounds of {escape(step['step'])}[/bold]")
        for line in lines:
            console.print(escape(line), soft_wrap=True)
    console.print("\n[bold]Answer[/bold]")
    for line in answer["text"].split("\n"):
        # Indented lines are code, and must not be wrapped.
        console.print(escape(line), soft_wrap=line[:1].isspace())
    cited = [item for item in answer["evidence"] if item["id"] in answer["citations"]]
    if cited:
        console.print("\n[bold]Evidence[/bold]")
    for item in cited:
        origin = item["source"] or item["tool"]
        console.print(
            f"{escape('[' + item['id'] + ']')} {escape(origin)}  [dim]{escape(item['step'])}[/]"
        )
    planner, usage, generator = answer["planner"], answer["usage"], answer["generator"]
    is_extractive = generator == "extractive"
    how_written = "quoted, without a language model," if is_extractive else f"worded by {generator}"
    fallback = f" ({planner['fallback']})" if planner["fallback"] else ""
    console.print(
        escape(
            f"\nPlanned by {planner['name']}{fallback} in {usage['planning_ms']:.0f} ms, looked up "
            f"in {usage['execution_ms']:.0f} ms, {how_written} in {usage['generation_ms']:.0f} ms."
        ),
        style="dim",
    )


def _feedback_line(report: Mapping[str, Any]) -> str:
    """Return the line that shows a report of a feedback loop; empty for other reports."""
    # A user's tool may report an event of the same name with other fields.
    with suppress(KeyError, TypeError, ValueError):
        if report.get("event") == "feedback_round":
            note = f" {report['note']}" if report["note"] else ""
            return (
                f"{report['round']}. by {report['search']}: {report['found']} found, "
                f"{report['judged']} judged, {report['relevant']} relevant, {report['total']} in "
                f"all; {report['milliseconds']:.0f} ms.{note}"
            )
        if report.get("event") == "feedback_ended":
            return f"Then {STOP_REASONS[report['reason']]}. Judge: {report['judge']}."
    return ""


def print_rows(rows: Sequence[Mapping[str, Any]], title: str = "") -> None:
    """Print rows as a table for people, with the columns of the first row."""
    columns = list(rows[0]) if rows else []
    print_table(columns, [[row.get(column) for column in columns] for row in rows], title)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> None:
    """Print a table for people, with floats to three decimals."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        justify: Literal["left", "right"] = "left" if index == 0 else "right"
        # Names and headings may wrap; numbers may not.
        min_width = max((len(_cell(row[index])) for row in rows), default=0) if index else None
        table.add_column(column, justify=justify, overflow="fold", min_width=min_width)
    for row in rows:
        table.add_row(*(escape(_cell(value)) for value in row))
    console = Console(highlight=False)
    # A file or a pipe has no width, so the table need not wrap.
    if not console.is_terminal and "COLUMNS" not in os.environ:
        table_width = Console(width=10_000).measure(table).maximum
        console = Console(highlight=False, width=table_width)
    # The terminal wraps lines that are too wide; rich would cut them off.
    min_table_width = Console(width=10_000).measure(table).minimum
    console.print(table, width=max(min_table_width, console.width), crop=False)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
