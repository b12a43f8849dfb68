"""A training that starts from the weights of an adapter which was trained before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright.errors import InputError, told
from casewright.finetune.recipe.training_section import LoraSection, ModelSection
from casewright.finetune.training.base import find_base
from casewright.planner.language_model.card import CARD, read_card
from casewright.planner.language_model.source import (
    ADAPTER,
    ADAPTER_WEIGHTS,
    find_source,
    read_json,
)


@dataclass(frozen=True, slots=True)
class WarmStart:
    """An adapter to start from; the optimiser and the schedule start anew.

    Attributes:
        card: Its card: on what it was trained, how long, and to which losses.
    """

    weights: Path
    sha256: str
    card: Mapping[str, Any]


def find_start(folder: Path, model: ModelSection, lora: LoraSection) -> WarmStart:
    """Return the adapter in a folder, if a training of this kind can start from it.

    Whether it has the same layers is checked when it is loaded.

    Raises:
        InputError: It is no trained adapter, or one of another base, rank or scale.
    """
    missing = [n for n in (ADAPTER, ADAPTER_WEIGHTS, CARD) if not (folder / n).is_file()]
    if missing:
        raise InputError(
            f"--from {folder} is no trained adapter: it has no {missing[0]}. Give a folder that "
            "casewright finetune train wrote."
        )
    if model.made:
        raise InputError(
            "--from starts from an adapter of a base that there is, and the recipe trains on a new "
            "base. Set model.base to the adapter's base, or leave out --from."
        )
    card = read_card(folder) or {}
    if find_source(folder, None).base.resolve() != find_base(model.base).base.resolve():
        raise InputError(
            f"--from {folder} is an adapter of the base {card.get('base')!r}, not of "
            f"{model.base!r}. Give its own base by --base."
        )
    settings = read_json(folder / ADAPTER)
    for field, name, own in (("r", "r", lora.r), ("alpha", "lora_alpha", lora.alpha)):
        if settings.get(name) != own:
            raise InputError(
                f"--from {folder} has lora.{field} = {settings.get(name)}, and the recipe {own}. "
                f"Set lora.{field} = {settings.get(name)}."
            )
    weights = folder / ADAPTER_WEIGHTS
    with weights.open("rb") as opened:
        return WarmStart(weights, hashlib.file_digest(opened, "sha256").hexdigest(), card)


def load_start(network: Any, start: WarmStart) -> None:
    """Put an adapter's weights into a network of PEFT.

    Raises:
        InputError: Its file is damaged, or has other layers than the network's adapter.
    """
    from peft import get_peft_model_state_dict, set_peft_model_state_dict
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        weights = load_file(start.weights)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{start.weights} cannot be read: {told(error)}. Copy it anew.") from error
    own = get_peft_model_state_dict(network, save_embedding_layers=False)
    shapes = ({name: part.shape for name, part in each.items()} for each in (weights, own))
    before, now = shapes
    if before != now:
        other = next(n for n in sorted(before.keys() | now.keys()) if before.get(n) != now.get(n))
        raise InputError(
            f"--from {start.weights.parent} has other layers than the recipe, among them {other}. "
            "Set lora.target_modules and lora.modules_to_save as its adapter_config.json has them."
        )
    set_peft_model_state_dict(network, weights)
