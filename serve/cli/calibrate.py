"""`casewright calibrate`: which selection of demonstrations helps a model most."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import Adapter, AsJson, Device, DType, Plot

if TYPE_CHECKING:
    from casewright.finetune.demonstrations import Calibration, JudgedQuestion, RecordedScorer
    from casewright.finetune.demonstrations.calibrate import Cost
    from casewright.finetune.demonstrations.judged import CaseReading
    from casewright.stores import CaseStore

app = typer.Typer(add_completion=False)


@app.command()
def calibrate(
    model: Annotated[
        str,
        typer.Option(
            help="What the demonstrations are for: mistral, the model that ships; a local model's "
            "folder or name; or a chat model as provider:model whose API tells log-probabilities.",
            metavar="NAME",
        ),
    ],
    cases: Annotated[
        Path | None,
        typer.Option(
            help="Demonstrations, JSON Lines: question and answer, and if there are any a list "
            "of wrong answers (wrong) and what lines of one question have in common (group).",
            metavar="FILE",
        ),
    ] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", "-d", help="Or a domain's plan cases.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="Or a case store of your own.", metavar="FILE.py:NAME"),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Questions to measure on, JSON Lines: question, a list of answers (right), and "
            "wrong and group if any; by default the cases, each without those of its group.",
            metavar="FILE",
        ),
    ] = None,
    component: Annotated[
        str | None,
        typer.Option(help="With --store: the problem's component that is the question."),
    ] = None,
    group: Annotated[
        str,
        typer.Option(help="With --store: the metadata field that cases of one question share."),
    ] = "group",
    k: Annotated[int, typer.Option("-k", min=1, help="Demonstrations shown.")] = 6,
    lambda_d: Annotated[
        str | None,
        typer.Option(
            help="Shares of the relevance to try, from 0 to 1 (the rest is diversity's); 0, 0.1 "
            "… 1 by default.",
            metavar="LIST",
        ),
    ] = None,
    lambda_b: Annotated[
        str | None,
        typer.Option(
            help="Shares of the similarity in the relevance to try (the rest is the quality's); "
            "0.9,0.95,1 where quality can be measured, else 1. Below 1 it is measured first, and "
            "written to the cases.",
            metavar="LIST",
        ),
    ] = None,
    measure: Annotated[
        str,
        typer.Option(help="What is to be best: margin (Δ), dpo (log σ(Δ)), mass or mc1."),
    ] = "margin",
    limit: Annotated[
        int, typer.Option(min=2, help="At most so many questions, drawn at random.")
    ] = 100,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what it costs, and stop.")
    ] = False,
    scores: Annotated[
        Path | None,
        typer.Option(
            help="Where scores are kept, so that a stopped run goes on; in Casewright's data "
            "folder by default.",
            metavar="FILE",
        ),
    ] = None,
    adapter: Adapter = None,
    device: Device = None,
    dtype: DType = None,
    seed: Annotated[int, typer.Option(min=0, help="Of every draw.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Find the selection of demonstrations that helps a model most.

    Sweeps the shares of relevance, diversity and quality over a case store, and measures what the
    selected cases do to the probability of right and wrong answers. A stopped run goes on where it
    was.
    """
    from casewright.finetune.demonstrations import RecordedScorer, Sweep, open_scorer
    from casewright.finetune.demonstrations.calibrate import LAMBDAS_B, LAMBDAS_D, prepare, run
    from casewright.finetune.demonstrations.judged import CaseReading
    from casewright.serve.cli.output import print_json
    from casewright.serve.cli.own_store import PLAN_GROUP
    from casewright.stores.paths import data_folder

    wanted_d, wanted_b = _shares("--lambda-d", lambda_d), _shares("--lambda-b", lambda_b)
    # Refused before a model is loaded.
    Sweep(k, wanted_d or LAMBDAS_D, wanted_b or LAMBDAS_B, measure, limit, seed)
    asked = _questions(questions)
    if store is None and (component is not None or group != "group"):
        raise InputError("--component and --group go with --store. Leave them out.")
    with _opened(cases, domain, store) as opened:
        reading = CaseReading.of(opened, component, PLAN_GROUP if domain else group)
        scorer = RecordedScorer(
            open_scorer(model, adapter=adapter, device=device, dtype=dtype),
            scores or data_folder() / "calibrate" / "scores.sqlite",
        )
        try:
            tried_b = _with_quality(opened, scorer, reading, wanted_b, measured=not estimate)
            sweep = Sweep(k, wanted_d or LAMBDAS_D, tried_b, measure, limit, seed)
            prepared = prepare(opened, scorer, asked, sweep, reading=reading)
            _tell(prepared.cost)
            if estimate:
                if as_json:
                    print_json(asdict(prepared.cost))
                return
            found = run(prepared, scorer)
        finally:
            scorer.close()
    _show(found, plot, as_json=as_json)


def _opened(
    cases: Path | None, domain: str | None, store: str | None
) -> AbstractContextManager[CaseStore]:
    from casewright.serve.cli.own_store import store_of_code, store_of_domain, store_of_file

    if sum(one is not None for one in (cases, domain, store)) != 1:
        raise InputError("Give one of --cases FILE, --domain NAME and --store FILE.py:NAME.")
    if cases is not None:
        return store_of_file(cases)
    return store_of_domain(domain) if domain is not None else store_of_code(str(store))


def _questions(file: Path | None) -> Sequence[JudgedQuestion] | None:
    from casewright.finetune.demonstrations.cases_file import read_judged

    return None if file is None else read_judged(file)


def _with_quality(
    store: CaseStore,
    scorer: RecordedScorer,
    reading: CaseReading,
    wanted: Sequence[float],
    *,
    measured: bool,
) -> Sequence[float]:
    """Measure the cases' quality where it is to be weighed and can be; return the λ_b to try."""
    from casewright.finetune.demonstrations import measure_quality
    from casewright.finetune.demonstrations.calibrate import LAMBDAS_B
    from casewright.finetune.demonstrations.quality import can_hold_quality
    from casewright.stores.progress import note

    can = can_hold_quality(store) and scorer.scores_texts
    tried = wanted or (LAMBDAS_B if can else (1.0,))
    if min(tried) == 1:
        return tried
    if can:
        if measured:
            measure_quality(store, scorer, reading)
    elif all(case.quality is None for case in store.all()):
        raise InputError(
            "--lambda-b weighs the cases' quality, and they have none. Take a local model and a "
            "schema whose quality_range is (-20, 0), which lets it be measured; or leave it out."
        )
    else:
        note("Quality is what the cases have: it cannot be this model's log-probability.")
    return tried


def _shares(option: str, text: str | None) -> tuple[float, ...]:
    """Return the numbers of a list; none where there is no list."""
    if text is None:
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(
            f"{option} {text!r} is no list of numbers. Write 0,0.5,1 for example."
        ) from error


def _tell(cost: Cost) -> None:
    from casewright.stores.progress import note

    if not cost.questions:
        note("All of it was scored before.")
        return
    time = "" if cost.seconds is None else f"; about {_duration(cost.seconds)}"
    note(
        f"To score: {cost.answers:,} answers in {cost.questions:,} prompts, {cost.tokens:,} tokens "
        f"to read{time}."
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _show(found: Calibration, plot: Path | None, *, as_json: bool) -> None:
    from casewright.finetune.demonstrations.calibrate import draw_calibration
    from casewright.serve.cli.measured import save_plot
    from casewright.serve.cli.output import print_json, print_table

    if plot is not None:
        save_plot(plot, lambda axes: draw_calibration(axes, found))
    if as_json:
        print_json(found.to_json())
        return
    columns = ("λ_d", "λ_b", found.measure, "from", "to", "dpo", "cosine of pairs")
    rows = [
        [f"{r.lambda_d:g}", f"{r.lambda_b:g}", r.benefit, *r.interval, r.dpo, r.cosine]
        for r in found.rows
    ]
    title = f"{found.model}: {found.questions} questions, {found.k} demonstrations"
    print_table(columns, rows, title)
    names = {
        "chosen": "the best by the other questions",
        "nearest": "plain similarity (λ_d = λ_b = 1)",
        "random": "cases drawn at random",
    }
    print_table(
        (f"{found.measure} on questions that chose nothing", "mean", "from", "to"),
        [[names[name], *numbers] for name, numbers in found.held_out.items()],
    )
    best = found.choice
    typer.echo(
        f"Use λ_d = {best.lambda_d:g} and λ_b = {best.lambda_b:g}: "
        f"MarginalSelector(lambda_d={best.lambda_d:g}, lambda_b={best.lambda_b:g})."
    )
    low, high = best.lambda_d_interval
    typer.echo(
        f"Over plain similarity it gains {best.gain[0]:+.3f} ({best.gain[1]:+.3f} to "
        f"{best.gain[2]:+.3f}) on the questions that it was chosen by. In 95 % of resamples λ_d is "
        f"from {low:g} to {high:g}, λ_b from {best.lambda_b_interval[0]:g} to "
        f"{best.lambda_b_interval[1]:g}. Of {len(found.rows)} settings, {len(best.as_good)} are "
        "not surely worse."
    )
