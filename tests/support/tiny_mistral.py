"""Tiny Mistral models with random weights, which are created in milliseconds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from casewright.finetune.training.base import new_mistral, train_tokenizer
from casewright.planner.language_model import LanguageModel


def tiny_mistral(
    seed: int = 0, *, hidden: int = 32, layers: int = 2, vocab: int = 512, **config: Any
) -> LanguageModel:
    """Return a model on the CPU in float32; equal arguments give equal weights.

    Args:
        seed: Random seed of the weights.
        hidden: Hidden size.
        layers: Number of layers.
        vocab: Vocabulary size, at least 260: the bytes and four special tokens.
        config: Other settings of ``MistralConfig``.
    """
    network, tokenizer = _parts(seed, hidden, layers, vocab, config)
    return LanguageModel(f"tiny-mistral-{seed}", network, tokenizer)


def save_tiny(
    folder: Path,
    seed: int = 0,
    *,
    hidden: int = 32,
    layers: int = 2,
    vocab: int = 512,
    **config: Any,
) -> Path:
    """Write the model that ``tiny_mistral`` returns for these arguments; return the folder."""
    network, tokenizer = _parts(seed, hidden, layers, vocab, config)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def byte_level_tokenizer(vocab: int = 512) -> Any:
    """Return a byte-level BPE tokenizer that was trained on texts like prompts and plans."""
    return train_tokenizer(plan_like_lines(), vocab)


def plan_like_lines(count: int = 300) -> list[str]:
    """Return lines that resemble prompts and plans; equal counts give equal lines."""
    draw = random.Random(0)
    words = ["galaxy", "phone", "watch", "order", "return", "parcel", "coffee", "beans", "late"]
    tools = ["prod_search", "prod_qna", "review_summary", "order_lookup", "shipment_status"]
    fields = ["product_id", "order_id", "title", "price", "evidence"]
    lines = ["Question: Plan: Context: Tools: s1 = no_evidence()"]
    for _ in range(count):
        step = draw.randint(1, 9)
        query = " ".join(draw.sample(words, 3))
        value = draw.choice(
            [f'"{query}"', "question", f"context.{draw.choice(fields)}", f"s1.{fields[0]}"]
        )
        name = draw.choice(["query", "product_id", "order_id"])
        lines.append(f"Question: where is the {query}?\nPlan:\ns{step} = {draw.choice(tools)}(")
        lines.append(f"s{step} = {draw.choice(tools)}({name}={value}, query=question)\n")
    return lines


def _parts(
    seed: int, hidden: int, layers: int, vocab: int, config: dict[str, Any]
) -> tuple[Any, Any]:
    tokenizer = byte_level_tokenizer(vocab)
    settings = {
        "vocab_size": vocab,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 2 * hidden,
        "max_position_embeddings": 4096,
    }
    return new_mistral({**settings, **config}, tokenizer, seed), tokenizer
