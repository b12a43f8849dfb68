"""`casewright finetune ensemble`: the weights of plan parser and language model in the ensemble."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Option, Typer

from casewright.serve.cli.options import AsJson
from casewright.serve.cli.output import print_json, print_table

app = Typer(add_completion=False)


@app.command("ensemble")
def finetune_ensemble(
    target: Annotated[Path, Option("--output", help="The card to write.", metavar="FILE")],
    as_json: AsJson = False,
) -> None:
    """Choose how the ensemble weighs its planners, on the toolboxes for validation: minutes."""
    from casewright.finetune.corpus import read_corpus
    from casewright.finetune.ensemble import choose, rankings
    from casewright.planner.ensemble import EnsemblePlanner
    from casewright.planner.model_planner import ModelPlanner
    from casewright.planner.named import ModelSettings
    from casewright.planner.named_planners import local_model
    from casewright.planner.parser_planner import ParserReuse
    from casewright.planner.shipped import SHIPPED

    model = ModelPlanner(local_model(SHIPPED, ModelSettings()), seconds=600.0)
    card, figures = choose(
        rankings(EnsemblePlanner(ParserReuse(None), lambda: model), read_corpus("validation"))
    )
    card.write(target)
    facts = {**asdict(card), **figures}
    if as_json:
        print_json(facts)
    else:
        print_table(["figure", "value"], [[name, str(value)] for name, value in facts.items()])
