"""`casewright finetune eval`: a comparison of planners on the same questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option, Typer

from casewright.errors import InputError
from casewright.serve.cli.options import Adapter, AsJson, Device, DType, Examples, Grammar, Seed
from casewright.serve.cli.output import print_json, print_table

if TYPE_CHECKING:
    from casewright.finetune.evaluation import Evaluation
    from casewright.planner.named import ModelSettings
    from casewright.serve.cli.finetune.eval_parts import Questions

app = Typer(add_completion=False)


@app.command("eval")
def finetune_eval(
    planner: Annotated[
        list[str] | None,
        Option(help="As for ask; default: case. Repeatable: others are compared with the first."),
    ] = None,
    domain: Annotated[
        str | None, Option("--domain", "-d", help="The domain; shopping by default.")
    ] = None,
    queries: Annotated[
        str | None, Option(help="The domain's queries: measuring (default) or all others (all).")
    ] = None,
    source: Annotated[
        Path | None, Option("--input", help="Annotated queries of your own, JSON Lines.")
    ] = None,
    toolbox: Annotated[Path | None, Option(help="With --input: your tools, JSON.")] = None,
    cases: Annotated[Path | None, Option(help="With --input: the planners' plan cases.")] = None,
    public: Annotated[str | None, Option("--set", help="A public set: nestful or tau2.")] = None,
    data: Annotated[Path | None, Option(help="With --set: the set's folder.")] = None,
    limit: Annotated[int | None, Option(min=1, help="Limit of questions, drawn at random.")] = None,
    removal: Annotated[
        bool, Option("--removal", help="Also plan without a needed tool and without a grammar.")
    ] = False,
    grammar: Grammar = True,
    adapter: Adapter = None,
    device: Device = None,
    dtype: DType = None,
    examples: Examples = None,
    controls: Annotated[
        bool, Option("--controls", help="Also evaluate two controls: fallback and shuffled plans.")
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare planners by tools, arguments, plan graphs, classes, time and tokens.

    The figures have 95 % intervals. Without --input and --set, the questions are the domain's
    held-out test queries, which no planner has seen. Never train on questions of public sets.
    """
    from casewright.planner.named import ModelSettings
    from casewright.serve.cli.finetune import eval_parts

    names = planner or ["case"]
    model = ModelSettings(adapter, device, dtype, examples, grammar)
    eval_parts.check_planners(names, model)
    has_set, has_file = public is not None, source is not None
    for value, option, is_allowed, reason in (
        (data, "--data", has_set, "it goes with --set"),
        (toolbox, "--toolbox", has_file, "it goes with --input"),
        (cases, "--cases", has_file, "it goes with --input"),
        (source, "--input", not has_set, "--set has its own questions"),
        (queries, "--queries", not has_set and not has_file, "it goes with a domain"),
        (domain, "--domain", not has_set and not toolbox, "the tools are not a domain's"),
    ):
        if value is not None and not is_allowed:
            raise InputError(f"Leave {option} out: {reason}.")
    if public is not None:
        questions = eval_parts.set_questions(public, data)
    elif source is not None:
        questions = eval_parts.file_questions(source, toolbox, domain or "shopping", cases)
    else:
        questions = eval_parts.domain_questions(domain or "shopping", queries or "measuring")
    try:
        questions.check(names)
        questions = questions.limited(limit, seed)
        evaluation = evaluate_planners(
            questions, names, model, seed, removal=removal, controls=controls
        )
    finally:
        questions.close()
    options = {"grammar": grammar, "adapter": adapter, "examples": examples, "limit": limit}
    settings = {**questions.settings, **evaluation.settings, **options}
    _print_evaluation(evaluation, settings, questions, as_json=as_json)


def evaluate_planners(
    questions: Questions,
    names: list[str],
    model: ModelSettings,
    seed: int = 0,
    *,
    removal: bool = False,
    controls: bool = False,
) -> Evaluation:
    """Evaluate the planners with these names; ``model`` configures their language models.

    With ``removal``, the planners also plan without a needed tool. With ``controls``, two baselines
    are evaluated too: the fallback plan, and shuffled gold plans.
    """
    from casewright.finetune.evaluation import ShuffledPlans, evaluate
    from casewright.finetune.folds import similarity_groups
    from casewright.planner import plan_store
    from casewright.planner.fallback import FallbackPlanner
    from casewright.serve.cli.finetune.eval_parts import make_planners
    from casewright.stores import default_encoder
    from casewright.stores.encoders.cache import UncachedQuestionEncoder
    from casewright.stores.progress import note

    # Planners encode each question anew, so that the measured time includes the encoding.
    encoder = UncachedQuestionEncoder(default_encoder())
    groups = similarity_groups([item.query.query for item in questions.items], default_encoder())
    with plan_store(questions.case_queries, encoder) as store:
        prepared = make_planners(names, questions, store, encoder, model, removal=removal)
        for line in questions.notes:
            note(line)
        planners, for_removal = dict(prepared.planners), dict(prepared.removal)
        if controls:
            shuffled = ShuffledPlans(questions.items, seed)
            planners |= {"fallback plan": FallbackPlanner(), "gold plans shuffled": shuffled}
            for_removal["gold plans shuffled"] = shuffled
        return evaluate(
            questions.items,
            planners,
            constrained=prepared.constrained,
            removal=for_removal if removal else None,
            groups=groups,
            seed=seed,
        )


def _print_evaluation(
    evaluation: Evaluation, settings: dict[str, Any], questions: Questions, *, as_json: bool
) -> None:
    from casewright.finetune.evaluation import tables
    from casewright.finetune.evaluation.tables import NOTES
    from casewright.serve.cli.bench.report import machine

    notes = [*NOTES, *questions.notes]
    if as_json:
        facts = {**evaluation.to_json(), "settings": settings, "machine": machine()}
        print_json({**facts, "conversion": questions.conversion, "notes": notes})
        return
    for table in tables(evaluation):
        print_table(table.columns, table.rows, table.title)
    for error in evaluation.errors:
        print(f"{error['planner']}, {error['item']}: {error['error']}")
    for note in notes:
        print(note)
