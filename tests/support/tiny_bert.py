"""A plain checkpoint such as a hub has: a BERT of 32 numbers, saved as safetensors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def save_tiny_bert(folder: Path, words: Sequence[str]) -> Path:
    """Write a transformer with random weights, and its tokenizer, which knows these words."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    known = [*SPECIAL, *words]
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(known),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizer(vocab={word: i for i, word in enumerate(known)}).save_pretrained(folder)
    return folder
