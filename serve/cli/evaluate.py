"""The command `casewright eval`: a planner's figures for a domain, and its wrong plans."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option, Typer, echo

from casewright.serve.cli.options import Adapter, AsJson, Device, DomainOrFile, DType, Examples
from casewright.serve.cli.output import print_json, print_table, visible

if TYPE_CHECKING:
    from casewright.finetune.evaluation import Evaluation
    from casewright.finetune.evaluation.outcome import PlanOutcome
    from casewright.planner.named import ModelSettings

app = Typer(add_completion=False)


@app.command("eval")
def evaluate_planner(
    domain: DomainOrFile,
    source: Annotated[
        Path, Option("--input", help="Annotated messages for the measurement, JSON Lines.")
    ],
    planner: Annotated[
        str | None, Option(help="A planner, as for ask; by default the domain's.", metavar="NAME")
    ] = None,
    adapter: Adapter = None,
    device: Device = None,
    dtype: DType = None,
    examples: Examples = None,
    as_json: AsJson = False,
) -> None:
    """Print a planner's figures on your annotated messages, and its wrong plans.

    The figures, in total and by class of message, have 95 % intervals. Do not give the domain's
    annotated messages: planners know their plans. casewright finetune eval compares planners.
    """
    from casewright.planner.named import ModelSettings, planner_for_adapter

    planner, adapter = planner_for_adapter(planner, adapter)
    model = ModelSettings(adapter, device, dtype, examples)
    evaluation, notes = evaluate_file(domain, source, planner, model)
    report = {"domain": domain, "input": str(source), **_make_report(evaluation, notes)}
    (print_json if as_json else _print_report)(report)


def evaluate_file(
    domain: str, source: Path, planner: str | None, model: ModelSettings
) -> tuple[Evaluation, Sequence[str]]:
    """Return the evaluation of one planner on annotated messages, and notes on the figures.

    Raises:
        InputError: The domain or planner is unknown, or the messages do not fit the tools.
        DependencyError: A package that the planner needs is not installed.
    """
    from casewright.domains import find_domain
    from casewright.serve.cli.finetune.eval_parts import check_planners, file_questions
    from casewright.serve.cli.finetune.evaluate import evaluate_planners
    from casewright.serve.session.defaults import default_planner

    name = planner or default_planner(find_domain(domain))
    check_planners([name], model)
    with closing(file_questions(source, None, domain, None)) as questions:
        questions.check([name])
        return evaluate_planners(questions, [name], model), questions.notes


def _make_report(evaluation: Evaluation, notes: Sequence[str]) -> dict[str, Any]:
    from casewright.finetune.evaluation.outcome import wrong_plans

    ((name, outcomes),) = evaluation.outcomes.items()
    outcomes_by_class: dict[str, list[PlanOutcome]] = {}
    for outcome in outcomes:
        outcomes_by_class.setdefault(outcome.item.query.label, []).append(outcome)
    figures = evaluation.figures[name]
    return {
        "planner": name,
        "messages": len(outcomes),
        "figures": {
            **_rates(outcomes),
            **{figure: figures[figure].to_json() for figure in ("invalid", "errors", "ms_p50")},
            **_asking_rates(outcomes),
        },
        "classes": {label: _rates(group) for label, group in sorted(outcomes_by_class.items())},
        "wrong": wrong_plans(outcomes),
        "notes": list(notes),
    }


def _rates(outcomes: Sequence[PlanOutcome]) -> dict[str, Any]:
    from casewright.finetune.evaluation.figures import share_of

    return {
        "right_tools": share_of([outcome.verdict.right_tools for outcome in outcomes]).to_json(),
        "whole_plans": share_of([outcome.graph_arguments for outcome in outcomes]).to_json(),
    }


def _asking_rates(outcomes: Sequence[PlanOutcome]) -> dict[str, Any]:
    """Return how often plans ask back, and are then wrong; empty if no plan has a confidence."""
    from casewright.finetune.evaluation.figures import share_of

    pairs = [(outcome, outcome.result) for outcome in outcomes if outcome.result is not None]
    if all(result.confidence is None for _, result in pairs):
        return {}
    asking = [outcome for outcome, result in pairs if result.asks_back]
    return {
        "asked_back": share_of([result.asks_back for _, result in pairs]).to_json(),
        "asked_back_wrong": share_of([not outcome.graph_arguments for outcome in asking]).to_json(),
    }


_FIGURE_LABELS = {
    "right_tools": "right tools",
    "whole_plans": "whole plans",
    "invalid": "fallback or invalid plans",
    "errors": "errors",
    "ms_p50": "milliseconds per plan, median",
    "asked_back": "asked back",
    "asked_back_wrong": "wrong plans of those asked back",
}


def _print_report(report: dict[str, Any]) -> None:
    rows = [[_FIGURE_LABELS[name], _cell(figure)] for name, figure in report["figures"].items()]
    print_table(["figure", "value"], rows, f"{report['messages']} messages, {report['planner']}")
    class_rows = [
        [f"{label} ({rates['right_tools']['count']})", *map(_cell, rates.values())]
        for label, rates in report["classes"].items()
    ]
    print_table(["class", "right tools", "whole plans"], class_rows)
    for plan in report["wrong"]:
        echo(visible(f"{plan['id']}: {plan['query']}"))
        echo(visible(indent_plan("right", plan["right_plan"])))
        echo(visible(indent_plan("wrote", plan["plan"] or plan["note"])))
        if reason := _uncertainty_text(plan):
            echo(visible(indent_plan("", reason)))
    for note in report["notes"]:
        echo(note)


def _uncertainty_text(plan: dict[str, Any]) -> str:
    """Return the confidence of a wrong plan, and notes if it asks back or is a fallback plan."""
    parts = [] if plan["confidence"] is None else [f"confidence {plan['confidence']:.2f}"]
    parts += ["it asks back"] if plan["asks_back"] else []
    parts += [f"a fallback plan: {plan['note']}"] if plan["plan"] and plan["note"] else []
    return "; ".join(parts)


def indent_plan(title: str, plan: str) -> str:
    """Return a plan's lines, indented, with a title before the first line."""
    numbered_lines = enumerate(plan.split("\n"))
    return "\n".join(f"  {'' if index else title:6}{line}" for index, line in numbered_lines)


def _cell(figure: dict[str, Any]) -> str:
    if figure["value"] is None:
        return "–"
    interval = "" if figure["low"] is None else f" [{figure['low']:.3f}, {figure['high']:.3f}]"
    return f"{figure['value']:.3f}{interval}"
