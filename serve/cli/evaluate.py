"""`casewright eval`: how good one planner is for a domain, and what it gets wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from casewright.serve.cli.options import Adapter, AsJson, Device, DType, Examples, ToolsOf

if TYPE_CHECKING:
    from casewright.finetune.evaluation import Evaluation
    from casewright.finetune.evaluation.outcome import Outcome
    from casewright.planner.named import ModelSettings


app = typer.Typer(add_completion=False)


@app.command("eval")
def evaluate_planner(
    domain: ToolsOf,
    source: Annotated[
        Path,
        typer.Option("--input", help="Annotated messages to measure on, JSON Lines."),
    ],
    planner: Annotated[
        str | None,
        typer.Option(help="As for ask. The domain's own by default.", metavar="NAME"),
    ] = None,
    adapter: Adapter = None,
    device: Device = None,
    dtype: DType = None,
    examples: Examples = None,
    as_json: AsJson = False,
) -> None:
    """Say how good a planner is on your annotated messages, and list what it gets wrong.

    With intervals of 95 %, in all and by class. Planners know the domain's own annotated messages;
    measure on others. To compare planners side by side: casewright finetune eval.
    """
    from casewright.planner.named import ModelSettings, of_adapter
    from casewright.serve.cli.output import print_json

    planner, adapter = of_adapter(planner, adapter)
    model = ModelSettings(adapter, device, dtype, examples)
    found, notes = measured(domain, source, planner, model)
    told = {"domain": domain, "input": str(source), **_told(found, notes)}
    (print_json if as_json else _print)(told)


def measured(
    domain: str, source: Path, planner: str | None, model: ModelSettings
) -> tuple[Evaluation, Sequence[str]]:
    """Return what was found of one planner, and what must be known to read it.

    Args:
        domain: Whose tools and plan cases.
        source: Annotated messages.
        planner: Its name; the domain's own by default.
        model: Settings of its language model.

    Raises:
        InputError: There is no such domain or planner, or the messages are not right for the tools.
        DependencyError: A package that the planner needs is not installed.
    """
    from casewright.domains import find_domain
    from casewright.serve.cli.finetune.eval_planners import check_planners
    from casewright.serve.cli.finetune.eval_questions import file_questions
    from casewright.serve.cli.finetune.evaluate import evaluated
    from casewright.serve.session.default_planner import default_planner

    name = planner or default_planner(find_domain(domain))
    check_planners([name], model)
    questions = file_questions(source, None, domain, None)
    try:
        questions.check([name])
        return evaluated(questions, [name], model), questions.notes
    finally:
        questions.close()


def _told(found: Evaluation, notes: Sequence[str]) -> dict[str, Any]:
    from casewright.finetune.evaluation.outcome import wrong_plans

    ((name, outcomes),) = found.outcomes.items()
    classes = sorted({one.item.query.label for one in outcomes})
    return {
        "planner": name,
        "messages": len(outcomes),
        "figures": {
            **_shares(outcomes),
            **{
                figure: found.figures[name][figure].to_json()
                for figure in ("invalid", "errors", "ms_p50")
            },
            **_asked_back(outcomes),
        },
        "classes": {
            label: _shares([one for one in outcomes if one.item.query.label == label])
            for label in classes
        },
        "wrong": wrong_plans(outcomes),
        "notes": list(notes),
    }


def _shares(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    from casewright.finetune.evaluation.figures import share

    return {
        "right_tools": share([one.verdict.tools for one in outcomes]).to_json(),
        "whole_plans": share([one.graph_arguments for one in outcomes]).to_json(),
    }


def _asked_back(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return how often the planner asks back, and how many of these plans would be wrong."""
    from casewright.finetune.evaluation.figures import share

    results = [(one, one.result) for one in outcomes if one.result is not None]
    if all(result.confidence is None for _, result in results):
        return {}
    asked = [one for one, result in results if result.asks_back]
    return {
        "asked_back": share([result.asks_back for _, result in results]).to_json(),
        "asked_back_wrong": share([not one.graph_arguments for one in asked]).to_json(),
    }


_WORDS = {
    "right_tools": "right tools",
    "whole_plans": "whole plans",
    "invalid": "answered by a fallback, or invalid",
    "errors": "raised an error",
    "ms_p50": "milliseconds a plan, median",
    "asked_back": "asked back",
    "asked_back_wrong": "of these, plans that are wrong",
}


def _print(told: dict[str, Any]) -> None:
    from casewright.serve.cli.output import print_table, visible

    rows = [[_WORDS[name], _cell(figure)] for name, figure in told["figures"].items()]
    print_table(["figure", "value"], rows, f"{told['messages']} messages, {told['planner']}")
    by_class = [
        [f"{label} ({own['right_tools']['count']})", *map(_cell, own.values())]
        for label, own in told["classes"].items()
    ]
    print_table(["class", "right tools", "whole plans"], by_class)
    for one in told["wrong"]:
        typer.echo(visible(f"{one['id']}: {one['query']}"))
        typer.echo(visible(indented("right", one["right_plan"])))
        typer.echo(visible(indented("wrote", one["plan"] or one["note"])))
    for note in told["notes"]:
        typer.echo(note)


def indented(title: str, plan: str) -> str:
    """Return a plan's lines below each other, with a title before the first."""
    lines = enumerate(plan.split("\n"))
    return "\n".join(f"  {'' if number else title:6}{line}" for number, line in lines)


def _cell(figure: dict[str, Any]) -> str:
    if figure["value"] is None:
        return "–"
    interval = "" if figure["low"] is None else f" [{figure['low']:.3f}, {figure['high']:.3f}]"
    return f"{figure['value']:.3f}{interval}"
