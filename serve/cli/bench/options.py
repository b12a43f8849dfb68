"""Options that several commands of ``casewright bench`` share, and their parsing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Option

from casewright.errors import InputError

if TYPE_CHECKING:
    from casewright.bench.models import ModelChoice
    from casewright.finetune.corpus import Split

OnlySet = Annotated[str | None, Option("--set", help="Only the set of this name.")]
SetLimit = Annotated[int | None, Option(min=4, help="Limit of questions of each set.")]
MessageLimit = Annotated[int | None, Option(min=1, help="Limit of messages of each set.")]
WritingModel = Annotated[
    str | None, Option(help="A model's or adapter's name or folder; default: the shipped planner.")
]
RandomSize = Annotated[str | None, Option(help="Size of a random model: tiny, 100m, 7b.")]
SplitName = Annotated[str, Option(help="Split of the corpus: measuring (to test) or validation.")]
Seed = Annotated[int, Option(min=0, help="The seed of all random choices.")]


def model_choice(
    model: str | None, adapter: str | None, size: str | None, *device_dtype_seed: Any
) -> ModelChoice:
    """Return the model that options choose: a named one, random weights, or the shipped planner."""
    from casewright.bench.models import ModelChoice
    from casewright.planner.shipped import SHIPPED

    if model and size:
        raise InputError("--size is for random weights. Leave out --size or --model.")
    # Without a name, the weights are random.
    name = model if model or size else SHIPPED
    return ModelChoice(name, adapter, size or "100m", *device_dtype_seed)


def read_split(name: str) -> Split:
    """Return the split that ``--split`` names; raise ``InputError`` for other names."""
    if name not in ("validation", "measuring"):
        raise InputError(
            f"There is no split {name!r} of unseen toolboxes. --split is measuring or validation."
        )
    return cast("Split", name)


def read_numbers(option: str, text: str, minimum: int = 0) -> list[int]:
    """Return the numbers in a text such as ``0,5,20``; raise ``InputError`` for other texts."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) >= minimum for part in parts):
        raise InputError(f"{option} {text!r} is not a list of numbers. Write 5,20,60.")
    return [int(part) for part in parts]
