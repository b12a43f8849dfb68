"""The language model that ships with the package: a small Mistral that was trained to plan.

It lies beside this file as any trained model does, with its cards. ``casewright finetune ship``
puts it there; the package holds nothing of it that was made in another way.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.planner.language_model.card import CARD, read_card
from casewright.planner.numpy_model import can_compute, load_numpy_model
from casewright.planner.plan_cases import EXAMPLES

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel
    from casewright.planner.numpy_model import NumpyModel

#: Its name as a planner.
SHIPPED = "mistral"
FOLDER = Path(__file__).parent / SHIPPED
#: In its card: plan cases that its training prompts showed, which is how many it is shown.
EXAMPLES_SHOWN = "examples"
#: What a model this small is helped by, having read a few thousand questions only: the weight of
#: the plan cases' prior over its tools, and that its texts are spans of the question.
PRIOR, SPANS = 1.0, True


def shipped_planner(folder: Path | None = None) -> Path:
    """Return the folder of the model that ships: safetensors, tokenizer, cards, training logs.

    Args:
        folder: Where it is looked for; in the package by default.

    Raises:
        InputError: It is not there.
    """
    found = folder or FOLDER
    # The card is written last: where it is, all else is.
    if not is_shipped(found):
        raise InputError(
            f"The language model {SHIPPED!r} is not in this installation. Make it: casewright "
            "finetune train, then casewright finetune ship; or choose another planner."
        )
    return found


def shipped_examples(folder: Path | None = None) -> int:
    """Return how many plan cases its prompt shows, by its card.

    Raises:
        InputError: The model is not there, or its card cannot be read.
    """
    shown = (read_card(shipped_planner(folder)) or {}).get(EXAMPLES_SHOWN)
    return shown if isinstance(shown, int) and shown >= 0 else EXAMPLES


def is_shipped(folder: Path | None = None) -> bool:
    """Say whether the model is there."""
    return ((folder or FOLDER) / CARD).is_file()


def load_shipped(
    folder: Path | None = None, *, device: str | None = None, dtype: str | None = None
) -> LanguageModel | NumpyModel:
    """Load the model that ships.

    On the CPU in float32 NumPy computes it, which starts earlier: neither torch nor transformers
    is imported. So small a model gains little from a GPU, and is put on one only
    where a device is named.

    Args:
        folder: Where it is; in the package by default.
        device: As for ``load_language_model``; the CPU by default.
        dtype: As for ``load_language_model``: float32 on a CPU whatever it is stored in, since
            many CPUs have no instructions for bfloat16.

    Raises:
        InputError: It is not there, is damaged, or the device or the dtype cannot be had.
    """
    found = shipped_planner(folder)
    if device in (None, "cpu") and dtype in (None, "float32") and can_compute(found):
        return load_numpy_model(found, SHIPPED)
    from casewright.planner.language_model import load_language_model

    return load_language_model(found, device=device or "cpu", dtype=dtype, title=SHIPPED)
