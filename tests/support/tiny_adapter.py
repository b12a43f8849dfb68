"""An adapter on a tiny Mistral, in the form in which the planner `mistral` ships."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from casewright.planner.prompt import prompt_hash
from tests.support.tiny_mistral import save_tiny, tiny_mistral

#: Weights that tell prompts from each other, and positions for the shop's prompt.
CONFIG: dict[str, Any] = {"initializer_range": 0.3, "max_position_embeddings": 8192}


def save_tiny_adapter(folder: Path, base: str | None = None, **card: object) -> Path:
    """Write an adapter of random numbers with its card; return its folder.

    Args:
        folder: Below which adapter and base are written.
        base: The model that it names; a tiny Mistral beside it by default.
        card: What the card says beside the prompt's hash.
    """
    torch: Any = import_module("torch")
    peft: Any = import_module("peft")
    config = peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        made = peft.get_peft_model(tiny_mistral(**CONFIG).network, config)
        for name, parameter in made.named_parameters():
            if "lora_" in name:
                parameter.data.normal_(std=0.1)
    adapter = folder / "adapter"
    made.save_pretrained(adapter)
    file = adapter / "adapter_config.json"
    named = base if base is not None else str(save_tiny(folder / "base", **CONFIG))
    told = json.loads(file.read_text(encoding="utf-8")) | {"base_model_name_or_path": named}
    file.write_text(json.dumps(told), encoding="utf-8")
    said = json.dumps({"prompt_hash": prompt_hash(), **card})
    (adapter / "casewright.json").write_text(said, encoding="utf-8")
    return adapter
