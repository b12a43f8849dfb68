"""`casewright bench conversations`: how planners take what was said before."""

from __future__ import annotations

import typer

from casewright.serve.options import AsJson, DomainName


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("conversations")(bench_conversations)


def bench_conversations(domain: DomainName = "shopping", as_json: AsJson = False) -> None:
    """Score the planners on follow-ups: with their history, without it, with another's."""
    from casewright.bench.conversations import measure_conversations

    measure_conversations(domain).show(as_json=as_json, plot=None)
