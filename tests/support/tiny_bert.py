"""A tiny BERT checkpoint of hidden size 32, as safetensors, like the models of a hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def save_tiny_bert(folder: Path, words: Sequence[str]) -> Path:
    """Write a model with random weights, and a tokenizer with these words; return the folder."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    vocabulary = [*SPECIAL, *words]
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizer(vocab={word: i for i, word in enumerate(vocabulary)}).save_pretrained(folder)
    return folder
