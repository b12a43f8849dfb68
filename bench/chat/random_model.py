"""A small language model with random weights, for a server that has none of its own to serve."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

#: Tokens it knows; positions enough for the longest prompt.
VOCABULARY, POSITIONS = 1024, 16384
#: Numbers a token's state has, and layers of the network.
HIDDEN, LAYERS = 64, 2
SPECIAL = ("<s>", "</s>", "<pad>", "<unk>")
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
    import torch

    transformers: Any = import_module("transformers")
    tokenizer = _tokenizer(transformers, texts)
    settings = transformers.MistralConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=POSITIONS,
        sliding_window=None,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    # Whoever draws numbers beside this keeps their own.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = transformers.MistralForCausalLM(settings)
    logging = transformers.utils.logging
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


def _tokenizer(transformers: Any, texts: Iterable[str]) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        show_progress=False,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(texts, trainer)
    names = ("bos_token", "eos_token", "pad_token", "unk_token")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, **dict(zip(names, SPECIAL, strict=True))
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer
