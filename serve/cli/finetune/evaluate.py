"""`casewright finetune eval`: planners side by side on the same questions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import Adapter, AsJson, Device, DType, Examples, Grammar

if TYPE_CHECKING:
    from casewright.finetune.evaluation import Evaluation
    from casewright.planner.named import ModelSettings
    from casewright.serve.cli.finetune.eval_questions import Questions


app = typer.Typer(add_completion=False)


@app.command("eval")
def finetune_eval(
    planner: Annotated[
        list[str] | None,
        typer.Option(
            help="As for ask: case, parser, classifiers, mistral, smollm2, local:FOLDER, "
            "agent:local:FOLDER, provider:model; several are compared with the first. case by "
            "default.",
            metavar="NAME",
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option("--domain", "-d", help="Whose queries, tools and plan cases; shopping."),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            help="The domain's queries for measuring only, or all those that planners learn from: "
            "measuring or all.",
            metavar="WHICH",
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--input", help="Annotated queries of your own, JSON Lines."),
    ] = None,
    toolbox: Annotated[
        Path | None, typer.Option(help="With --input: your own tools, JSON.", metavar="FILE")
    ] = None,
    cases: Annotated[
        Path | None,
        typer.Option(
            help="With --input: annotated queries that planners may know.", metavar="FILE"
        ),
    ] = None,
    public: Annotated[
        str | None,
        typer.Option("--set", help="A public set instead, as far as it converts: nestful or tau2."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="With --set: the folder that holds it.", metavar="DIR")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many questions, drawn at random.")
    ] = None,
    removal: Annotated[
        bool,
        typer.Option(
            "--removal",
            help="Ask again with a needed tool removed; local models with the grammar off.",
        ),
    ] = False,
    grammar: Grammar = True,
    new_class: Annotated[
        str | None,
        typer.Option(help="Plan cases without this class, and its figures apart.", metavar="CLASS"),
    ] = None,
    adapter: Adapter = None,
    device: Device = None,
    dtype: DType = None,
    examples: Examples = None,
    controls: Annotated[
        bool,
        typer.Option("--controls", help="Beside them, one plan for all and gold plans shuffled."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of every draw.")] = 0,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the tables to this file.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate planners side by side: tools, arguments, plan graphs, classes, time, tokens.

    With intervals of 95 %. Without --input and --set, on the domain's queries for measuring, which
    no planner has learned from. Questions of public sets are for measuring; never train on them.
    """
    from casewright.planner.named import ModelSettings
    from casewright.serve.cli.finetune.eval_planners import check_planners

    names = planner or ["case"]
    model = ModelSettings(adapter, device, dtype, examples, grammar)
    check_planners(names, model)
    asked = _Asked(public, data, source, toolbox, cases, queries, domain)
    asked.check()
    _check_markdown(markdown)
    questions = asked.questions()
    try:
        questions.check(names)
        questions = questions.limited(limit, seed)
        if new_class is not None:
            questions = questions.without_class(new_class, names)
        evaluation = evaluated(
            *(questions, names, model, new_class or "", seed), removal=removal, controls=controls
        )
    finally:
        questions.close()
    facts = {
        "grammar": grammar,
        "adapter": adapter,
        "examples": examples,
        "limit": limit,
    }
    settings = {**questions.settings, **evaluation.settings, **facts}
    _show(evaluation, settings, questions, markdown, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The options that say which questions are asked."""

    public: str | None
    data: Path | None
    source: Path | None
    toolbox: Path | None
    cases: Path | None
    queries: str | None
    domain: str | None

    def check(self) -> None:
        """Raise ``InputError`` where options do not go together."""
        public, source = self.public is not None, self.source is not None
        for given, name, goes, why in (
            (self.data, "--data", public, "it goes with --set"),
            (self.toolbox, "--toolbox", source, "it goes with --input"),
            (self.cases, "--cases", source, "it goes with --input"),
            (self.source, "--input", not public, "--set has its own questions"),
            (self.queries, "--queries", not public and not source, "it goes with a domain"),
            (self.domain, "--domain", not public and not self.toolbox, "the tools are others"),
        ):
            if given is not None and not goes:
                raise InputError(f"Leave {name} out: {why}.")

    def questions(self) -> Questions:
        """Return the questions, and the plan cases that planners may know."""
        from casewright.serve.cli.finetune.eval_questions import (
            MEASURING,
            domain_questions,
            file_questions,
            set_questions,
        )

        domain = self.domain or "shopping"
        if self.public is not None:
            return set_questions(self.public, self.data)
        if self.source is not None:
            return file_questions(self.source, self.toolbox, domain, self.cases)
        return domain_questions(domain, self.queries or MEASURING)


def evaluated(
    questions: Questions,
    names: list[str],
    model: ModelSettings,
    new_class: str = "",
    seed: int = 0,
    *,
    removal: bool = False,
    controls: bool = False,
) -> Evaluation:
    """Return what was found of planners by their names.

    Args:
        questions: What they are asked, and what they may know.
        names: Of the planners.
        model: Settings of those with a language model.
        new_class: As ``evaluate`` has it.
        seed: Of every draw.
        removal: Ask again with a needed tool removed.
        controls: Beside them, one plan for all and gold plans shuffled.

    Raises:
        InputError: A model cannot be loaded.
        DependencyError: A package that a planner needs is not installed.
    """
    from casewright.finetune.evaluation import ShuffledPlans, evaluate
    from casewright.finetune.folds import similarity_groups
    from casewright.planner import plan_store
    from casewright.planner.fallback import FallbackPlanner
    from casewright.serve.cli.finetune.eval_planners import make_planners
    from casewright.stores import default_encoder
    from casewright.stores.encoders.cache import UncachedQuestions
    from casewright.stores.progress import note

    encoder = UncachedQuestions(default_encoder())
    groups = similarity_groups([item.query.query for item in questions.items], default_encoder())
    with plan_store(questions.known, encoder) as store:
        result = make_planners(names, questions, store, encoder, model, removal=removal)
        for line in questions.notes:
            note(line)
        planners, asked = dict(result.planners), dict(result.removal)
        if controls:
            shuffled = ShuffledPlans(questions.items, seed)
            planners |= {"fallback plan": FallbackPlanner(), "gold plans shuffled": shuffled}
            asked["gold plans shuffled"] = shuffled
        return evaluate(
            questions.items,
            planners,
            constrained=result.constrained,
            removal=asked if removal else None,
            new_class=new_class,
            groups=groups,
            seed=seed,
        )


def _check_markdown(file: Path | None) -> None:
    if file is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
        raise InputError(
            f"--markdown {file} cannot be written. Give the name of a file in a folder that is "
            "there."
        )


def _show(
    evaluation: Evaluation,
    settings: dict[str, Any],
    questions: Questions,
    markdown: Path | None,
    *,
    as_json: bool,
) -> None:
    from casewright.finetune.evaluation import tables, to_markdown
    from casewright.finetune.evaluation.tables import NOTES
    from casewright.serve.cli.measured import machine
    from casewright.serve.cli.output import print_json, print_table

    if markdown is not None:
        try:
            markdown.write_text(
                to_markdown(evaluation, settings, questions.notes), encoding="utf-8"
            )
        except OSError as error:
            raise InputError(f"--markdown {markdown} cannot be written: {error}.") from error
    if as_json:
        facts = {**evaluation.to_json(), "settings": settings, "machine": machine()}
        notes = [*NOTES, *questions.notes]
        print_json({**facts, "conversion": questions.conversion, "notes": notes})
        return
    for table in tables(evaluation):
        print_table(table.columns, table.rows, table.title)
    for raised in evaluation.errors:
        print(f"{raised['planner']}, {raised['item']}: {raised['error']}")
    for line in (*NOTES, *questions.notes):
        print(line)
