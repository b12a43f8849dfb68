"""What commands print: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

STATUS_MARKS = {"done": "✓", "empty": "∅", "failed": "✗", "timed_out": "⏱", "skipped": "↷"}

#: Why a feedback loop stopped, in words.
STOPPED = {
    "settled": "nothing more was relevant",
    "nothing_relevant": "nothing was relevant; what the question found is shown, unconfirmed",
    "exhausted": "nothing unseen was left",
    "rounds": "the limit of rounds was reached",
    "candidates": "the limit of candidates was reached",
    "tokens": "the limit of tokens was reached",
    "deadline": "the time limit was reached",
    "judge_failed": "it ended, since the judge failed",
    "search_failed": "it ended, since a search failed",
}

# What moves a terminal's cursor or turns its text around, and halves of surrogate pairs.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Return a text of unknown origin as a terminal may be given it."""
    # A line end of Windows is one.
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n").removesuffix("\r"))


def print_json(value: Any) -> None:
    """Print one JSON value on stdout."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # The line ends are ours; those of texts are escaped already.
    sys.stdout.write(_UNPRINTABLE.sub(lambda one: f"\\u{ord(one[0]):04x}", text) + "\n")


def print_question(question: str) -> None:
    """Print what was asked, for people, before its answer."""
    from rich import markup
    from rich.console import Console

    console = Console(highlight=False)
    console.print("[bold]Question[/bold]")
    console.print(markup.escape(visible(question)) + "\n")


def print_answer(answer: Mapping[str, Any]) -> None:
    """Print an answer for people: the plan with its steps, the text, the evidence it cites."""
    from rich import markup
    from rich.console import Console
    from rich.table import Table

    def escape(text: str) -> str:
        return markup.escape(visible(text))

    console = Console(highlight=False)
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
    for step in answer["steps"]:
        lines = [line for told in step["reports"] if (line := _round_told(told))]
        if lines:
            console.print(f"\n[bold]Rounds of {escape(step['step'])}[/bold]")
        for line in lines:
            console.print(escape(line), soft_wrap=True)
    console.print("\n[bold]Answer[/bold]")
    for line in answer["text"].split("\n"):
        # What is indented is code, whose lines are not to be folded.
        console.print(escape(line), soft_wrap=line[:1].isspace())
    cited = [item for item in answer["evidence"] if item["id"] in answer["citations"]]
    if cited:
        console.print("\n[bold]Evidence[/bold]")
    for item in cited:
        origin = item["source"] or item["tool"]
        console.print(
            f"{escape('[' + item['id'] + ']')} {escape(origin)}  [dim]{escape(item['step'])}[/]"
        )
    planner, usage = answer["planner"], answer["usage"]
    fell_back = f" ({planner['fallback']})" if planner["fallback"] else ""
    console.print(
        escape(
            f"\nPlanned by {planner['name']}{fell_back} in {usage['planning_ms']:.0f} ms, looked "
            f"up in {usage['execution_ms']:.0f} ms, worded by {answer['generator']} in "
            f"{usage['generation_ms']:.0f} ms."
        ),
        style="dim",
    )


def _round_told(told: Mapping[str, Any]) -> str:
    """Return what a feedback loop reported, in words; empty for what other tools report."""
    try:
        return _feedback_told(told)
    except (KeyError, TypeError, ValueError):
        # Another tool's report of the same name.
        return ""


def _feedback_told(told: Mapping[str, Any]) -> str:
    if told.get("event") == "feedback_round":
        note = f" {told['note']}" if told["note"] else ""
        return (
            f"{told['round']}. by {told['search']}: {told['found']} found, "
            f"{told['judged']} judged, {told['relevant']} relevant, {told['total']} in all; "
            f"{told['milliseconds']:.0f} ms.{note}"
        )
    if told.get("event") == "feedback_ended":
        return f"Then {STOPPED[told['reason']]}. Judge: {told['judge']}."
    return ""


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> None:
    """Print a table for people; numbers with three decimals."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        justify: Literal["left", "right"] = "left" if number == 0 else "right"
        # Names and headings may fold, numbers may not.
        width = max((len(_shown(row[number])) for row in rows), default=0) if number else None
        table.add_column(column, justify=justify, overflow="fold", min_width=width)
    for row in rows:
        table.add_row(*(escape(_shown(value)) for value in row))
    console = Console(highlight=False)
    # A file has no edge to fold a table at.
    if not console.is_terminal and "COLUMNS" not in os.environ:
        width = Console(width=10_000).measure(table).maximum
        console = Console(highlight=False, width=width)
    # A line that a terminal breaks can be read; what rich cuts off cannot.
    least = Console(width=10_000).measure(table).minimum
    console.print(table, width=max(least, console.width), crop=False)


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
