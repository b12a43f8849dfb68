"""A model that rows start from: it must know nothing of what they are then asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from casewright.bench.reaper.workplace import Start, fingerprint
from casewright.errors import InputError
from casewright.finetune.training.model_card import TRAINED_BEFORE
from casewright.planner.language_model.card import read_card
from casewright.tools import NO_EVIDENCE, Toolbox


def given_start(folder: Path, toolbox: Toolbox) -> Start:
    """Return a model to start from, which was trained elsewhere.

    Its cards must not name a tool of the domain: what a row leaves out, the model would know
    already. A model without a card is taken as one that was trained on other things.

    Args:
        folder: The model's.
        toolbox: The domain's.

    Raises:
        InputError: It is no folder, or has learned to plan with these tools.
    """
    if not folder.is_dir():
        raise InputError(f"--start {folder} is no folder. Give a model's.")
    told: Any = read_card(folder)
    while isinstance(told, Mapping):
        data = told.get("data")
        manifest = data.get("manifest", {}) if isinstance(data, Mapping) else {}
        names = set(manifest.get("toolbox", {}).get("tools", ())) - {NO_EVIDENCE.name}
        if known := sorted(names & set(toolbox.names)):
            raise InputError(
                f"--start {folder} was trained to plan with {known[0]}, which is a tool of this "
                "domain: it knows what rows leave out. Give a model that was trained with other "
                "tools, or leave --start out."
            )
        told = told.get(TRAINED_BEFORE)
    place = folder.expanduser().absolute()
    return Start(str(place), f"start-{fingerprint(place)}")
