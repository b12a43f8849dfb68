"""A small language model with random weights, for a server that has none of its own to serve."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from casewright.finetune.training.new_model import new_mistral
from casewright.finetune.training.plan_tokenizer import train_tokenizer

#: Tokens it knows; positions enough for the longest prompt.
VOCABULARY, POSITIONS = 1024, 16384
#: Numbers a token's state has, and layers of the network.
HIDDEN, LAYERS = 64, 2
#: As Mistral's, which has no turn of the system: what it says stands before the user's.
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m['role'] == 'assistant' %} {{ m['content'] }}{{ eos_token }}"
    "{% else %}[INST] {{ m['content'] }} [/INST]{% endif %}"
    "{% endfor %}"
)


def save_random_model(folder: Path, texts: Iterable[str]) -> int:
    """Write a Mistral with random weights, always the same; return how many parameters it has.

    Args:
        folder: Where it is written, as ``transformers`` reads it.
        texts: What its tokenizer, a byte-level BPE, is trained on.
    """
    from transformers.utils import logging

    tokenizer = train_tokenizer(texts, VOCABULARY, TEMPLATE)
    settings = {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": POSITIONS,
    }
    network = new_mistral(settings, tokenizer)
    bars = logging.is_progress_bar_enabled()
    # Half a megabyte is written at once.
    logging.disable_progress_bar()
    try:
        network.save_pretrained(folder)
    finally:
        if bars:
            logging.enable_progress_bar()
    tokenizer.save_pretrained(folder)
    return sum(weights.numel() for weights in network.parameters())
