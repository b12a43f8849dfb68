"""Options that several commands of ``casewright bench`` share, and the parsing of their texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from casewright.errors import InputError

if TYPE_CHECKING:
    from casewright.bench.models import ModelChoice
    from casewright.finetune.corpus import Split

OnlySet = Annotated[str | None, Option("--set", help="Only the set of this name.")]
EncoderModel = Annotated[
    str | None, Option(help="A sentence-transformers model; the packaged one by default.")
]
SetLimit = Annotated[int | None, Option(min=4, help="At most so many questions of each set.")]
MessageLimit = Annotated[int | None, Option(min=1, help="At most so many messages of each set.")]
WritingModel = Annotated[
    str | None,
    Option(
        help="A language model's or adapter's name or folder; the shipped planner by default.",
        metavar="NAME",
    ),
]
RandomSize = Annotated[
    str | None, Option(help="Random weights of a size: tiny, 100m, 7b.", metavar="SIZE")
]
SplitName = Annotated[
    str, Option(help="Split of the corpus: measuring or validation.", metavar="NAME")
]
Seed = Annotated[int, Option(min=0, help="Of every draw.")]
WorkFolder = Annotated[
    Path | None, Option(help="Files with which a stopped command goes on.", metavar="FOLDER")
]


def model_choice(
    model: str | None, adapter: str | None, size: str | None, *settings: Any
) -> ModelChoice:
    """Return a named model, random weights of a size, or the shipped planner, with settings."""
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
