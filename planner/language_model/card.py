"""Reads and checks a trained planner's card, a file with a hash of the training prompt's format.

A model plans worse, without an error, if a prompt differs in its format from the training prompt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.planner.language_model.source import ModelSource, read_json
from casewright.planner.prompt import prompt_hash

#: Name of the card in the folder of an adapter or of a model.
CARD = "casewright.json"


def read_card(folder: Path) -> dict[str, Any] | None:
    """Return the card in a model's folder, if any; raise ``InputError`` if it is damaged."""
    file = folder / CARD
    return read_json(file) if file.is_file() else None


def check_card(source: ModelSource) -> None:
    """Raise ``InputError`` if a card's prompt hash is missing or differs from ``prompt_hash()``.

    An adapter's card takes precedence over the base model's. A model without a card is accepted.
    """
    folders = [folder for folder in (source.adapter, source.base) if folder is not None]
    file = next((folder / CARD for folder in folders if (folder / CARD).is_file()), None)
    if file is None:
        return
    card, current_hash = read_json(file), prompt_hash()
    trained_hash = card.get("prompt_hash")
    if not isinstance(trained_hash, str) or not trained_hash:
        raise InputError(f"{file} has no prompt_hash. Copy the trained model's folder anew.")
    if trained_hash != current_hash:
        version = card.get("casewright")
        trained_by = f"Casewright {version}" if isinstance(version, str) else "another Casewright"
        raise InputError(
            f"{str(file.parent)!r} was trained with another prompt ({trained_hash}) than "
            f"this Casewright writes ({current_hash}), and would plan badly. Train it again "
            f"(casewright finetune train), or use {trained_by}, which it was trained with."
        )
