"""A Mistral with random weights: what a small base model starts from.

A random network takes the time of a trained one of its size, and knows nothing: benches measure
time with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def new_mistral(
    settings: Mapping[str, Any],
    tokenizer: Any,
    seed: int = 0,
    *,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> Any:
    """Return a ``MistralForCausalLM``, the same for the same arguments.

    Args:
        settings: Of ``MistralConfig``; no sliding window, where they do not say.
        device: Where they are drawn; the CPU by default.
        dtype: In which numbers; float32 by default.
    """
    import torch

    transformers: Any = import_module("transformers")
    config = transformers.MistralConfig(
        **{
            "sliding_window": None,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            **settings,
        }
    )
    place = device or torch.device("cpu")
    # Whoever draws numbers beside this keeps their own.
    forked = [place] if place.type == "cuda" else []
    with torch.random.fork_rng(devices=forked), place:
        torch.manual_seed(seed)
        network = transformers.AutoModelForCausalLM.from_config(
            config, dtype=dtype or torch.float32, attn_implementation="sdpa"
        )
    return network.eval()


BEGIN, END, PAD, UNKNOWN = "<s>", "</s>", "<pad>", "<unk>"
#: As Mistral's: the user's turn between brackets, and none of the system.
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]"
    "{% elif m['role'] == 'assistant' %} {{ m['content'] }}{{ eos_token }}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported.') }}{% endif %}"
    "{% endfor %}"
)


def train_tokenizer(texts: Iterable[str], vocabulary: int, template: str = TEMPLATE) -> Any:
    """Return a byte-level BPE of transformers that can write every text, trained on these.

    Args:
        vocabulary: Tokens, the bytes and the special ones included: at least 260.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    transformers: Any = import_module("transformers")
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        show_progress=False,
        special_tokens=[BEGIN, END, PAD, UNKNOWN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(texts, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PAD,
        unk_token=UNKNOWN,
    )
    tokenizer.chat_template = template
    return tokenizer
