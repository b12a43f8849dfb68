"""The card of a model that was trained to plan: with which form of the prompt it was.

A model that learned one wording of the prompt writes worse plans for another, and nothing says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.planner.language_model.source import Source, read_json
from casewright.planner.prompt_hash import prompt_hash

#: In the folder of an adapter or of a model.
CARD = "casewright.json"


def read_card(folder: Path) -> dict[str, Any] | None:
    """Return the card in a model's folder; ``None`` where there is none.

    Raises:
        InputError: It cannot be read.
    """
    file = folder / CARD
    return read_json(file) if file.is_file() else None


def check_card(source: Source) -> None:
    """Refuse a model that was trained with another form of the prompt than it would be given.

    The adapter's card counts where it has one, since it was trained last. Nothing is asked of a
    model without a card.

    Raises:
        InputError: The prompt's hash is another; or the card cannot be read or has none.
    """
    folders = [folder for folder in (source.adapter, source.base) if folder is not None]
    found = next((folder / CARD for folder in folders if (folder / CARD).is_file()), None)
    if found is None:
        return
    card, own = read_json(found), prompt_hash()
    trained = card.get("prompt_hash")
    if not isinstance(trained, str) or not trained:
        raise InputError(f"{found} has no prompt_hash. Copy the trained model's folder anew.")
    if trained != own:
        version = card.get("casewright")
        by = f"Casewright {version}" if isinstance(version, str) else "another Casewright"
        raise InputError(
            f"{str(found.parent)!r} was trained with another form of the prompt ({trained}) than "
            f"this Casewright writes ({own}), and would plan badly. Train it again "
            f"(casewright finetune train), or use {by}, which it was trained with."
        )
