"""The model that a training starts from: one that there is, or a new one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from casewright.errors import InputError, told
from casewright.finetune.example import TrainingExample
from casewright.finetune.recipe.training_section import LoraSection, NewModelSection, shared_layer
from casewright.finetune.training.new_model import new_mistral, train_tokenizer
from casewright.finetune.training.placement import Placement
from casewright.planner.language_model import LanguageModel
from casewright.planner.language_model.load import check_base, load_source
from casewright.planner.language_model.source import Source, find_source


def make_base(
    settings: NewModelSection, examples: Sequence[TrainingExample], seed: int, folder: Path
) -> None:
    """Write a new model with random weights, and a tokenizer trained on the examples.

    Equal arguments make equal files.
    """
    texts = (text for one in examples for text in (str(one.prompt), one.completion))
    # Each line once: the same toolbox stands in many prompts, and would drown the questions.
    lines = dict.fromkeys(line for text in texts for line in text.splitlines(keepends=True))
    tokenizer = train_tokenizer(lines, settings.vocabulary)
    network = new_mistral(settings.config, tokenizer, seed)
    folder.mkdir(parents=True, exist_ok=True)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def find_base(name: str) -> Source:
    """Return the folders of a base, a folder or a name at Hugging Face; nothing is read yet.

    Raises:
        InputError: There is no such model, or it is an adapter.
    """
    source = find_source(name, None)
    if source.adapter is not None:
        raise InputError(
            f"model.base: {name!r} is an adapter. Merge it first (casewright finetune train "
            "--merge), and give the merged model."
        )
    return source


def config_of(source: Source | None, settings: NewModelSection | None, base: str) -> Any:
    """Return the configuration of a base that there is, or of a new one.

    Raises:
        InputError: It cannot be read, or is of no model that plans can be decoded with.
    """
    if source is None:
        assert settings is not None
        transformers: Any = import_module("transformers")
        return transformers.MistralConfig(**settings.config)
    try:
        return check_base(source.base)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"model.base: {base!r} cannot be read: {told(error).rstrip('.')}. "
            "Give a causal language model, as save_pretrained writes it."
        ) from error


def check_settings(config: Any, base: str, lora: LoraSection, max_length: int) -> None:
    """Look whether a recipe fits its base, of whose network no weights are made for it.

    PEFT passes over a name in ``modules_to_save`` that there is not.

    Args:
        max_length: Tokens that an example may have.

    Raises:
        InputError: The base reads shorter texts, lacks a layer that is to be trained, or shares it.
    """
    import torch

    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and max_length > positions:
        raise InputError(
            f"training.max_length ({max_length}) is above what {base!r} reads ({positions} "
            f"tokens). Set training.max_length = {positions}, or less."
        )
    if config.tie_word_embeddings and (same := shared_layer(lora)):
        raise InputError(
            f"lora.modules_to_save holds {same!r}, which {base!r} shares between reading and "
            f"writing. Leave {same!r} out."
        )
    transformers: Any = import_module("transformers")
    with torch.device("meta"):
        network = transformers.AutoModelForCausalLM.from_config(config)
    layers = {
        name: layer.weight.dim()
        for name, layer in network.named_modules()
        if name and not any(layer.children()) and any(True for _ in layer.parameters())
    }
    targets = () if isinstance(lora.target_modules, str) else lora.target_modules
    matrices = [name for name, dimensions in layers.items() if dimensions == 2]
    _check_layers("lora.target_modules", targets, matrices, base)
    _check_layers("lora.modules_to_save", lora.modules_to_save, [*layers], base)


def _check_layers(field: str, named: Iterable[str], layers: list[str], base: str) -> None:
    ends = list(dict.fromkeys(layer.rpartition(".")[2] for layer in layers))
    for name in named:
        if not any(f".{layer}".endswith(f".{name}") for layer in layers):
            near = get_close_matches(name, ends, 1)
            mend = f"Did you mean {near[0]!r}?" if near else f"Give some of {', '.join(ends)}."
            raise InputError(f"{field}: {base!r} has no layer {name!r} to train. {mend}")


def load_base(source: Source, title: str, placement: Placement, *, four_bit: bool) -> LanguageModel:
    """Load a base to be trained, whatever form of the prompt it was trained with before.

    Raises:
        InputError: It cannot be loaded; see ``load_language_model``.
        DependencyError: A package that it needs is not installed.
    """
    settings: dict[str, Any] = {"attn_implementation": placement.attention}
    if four_bit:
        from transformers import BitsAndBytesConfig

        settings["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=placement.dtype,
        )
        settings["device_map"] = {"": placement.device}
    return load_source(source, title, placement.device, placement.dtype, settings)
