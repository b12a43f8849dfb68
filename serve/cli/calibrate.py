"""The command `casewright calibrate`, which finds a model's best selection of demonstrations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer, echo

from casewright.errors import InputError, one_line
from casewright.serve.cli.options import Adapter, AsJson, Device, DType, Plot, Seed
from casewright.serve.cli.output import print_json, print_table
from casewright.serve.cli.own_tools import own_tools

if TYPE_CHECKING:
    from casewright.finetune.demonstrations import Calibration, RecordedScorer
    from casewright.finetune.demonstrations.calibrate import Cost
    from casewright.finetune.demonstrations.judged import CaseReader
    from casewright.stores import Case, CaseStore

#: Metadata field of a plan case that identifies the annotated query of the case.
PLAN_GROUP_FIELD = "key"

app = Typer(add_completion=False)


@app.command()
def calibrate(
    model: Annotated[
        str, Option(help="mistral, or a local model's folder or name.", metavar="NAME")
    ],
    cases: Annotated[
        Path | None,
        Option(
            help="Demonstrations, JSON Lines: question, answer, wrong (a list of wrong answers), "
            "group (the same in all lines of a question).",
            metavar="FILE",
        ),
    ] = None,
    domain: Annotated[
        str | None, Option("--domain", "-d", help="A domain with plan cases as demonstrations.")
    ] = None,
    store: Annotated[
        str | None, Option(help="A case store of your own.", metavar="FILE.py:NAME")
    ] = None,
    questions: Annotated[
        Path | None,
        Option(
            help="Questions for the measurement, JSON Lines: question, right (a list of answers), "
            "wrong, group; by default those of the cases, without their groups' demonstrations.",
            metavar="FILE",
        ),
    ] = None,
    component: Annotated[
        str | None, Option(help="With --store: the component of problems that is the question.")
    ] = None,
    group: Annotated[
        str, Option(help="With --store: the metadata field that groups the cases of a question.")
    ] = "group",
    k: Annotated[int, Option("-k", min=1, help="The number of demonstrations.")] = 6,
    lambda_d: Annotated[
        str | None,
        Option(help="Weights λ_d of relevance; by default 0,0.1,…,1.", metavar="LIST"),
    ] = None,
    lambda_b: Annotated[
        str | None,
        Option(
            help="Weights λ_b of similarity against quality; by default 1, or 0.9,0.95,1 if the "
            "quality can be measured; the measurement updates the cases.",
            metavar="LIST",
        ),
    ] = None,
    measure: Annotated[
        str, Option(help="The measure: margin (Δ), dpo (log σ(Δ)), mass or mc1.")
    ] = "margin",
    limit: Annotated[int, Option(min=2, help="Limit of questions, drawn at random.")] = 100,
    estimate: Annotated[bool, Option("--estimate", help="Print only the cost.")] = False,
    scores: Annotated[
        Path | None,
        Option(help="The file of scores; in the data folder by default.", metavar="FILE"),
    ] = None,
    adapter: Adapter = None,
    device: Device = None,
    dtype: DType = None,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Find the best selection of demonstrations for a model.

    The command varies the weights of relevance, diversity and quality, and measures how selected
    cases change the probability of right and wrong answers. Repeat a stopped command to continue.
    """
    from casewright.finetune.demonstrations import RecordedScorer, Sweep, open_scorer
    from casewright.finetune.demonstrations.calibrate import LAMBDAS_B, LAMBDAS_D, prepare, run
    from casewright.finetune.demonstrations.cases_file import read_judged
    from casewright.finetune.demonstrations.judged import CaseReader
    from casewright.stores.paths import data_folder

    lambdas_d = _read_floats("--lambda-d", lambda_d) or LAMBDAS_D
    given_lambdas_b = _read_floats("--lambda-b", lambda_b)
    # Refuse invalid values before a model is loaded.
    Sweep(k, lambdas_d, given_lambdas_b or LAMBDAS_B, measure, limit, seed)
    test_questions = None if questions is None else read_judged(questions)
    if store is None and (component is not None or group != "group"):
        raise InputError("--component and --group go with --store. Leave them out.")
    with _open_store(cases, domain, store) as case_store:
        case_reader = CaseReader.of(case_store, component, PLAN_GROUP_FIELD if domain else group)
        language_model = open_scorer(model, adapter=adapter, device=device, dtype=dtype)
        file = scores or data_folder() / "calibrate" / "scores.sqlite"
        with closing(RecordedScorer(language_model, file)) as scorer:
            lambdas_b = _choose_lambdas_b(
                case_store, scorer, case_reader, given_lambdas_b, may_measure=not estimate
            )
            sweep = Sweep(k, lambdas_d, lambdas_b, measure, limit, seed)
            prepared = prepare(case_store, scorer, test_questions, sweep, case_reader=case_reader)
            _print_cost(prepared.cost)
            if estimate:
                if as_json:
                    print_json(asdict(prepared.cost))
                return
            calibration = run(prepared, scorer)
    _print_calibration(calibration, plot, as_json=as_json)


@contextmanager
def _open_store(cases: Path | None, domain: str | None, store: str | None) -> Iterator[CaseStore]:
    """Open a case store: for a file of cases, of a domain's plan cases, or from a Python file."""
    from casewright.domains.python_file import load_object
    from casewright.finetune.demonstrations import cases_file
    from casewright.stores import CaseStore, default_encoder
    from casewright.stores.paths import data_folder

    if sum(option is not None for option in (cases, domain, store)) != 1:
        raise InputError("Give one of --cases FILE, --domain NAME and --store FILE.py:NAME.")
    if cases is not None:
        demonstrations = cases_file.read_demonstrations(cases)
        path_hash = hashlib.sha256(str(cases.resolve()).encode()).hexdigest()[:16]
        folder = data_folder() / "demonstrations" / f"{cases.stem}-{path_hash}"
        with CaseStore(cases_file.demonstration_schema(default_encoder()), folder) as case_store:
            _synchronise(case_store, demonstrations)
            yield case_store
        return
    if domain is not None:
        with own_tools(domain) as tools:
            if tools.case_store is None:
                raise InputError(
                    f"The domain {domain!r} has no plan cases. Give --cases or --store."
                )
            yield tools.case_store
        return
    expected = "a CaseStore, or a function that returns one"
    value = load_object(str(store), "--store", expected)
    try:
        value = value() if callable(value) else value
    except Exception as error:
        raise InputError(f"--store {store} failed: {one_line(error)}.") from error
    if not isinstance(value, CaseStore):
        raise InputError(f"--store {store} is a {type(value).__name__}. Name {expected}.")
    with value:
        yield value


def _synchronise(store: CaseStore, cases: Sequence[Case]) -> None:
    """Add new cases, delete removed cases, and keep the measured quality of the other cases."""
    from casewright.stores import Change
    from casewright.stores.case import case_id

    cases_by_id = {case_id(case, store.schema.name): case for case in cases}
    stored = {case.id: case for case in store.all()}
    store.delete([id_ for id_ in stored if id_ not in cases_by_id])
    store.add([case for id_, case in cases_by_id.items() if id_ not in stored])
    changes = {
        id_: Change(metadata=case.metadata)
        for id_, case in cases_by_id.items()
        if id_ in stored and dict(stored[id_].metadata) != dict(case.metadata)
    }
    store.update(changes)


def _choose_lambdas_b(
    store: CaseStore,
    scorer: RecordedScorer,
    case_reader: CaseReader,
    given: Sequence[float],
    may_measure: bool,
) -> Sequence[float]:
    """Return the values of λ_b; if a value needs the cases' quality, measure the quality first."""
    from casewright.finetune.demonstrations import measure_quality
    from casewright.finetune.demonstrations.calibrate import LAMBDAS_B
    from casewright.finetune.demonstrations.quality import can_hold_quality
    from casewright.stores.progress import note

    is_measurable = can_hold_quality(store)
    lambdas_b = given or (LAMBDAS_B if is_measurable else (1.0,))
    if set(lambdas_b) == {1}:  # similarity alone
        return lambdas_b
    if is_measurable:
        if may_measure:
            measure_quality(store, scorer, case_reader)
    elif all(case.quality is None for case in store.all()):
        raise InputError(
            "--lambda-b weighs the cases' quality, which these cases do not have. Leave it out, or "
            "give a schema with quality_range (-20, 0), for which the quality can be measured."
        )
    else:
        note("The cases keep their stored quality: its range does not fit a log-probability.")
    return lambdas_b


def _read_floats(option: str, text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(
            f"{option} {text!r} is not a list of numbers. Write 0,0.5,1 for example."
        ) from error


def _print_cost(cost: Cost) -> None:
    from casewright.stores.progress import note

    if not cost.questions:
        note("All answers have their scores already.")
        return
    duration = "" if cost.seconds is None else f"; about {timedelta(seconds=round(cost.seconds))}"
    note(
        f"The model scores {cost.answers:,} answers in {cost.questions:,} prompts, and reads "
        f"{cost.tokens:,} tokens{duration}."
    )


def _print_calibration(calibration: Calibration, plot: Path | None, *, as_json: bool) -> None:
    from casewright.finetune.demonstrations.calibrate import draw_calibration
    from casewright.serve.cli.bench.report import save_plot

    if plot is not None:
        save_plot(plot, lambda axes: draw_calibration(axes, calibration))
    if as_json:
        print_json(calibration.to_json())
        return
    measure = calibration.measure
    columns = ("λ_d", "λ_b", measure, "from", "to", "dpo", "mean cosine of pairs")
    rows = [
        [f"{r.lambda_d:g}", f"{r.lambda_b:g}", r.benefit, *r.interval, r.dpo, r.cosine]
        for r in calibration.rows
    ]
    questions = f"{calibration.questions} questions, {calibration.k} demonstrations"
    print_table(columns, rows, f"{calibration.model}: {questions}")
    labels = {
        "chosen": "best weights on the other questions",
        "nearest": "plain similarity (λ_d = λ_b = 1)",
        "random": "random cases",
    }
    print_table(
        (f"{measure} on held-out questions", "mean", "from", "to"),
        [[labels[name], *interval] for name, interval in calibration.held_out.items()],
    )
    best = calibration.choice
    echo(
        f"Use λ_d = {best.lambda_d:g} and λ_b = {best.lambda_b:g}: "
        f"MarginalSelector(lambda_d={best.lambda_d:g}, lambda_b={best.lambda_b:g})."
    )
    low, high = best.lambda_d_interval
    echo(
        f"The gain over plain similarity is {best.gain[0]:+.3f} ({best.gain[1]:+.3f} to "
        f"{best.gain[2]:+.3f}) on the questions of the choice. In 95 % of resamples λ_d is "
        f"from {low:g} to {high:g}, λ_b from {best.lambda_b_interval[0]:g} to "
        f"{best.lambda_b_interval[1]:g}. Of {len(calibration.rows)} settings, "
        f"{len(best.as_good)} are not significantly worse."
    )
