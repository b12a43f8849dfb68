"""Writing what was trained: an adapter, and the adapter merged into its base."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.finetune.training.model_card import write_cards
from casewright.finetune.training.run import BASE, Run
from casewright.planner.language_model import load_language_model
from casewright.planner.language_model.source import ADAPTER, ADAPTER_WEIGHTS, read_json
from casewright.stores.whole_file import write_whole

if TYPE_CHECKING:
    import torch

#: In an output folder.
MERGED = "merged"


def save_trained(run: Run, network: Any, tokenizer: Any, dtype: torch.dtype) -> None:
    """Write an adapter, and the tokenizer that it was trained with.

    Args:
        run: Says where to.
        dtype: Of the weights, where the recipe names one; else they keep their own.
    """
    network.save_pretrained(run.output, save_embedding_layers=False)
    if run.model.save_dtype is not None:
        cast_weights(run.output / ADAPTER_WEIGHTS, dtype)
    file = run.output / ADAPTER
    named = f"./{BASE}" if run.model.made else base_name(run.model.base, run.output)
    settings = {**read_json(file), "base_model_name_or_path": named}
    write_whole(file, json.dumps(settings, indent=2, sort_keys=True))
    tokenizer.save_pretrained(run.output)


def cast_weights(file: Path, dtype: torch.dtype) -> None:
    """Write the weights of a safetensors file in another number format."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    with safe_open(file, "pt") as opened:
        weights = {name: opened.get_tensor(name).to(dtype) for name in opened.keys()}  # noqa: SIM118
        told = opened.metadata()
    save_file(weights, file, told)


def save_merged(output: Path, card: Mapping[str, Any], dtype: str) -> Path:
    """Write the model that serving makes of an adapter, and return its folder."""
    # Read anew: a base that was trained in four bits is merged in more.
    merged = load_language_model(output, device="cpu", dtype=dtype)
    folder = output / MERGED
    folder.mkdir(exist_ok=True)
    merged.network.save_pretrained(folder)
    merged.tokenizer.save_pretrained(folder)
    write_cards(folder, {**card, "kind": "merged"})
    return folder


def base_name(given: str, output: Path) -> str:
    """Return what an adapter names as its base.

    A folder that was given relatively is named from the output folder on, so that both may move
    together; one that was given from the root stays so, and a name at Hugging Face is a name.
    """
    folder = Path(given).expanduser()
    if not folder.is_dir() or folder.is_absolute():
        return str(folder) if folder.is_dir() else given
    named = os.path.relpath(folder.resolve(), output.resolve())
    return named if named.startswith(".") else f"./{named}"
