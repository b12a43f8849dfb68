"""`casewright finetune cross-encoder`: training of the model that finds answers in passages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson, Device, Seed
from casewright.serve.cli.output import print_facts

if TYPE_CHECKING:
    from casewright.finetune.cross_encoder.groups import Group, QuotedQuestion

#: Maximum number of passages that the search for a question returns.
MAX_PASSAGES = 24

app = Typer(add_completion=False)


@app.command("cross-encoder")
def finetune_cross_encoder(
    data: Annotated[
        Path,
        Argument(
            help="A folder with trees (folders of documents) and the questions in questions.jsonl."
        ),
    ],
    target: Annotated[Path, Option("--output", help="The file for the weights, *.safetensors.")],
    base: Annotated[
        Path | None, Option(help="The weights to begin with, by default the packaged ones.")
    ] = None,
    minutes: Annotated[float, Option(min=0.1, help="Maximum duration of the training.")] = 60,
    held_out: Annotated[
        list[str] | None, Option(help="A tree only for the test; repeatable.")
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Train the cross-encoder on questions and the quotes that answer them.

    A line of questions.jsonl names a tree, and has a question and a quote that answers it, if any.
    """
    from casewright.finetune.cross_encoder.groups import check_held_out, read_questions
    from casewright.finetune.cross_encoder.training import (
        CrossEncoderSettings,
        train_cross_encoder,
    )
    from casewright.finetune.training.run import check_writable
    from casewright.planner.language_model.device import check_names, find_device
    from casewright.stores.encoders.cross_encoder import WEIGHTS
    from casewright.stores.encoders.mpnet_weights import read_weights

    questions = read_questions(data)
    if target.is_dir():
        raise InputError(f"--output {target} is a folder. Give the name of a file in it.")
    check_writable(target.parent)
    check_held_out(held_out or (), questions)
    check_names(device, dtype=None)
    find_device(device)
    weights = base or WEIGHTS
    # Unreadable weights are refused before the long work.
    read_weights(weights)
    settings = CrossEncoderSettings(minutes=minutes, seed=seed)
    groups = list(_training_groups(data, questions))
    facts = train_cross_encoder(
        groups, target, settings, base=weights, held_out=held_out or (), device=device
    )
    print_facts({"file": str(target), **facts}, as_json=as_json)


def _training_groups(data: Path, questions: list[QuotedQuestion]) -> Iterator[Group]:
    """Yield each question with the passages that a search of its tree finds."""
    from casewright.finetune.cross_encoder.groups import make_groups
    from casewright.stores import CaseStore, default_encoder, document_schema, ingest
    from casewright.stores.passages.search import PassageSearch
    from casewright.stores.passages.text import passage_markdown
    from casewright.stores.progress import progress_bar

    for tree, questions_of_tree in groupby(questions, key=lambda question: question.tree):
        with CaseStore(document_schema(default_encoder())) as store:
            ingest(store, data / tree)
            search = PassageSearch(store)

            def find_passages(question: str, search: PassageSearch = search) -> dict[str, float]:
                hits, scores = search.candidates(question, MAX_PASSAGES)
                passages: dict[str, float] = {}
                for hit in hits:
                    passages.setdefault(passage_markdown(hit.case), scores[hit.case.id])
                return passages

            tree_questions = list(questions_of_tree)
            with progress_bar(tree, len(tree_questions)) as advance:
                for group in make_groups(tree_questions, find_passages):
                    yield group
                    advance(1)
