"""From some annotated messages to an adapter for one toolbox, in minutes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from casewright.errors import InputError
from casewright.finetune.recipe.data_section import DataSection
from casewright.planner import AnnotatedQuery

#: Annotated messages that are enough to be worth a training, and that it has time for.
FEWEST, MOST = 20, 500
#: Examples that are trained on, however many messages they are copies of.
EXAMPLES = 480
#: Minutes of the whole that are kept for loading, the two validations and saving.
KEPT_MINUTES = 1.0


def adapted_data(
    data: DataSection, domain: str, source: Path, queries: Sequence[AnnotatedQuery]
) -> DataSection:
    """Return a recipe's data section for the messages of one domain.

    Args:
        data: The recipe's.
        domain: The domain's name, or ``FILE.py:NAME``.
        source: The file of the messages.
        queries: The messages in it.

    Raises:
        InputError: They are too few or too many.
    """
    count = len(queries)
    if not FEWEST <= count <= MOST:
        mend = (
            "Write more: casewright draft proposes some, casewright correct adds one."
            if count < FEWEST
            else "Choose some: casewright finetune sample; or train as casewright finetune train."
        )
        raise InputError(
            f"{source} has {count} annotated messages, and {FEWEST} to {MOST} can be trained on "
            f"in minutes. {mend}"
        )
    changes = {
        "domain": domain,
        "toolbox": None,
        "queries": source.absolute(),
        "copies": max(1, round(EXAMPLES / count)),
    }
    return data.model_copy(update=changes)


def training_minutes(minutes: float, spent: float) -> float:
    """Return how long the steps may take.

    Args:
        minutes: What all may take.
        spent: Seconds that have passed.
    """
    return max(0.0, minutes - spent / 60 - KEPT_MINUTES)
