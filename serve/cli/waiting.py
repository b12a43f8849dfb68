"""Prints plans and their prices before a run, and reads replies to the questions of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from typer import echo

from casewright.errors import InputError
from casewright.planner import PlanRequest, Turn
from casewright.serve.cli.output import print_json, visible
from casewright.serve.session.session import Session


def ask_user(questions: Sequence[Any]) -> list[Any]:
    """Print the questions of a run's interrupts on stderr, and return the replies from stdin.

    Raise ``InputError``, which stops the run, if the input ends before a reply.
    """
    has_several = len(questions) > 1
    for number, question in enumerate(questions, 1):
        if has_several:
            echo(f"Question {number} of {len(questions)}:", err=True)
        _print_question(question)
    return [
        _ask_until_valid(question, f"{number}. " if has_several else "")
        for number, question in enumerate(questions, 1)
    ]


def _is_approval(question: Any) -> bool:
    return isinstance(question, Mapping) and question.get("kind") == "approval"


def _print_question(question: Any) -> None:
    if not _is_approval(question):
        echo(visible(question if isinstance(question, str) else json.dumps(question)), err=True)
        return
    _print_plan_and_price(question["plan"], question, question["why"])
    for violation in question["violations"]:
        echo(visible(f"Not possible: {violation}"), err=True)


def _ask_until_valid(question: Any, prefix: str) -> Any:
    if not _is_approval(question):
        return _read_reply(f"{prefix}Reply: ")
    while True:
        reply = _read_reply(f"{prefix}Run it? yes, no, or edit: ").casefold()
        if reply in ("yes", "no"):
            return reply
        if reply == "edit":
            echo("Write the right plan, one step per line, then an empty line:", err=True)
            return "\n".join(iter(lambda: sys.stdin.readline().strip(), ""))


def _read_reply(prompt: str) -> str:
    echo(prompt, err=True, nl=False)
    if not (line := sys.stdin.readline()):
        echo(err=True)
        raise InputError("The input ended before the reply: no further step ran. Type a reply.")
    return line.strip()


def _print_plan_and_price(
    plan: str, planning: Mapping[str, Any], reason: str = "", *, to_stderr: bool = True
) -> None:
    lines = [reason, plan, f"Price: {planning['price']['text']}.", *planning["left_out"]]
    echo(visible("\n".join(filter(None, lines))), err=to_stderr)


def print_dry_run(
    session: Session,
    question: str,
    context: Mapping[str, Any],
    history: Sequence[Turn],
    budget: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Plan a question within a budget; print the plan and its price. No tool is called."""
    from casewright.graph import Limits
    from casewright.graph.planning import check_tools, plan_within
    from casewright.tools.body import run

    limits, toolbox = Limits().within(budget), session.opened.toolbox
    check_tools(budget, toolbox)
    request = PlanRequest(question, toolbox, context, history, max_steps=limits.steps)
    plan, planning = run(plan_within(session.planner, request, limits, latencies={}))
    request.validate(plan)
    if as_json:
        print_json({"plan": str(plan), "planner": planning})
    else:
        _print_plan_and_price(str(plan), planning, to_stderr=False)
