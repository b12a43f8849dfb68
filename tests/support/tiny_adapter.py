"""An adapter for a tiny Mistral, in the format of the shipped planner `mistral`."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from casewright.planner.prompt import prompt_hash
from tests.support.tiny_mistral import save_tiny, tiny_mistral

#: Weights so large that the output depends on the prompt, and positions for the shop's prompt.
CONFIG: dict[str, Any] = {"initializer_range": 0.3, "max_position_embeddings": 8192}


def save_tiny_adapter(folder: Path, base: str | None = None, **card: object) -> Path:
    """Write an adapter of random weights with its card; return the adapter's folder.

    Args:
        folder: The folder for adapter and base.
        base: The base model that the adapter names; by default, a tiny Mistral in ``folder``.
        card: Fields of the card, in addition to the prompt's hash.
    """
    torch: Any = import_module("torch")
    peft: Any = import_module("peft")
    config = peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = peft.get_peft_model(tiny_mistral(**CONFIG).network, config)
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.data.normal_(std=0.1)
    adapter = folder / "adapter"
    model.save_pretrained(adapter)
    file = adapter / "adapter_config.json"
    base_name = base if base is not None else str(save_tiny(folder / "base", **CONFIG))
    settings = json.loads(file.read_text(encoding="utf-8"))
    settings["base_model_name_or_path"] = base_name
    file.write_text(json.dumps(settings), encoding="utf-8")
    card_text = json.dumps({"prompt_hash": prompt_hash(), **card})
    (adapter / "casewright.json").write_text(card_text, encoding="utf-8")
    return adapter
