"""The packaged language model for planning: a LoRA adapter on a pretrained base.

The adapter of the planner ``mistral`` is in the folder ``mistral``, with the card and the log that
``casewright finetune train`` wrote. Despite this name, the adapter's base is SmolLM2.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.planner.language_model.card import CARD, read_card
from casewright.planner.language_model.smollm2 import is_installed
from casewright.planner.language_model.source import ADAPTER_WEIGHTS
from casewright.planner.plan_cases import EXAMPLE_COUNT

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Name of the planner with the packaged adapter.
SHIPPED = "mistral"
FOLDER = Path(__file__).parent / SHIPPED
#: Keys of a card, from the outer to the inner, for the number of plan cases in training prompts.
_CASE_COUNT_PATH = ("data", "manifest", "data", "tevo", "shots")


def adapter_folder(folder: Path | None = None) -> Path:
    """Return a folder, by default ``FOLDER``; raise ``InputError`` if it contains no adapter."""
    chosen = folder or FOLDER
    if not has_adapter(chosen):
        raise InputError(
            f"The language model {SHIPPED!r} is not in this installation. Train it: casewright "
            "finetune data --recipe small --output DATA, then casewright finetune train --recipe "
            f"small --data DATA --output {chosen}; or choose another planner."
        )
    return chosen


def adapter_example_count(folder: Path | None = None) -> int:
    """Return the number of plan cases in the training prompts; ``EXAMPLE_COUNT`` if unknown."""
    entry: Any = read_card(adapter_folder(folder))
    for key in _CASE_COUNT_PATH:
        entry = entry.get(key) if isinstance(entry, dict) else None
    return entry if isinstance(entry, int) and entry >= 0 else EXAMPLE_COUNT


def has_adapter(folder: Path | None = None) -> bool:
    """Return True if a folder, by default ``FOLDER``, contains an adapter."""
    chosen = folder or FOLDER
    # Training writes the card last, so an interrupted training leaves no card.
    return (chosen / CARD).is_file() and (chosen / ADAPTER_WEIGHTS).is_file()


def is_runnable() -> bool:
    """Return True if the packaged adapter, its base and torch are installed."""
    return has_adapter() and is_installed() and find_spec("torch") is not None


def load_shipped(
    folder: Path | None = None,
    device: str | None = None,
    dtype: str | None = None,
    title: str = SHIPPED,
) -> LanguageModel:
    """Load an adapter that Casewright trained, by default the packaged one, merged into its base.

    The dtype is ``int8`` by default on a CPU. See ``load_language_model`` for the other arguments.

    Raises:
        InputError: The adapter is missing, is damaged or was trained with another prompt; or the
            device or dtype is not available.
        DependencyError: The base is not installed; the message has the command that installs it.
    """
    adapter = adapter_folder(folder)
    from casewright.planner.language_model import load_language_model
    from casewright.planner.language_model.device import check_names, find_device

    check_names(device, dtype)
    if dtype is None and find_device(device).type == "cpu":
        dtype = "int8"
    return load_language_model(adapter, device=device, dtype=dtype, title=title)
