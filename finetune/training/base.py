"""The model that a training starts from: one that there is, or a new one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from casewright.errors import InputError, told
from casewright.finetune.examples.example import TrainingExample
from casewright.finetune.recipe.training_section import LoraSection, NewModelSection
from casewright.finetune.training.copying_heads import write_copying_heads
from casewright.finetune.training.encoder_embeddings import encoder_embeddings
from casewright.finetune.training.layers import check_layers
from casewright.finetune.training.new_model import new_mistral
from casewright.finetune.training.placement import Placement
from casewright.finetune.training.plan_tokenizer import prompt_pieces, train_tokenizer
from casewright.planner.language_model import LanguageModel
from casewright.planner.language_model.load import check_base, load_source
from casewright.planner.language_model.source import Source, find_source
from casewright.stores.encoders.minilm import packaged_minilm


def make_base(
    settings: NewModelSection, examples: Sequence[TrainingExample], seed: int, folder: Path
) -> None:
    """Write a new model with random weights, and a tokenizer trained on the examples.

    Equal arguments make equal files.

    Args:
        settings: Its size.
        examples: What the tokenizer is trained on.
        seed: Draws the weights.
        folder: Is made.
    """
    texts = (text for one in examples for text in (str(one.prompt), one.completion))
    tokenizer = train_tokenizer(prompt_pieces(texts), settings.vocabulary, plans=True)
    network = new_mistral(mistral_settings(settings), tokenizer, seed)
    if settings.embeddings == "encoder":
        import torch

        with torch.no_grad():
            vectors = encoder_embeddings(tokenizer, settings.hidden, packaged_minilm(), seed)
            # The tokenizer may have found fewer tokens than there is room for.
            network.get_input_embeddings().weight[: len(vectors)] = vectors
    if settings.copying_heads:
        write_copying_heads(network, seed)
    folder.mkdir(parents=True, exist_ok=True)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def mistral_settings(section: NewModelSection) -> dict[str, Any]:
    """Return a section's settings by the names that ``MistralConfig`` has for them."""
    return {
        "vocab_size": section.vocabulary,
        "hidden_size": section.hidden,
        "num_hidden_layers": section.layers,
        "num_attention_heads": section.heads,
        "num_key_value_heads": section.kv_heads,
        "intermediate_size": section.intermediate,
        "max_position_embeddings": section.positions,
        "tie_word_embeddings": section.tied,
        "rope_parameters": {"rope_type": "default", "rope_theta": section.rope_base},
    }


def find_base(name: str) -> Source:
    """Return the folders of a base; its weights are not read yet.

    Args:
        name: A folder, or a name at Hugging Face.

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


def check_settings(config: Any, base: str, lora: LoraSection, max_length: int) -> None:
    """Look whether a recipe fits its base, which is not loaded for it.

    Args:
        config: The base's, of transformers.
        base: Its name.
        lora: What of it is to be trained.
        max_length: Tokens that an example may have.

    Raises:
        InputError: The base reads shorter texts, or lacks a layer that is to be trained.
    """
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and max_length > positions:
        raise InputError(
            f"training.max_length ({max_length}) is above what {base!r} reads ({positions} "
            f"tokens). Set training.max_length = {positions}, or less."
        )
    if lora.method == "lora":
        check_layers(config, base, lora)


def config_of(source: Source | None, settings: NewModelSection | None, base: str) -> Any:
    """Return the configuration of a base that there is, or of a new one.

    Raises:
        InputError: It cannot be read, or is of no model that plans can be decoded with.
    """
    if source is None:
        assert settings is not None
        transformers: Any = import_module("transformers")
        return transformers.MistralConfig(**mistral_settings(settings))
    try:
        return check_base(source.base)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"model.base: {base!r} cannot be read: {told(error).rstrip('.')}. "
            "Give a causal language model, as save_pretrained writes it."
        ) from error


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
    return load_source(source, title, placement.device, placement.weights, settings)
