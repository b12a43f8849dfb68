"""`casewright finetune …`: the command group, and the commands for the reader and the judge."""

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

#: Licences of the training sets, which a trained judge records.
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
    """Train the case planner's reader on annotated queries, in minutes on two cores."""
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
    only: Annotated[str | None, Option("--set", help="Only the set of this name.")] = None,
    limit: Annotated[int | None, Option(min=4, help="Limit of questions of each set.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train the offline judge of relevance feedback on half of the questions, test on the others.

    A hash of a question's id decides its half. The figures compare a single search with feedback
    loops of the same size, judged by this judge, the labels, or a judge of shuffled labels.
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
    """Yield the sets of a folder, or of installed packages' code, with temporary stores."""
    from casewright.finetune.judge_sets.find import find_sets
    from casewright.finetune.judge_sets.sets import LabelledSet
    from casewright.stores import default_encoder
    from casewright.stores.feedback import NeighbourStrategy, SentenceStrategy, Strategy

    encoder = default_encoder()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="casewright-judge-")))
        sets: list[LabelledSet] = []
        for labelled in find_sets(data, only, limit):
            training, test = (labelled.half(training=is_training) for is_training in (True, False))
            store = stack.enter_context(labelled.store(encoder, folder / labelled.name))
            is_code = labelled.kind == "code"
            strategy: Strategy = NeighbourStrategy() if is_code else SentenceStrategy()
            facts = {"licence": _LICENCES.get(labelled.name, ""), **labelled.origin}
            sets.append(LabelledSet(labelled.name, store, training, test, (strategy,), facts))
        yield sets
