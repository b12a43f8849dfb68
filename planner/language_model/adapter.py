"""Merges a PEFT adapter into its base model."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from casewright.errors import InputError, one_line
from casewright.planner.language_model.source import ADAPTER, ADAPTER_WEIGHTS, read_json


def merge_adapter(network: Any, folder: Path) -> Any:
    """Return the network with an adapter merged into its weights.

    Decoding is then as fast as without an adapter. The merged weights are rounded to the dtype of
    the network.

    Raises:
        ImportError: PEFT is not installed.
        InputError: The adapter is a pickle, cannot be read, is not for this network, or changes
            prompts instead of weights.
    """
    weights = folder / ADAPTER_WEIGHTS
    if not weights.is_file():
        raise InputError(
            f"The adapter {str(folder)!r} has no {ADAPTER_WEIGHTS}. A pickle (*.bin) could run "
            "code when it is read, and is not loaded. Save the adapter with PEFT's save_pretrained."
        )
    from peft import PeftModel, get_peft_model_state_dict
    from safetensors import safe_open

    task = read_json(folder / ADAPTER).get("task_type")
    if task not in (None, "CAUSAL_LM"):
        raise _adapter_error(folder, f"it is for the task {task}")
    try:
        with safe_open(weights, "pt") as file:
            stored_names = set(file.keys())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model: Any = PeftModel.from_pretrained(
                network, str(folder), torch_device=str(network.device)
            )
        loadable_names = set(get_peft_model_state_dict(model, save_embedding_layers=True))
        required_names = set(get_peft_model_state_dict(model, save_embedding_layers=False))
    except Exception as error:
        raise _adapter_error(folder, one_line(error).rstrip(".")) from error
    # PEFT ignores weights that do not match, so their names are checked here.
    if mismatched := sorted((stored_names - loadable_names) | (required_names - stored_names)):
        lacking_part = "network" if mismatched[0] in stored_names else "adapter"
        example = f"for example, {mismatched[0]} is not in the {lacking_part}"
        raise _adapter_error(folder, f"{len(mismatched)} of its weights do not fit; {example}")
    if not hasattr(model, "merge_and_unload"):
        raise _adapter_error(folder, "it changes prompts, not weights")
    return model.merge_and_unload()


def _adapter_error(folder: Path, reason: str) -> InputError:
    return InputError(
        f"The adapter {str(folder)!r} could not be added to the model: {reason}. Give an adapter "
        "(such as LoRA) that was trained on this very model."
    )
