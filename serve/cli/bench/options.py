"""Options that several commands of ``casewright bench`` share, and how their texts are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from casewright.errors import InputError

if TYPE_CHECKING:
    from casewright.bench.models import ModelChoice
    from casewright.finetune.corpus import Split

#: The option ``--domain`` is in ``serve/cli/options.py``, as are those of every command.
OnlySet = Annotated[str | None, typer.Option("--set", help="Only the set of this name.")]
EncoderModel = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        help="A sentence-transformers model's name or folder; else the packaged one.",
    ),
]
SetLimit = Annotated[
    int | None, typer.Option("--limit", min=4, help="At most so many questions of each set.")
]
MessageLimit = Annotated[
    int | None, typer.Option("--limit", min=1, help="At most so many messages of each set.")
]
WritingModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="A causal language model's name or folder, an adapter's too; by default the planner "
        "that ships.",
        metavar="NAME",
    ),
]
RandomSize = Annotated[
    str | None,
    typer.Option(
        "--size", help="Random weights instead, of a size: tiny, 100m or 7b.", metavar="SIZE"
    ),
]
SplitName = Annotated[
    str,
    typer.Option(
        "--split",
        help="Of the corpus of toolboxes: measuring, or validation to tune by.",
        metavar="NAME",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of every draw.")]
WorkFolder = Annotated[
    Path | None,
    typer.Option(
        "--work",
        help="Keeps the work of a run, so that the same command goes on where it was stopped; in "
        "Casewright's own folders by default.",
        metavar="FOLDER",
    ),
]


def model_choice(
    model: str | None, adapter: str | None, size: str | None, *settings: Any
) -> ModelChoice:
    """Return the model of a bench: a named one, random weights of a size, or the shipped planner.

    Args:
        model: A model's name.
        adapter: An adapter's folder.
        size: Of random weights.
        settings: Device, number format and seed.

    Raises:
        InputError: Both a model and a size are given, or one of them is not usable.
    """
    from casewright.bench.models import ModelChoice
    from casewright.planner.shipped import SHIPPED

    if model and size:
        raise InputError("--size is of random weights. Leave it out, or --model.")
    name = model if model or size else SHIPPED
    return ModelChoice(name, adapter, size or "100m", *settings)


def read_split(name: str) -> Split:
    """Return the split of the corpus that ``--split`` names; raises ``InputError``."""
    if name == "validation":
        return "validation"
    if name == "measuring":
        return "measuring"
    raise InputError(
        f"There is no split {name!r} of unseen toolboxes. --split is measuring or validation."
    )


def read_numbers(option: str, text: str, least: int = 0) -> list[int]:
    """Return the numbers in a text such as ``0,5,20``; raises ``InputError``."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) >= least for part in parts):
        raise InputError(f"{option} {text!r} are no numbers. Write them as 5,20,60.")
    return [int(part) for part in parts]
