"""`casewright finetune …`: the command group, and its commands `reader` and `judge`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from casewright.errors import InputError
from casewright.serve.cli.extended import extended_group
from casewright.serve.cli.finetune import (
    cross_encoder,
    data,
    encoder,
    evaluate,
    parser,
    queries,
    train,
)
from casewright.serve.cli.options import AsJson, DomainName
from casewright.serve.cli.output import print_facts, print_json, print_rows

if TYPE_CHECKING:
    from casewright.finetune.judge_sets.sets import LabelledSet

app = Typer(
    cls=extended_group("finetune_command"),
    help="Make training data, train and evaluate planners; train the case planner's reader or the "
    "judge of relevance feedback.",
)
for module in (data, train, parser, encoder, cross_encoder, evaluate, queries):
    app.add_typer(module.app)

#: The licence of each training set; a trained judge's file contains the licences.
_LICENCES = {
    "musique": "CC BY 4.0",
    "hotpotqa": "CC BY-SA 4.0",
    "2wikimultihop": "Apache-2.0",
    "scifact": "claims CC BY 4.0, abstracts ODC-By 1.0",
    **dict.fromkeys(("code", "code_described"), "of the packages named"),
}


@app.command("reader")
def finetune_reader(
    target: Annotated[Path, Option("--output", help="The folder to write the reader to.")],
    domain: DomainName = "shopping",
    source: Annotated[
        Path | None, Option("--input", help="Annotated queries; the domain's by default.")
    ] = None,
    epochs: Annotated[int | None, Option(min=1, help="Default: 6, more for few queries.")] = None,
    seed: Annotated[int, Option(help="The seed of random choices.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train the reader (the case planner's network) on annotated queries; it takes some minutes."""
    from casewright.domains import find_domain
    from casewright.finetune.reader_training import ReaderSettings, train_reader
    from casewright.planner import read_annotated
    from casewright.planner.reader_weights import check_target, save_reader

    queries = find_domain(domain).queries() if source is None else read_annotated(source)
    check_target(target)
    network, card = train_reader(queries, ReaderSettings(epochs=epochs, seed=seed))
    save_reader(target, network, card)
    print_facts({"folder": str(target), **card.training}, as_json=as_json)


@app.command("judge")
def finetune_judge(
    target: Annotated[Path, Option("--output", help="The JSON file to write the judge to.")],
    data: Annotated[
        Path | None,
        Option(
            help="A folder with the multi-hop sets, or with cases.jsonl and questions.jsonl; "
            "installed packages' code by default."
        ),
    ] = None,
    only: Annotated[str | None, Option("--set", help="Use only the set of this name.")] = None,
    limit: Annotated[int | None, Option(min=4, help="Limit of questions of each set.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train the offline judge of relevance feedback on half of the questions; test it on the rest.

    A hash of a question's id decides its half. The figures compare a single search with feedback
    loops that return as many cases. A loop's judge is this judge, the labels, or a judge that was
    trained on shuffled labels.
    """
    from casewright.finetune.judge_training import train_judge
    from casewright.finetune.training.run import check_writable

    if target.is_dir():
        raise InputError(f"--output {target} is a folder. Give the name of a file in it.")
    check_writable(target.parent)
    with _labelled_sets(data, only, limit) as sets:
        model = train_judge(sets)
    model.save(target)
    if as_json:
        thresholds = {"first": model.first.threshold, "later": model.later.threshold}
        print_json({"file": str(target), "thresholds": thresholds, **model.training})
        return
    rows = [
        {"set": name, "strategy": strategy, **figures}
        for name, figures_by_strategy in model.training["test_figures"].items()
        for strategy, figures in figures_by_strategy.items()
    ]
    print_rows(rows, str(target))


@contextmanager
def _labelled_sets(
    data: Path | None, only: str | None, limit: int | None
) -> Iterator[list[LabelledSet]]:
    """Yield the sets of a folder, or of installed packages' code, each with a temporary store."""
    from casewright.finetune.judge_sets.find import find_sets
    from casewright.finetune.judge_sets.sets import LabelledSet
    from casewright.stores import default_encoder
    from casewright.stores.feedback import NeighbourStrategy, SentenceStrategy, Strategy

    encoder = default_encoder()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="casewright-judge-")))
        sets: list[LabelledSet] = []
        for whole_set in find_sets(data, only, limit):
            training, test = (whole_set.half(training=is_training) for is_training in (True, False))
            store = stack.enter_context(whole_set.store(encoder, folder / whole_set.name))
            is_code = whole_set.kind == "code"
            strategy: Strategy = NeighbourStrategy() if is_code else SentenceStrategy()
            origin = {"licence": _LICENCES.get(whole_set.name, ""), **whole_set.origin}
            sets.append(LabelledSet(whole_set.name, store, training, test, (strategy,), origin))
        yield sets
