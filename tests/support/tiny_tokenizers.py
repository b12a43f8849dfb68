"""Small tokenizers that resemble those of known language models, with their chat templates."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from casewright.finetune.training.base import TEMPLATE
from tests.support.tiny_mistral import byte_level_tokenizer, plan_like_lines

#: The template of Qwen and of many other models.
CHATML = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou help.<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
#: The template of Llama 3, which strips the messages.
HEADERS = (
    "{{ bos_token }}<|start_header_id|>system<|end_header_id|>\n\n"
    "Today: {{ strftime_now('%d %b %Y %f') }}\n\n<|eot_id|>"
    "{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{{ m['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def mistral_like() -> Any:
    """Return a byte-level tokenizer, with a template whose brackets are not special tokens."""
    return byte_level_tokenizer()


def gpt2_like() -> Any:
    """Return a byte-level tokenizer with one special token for all roles, without a template."""
    return _byte_level(["<|endoftext|>"], bos="<|endoftext|>", eos="<|endoftext|>")


def qwen_like() -> Any:
    """Return a byte-level tokenizer that normalises text and has no beginning-of-text token.

    Its ``<think>`` tokens are not special.
    """
    from tokenizers import normalizers

    tokenizer = _byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"], eos="<|endoftext|>")
    tokenizer.backend_tokenizer.normalizer = normalizers.NFC()
    tokenizer.backend_tokenizer.add_tokens(["<think>", "</think>"])
    tokenizer.chat_template = CHATML
    return tokenizer


def llama3_like() -> Any:
    """Return a byte-level tokenizer that splits by words; line ends join the preceding text."""
    from tokenizers import Regex, pre_tokenizers

    special = [
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
    ]
    split: Any = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer = _byte_level(special, split, bos=special[0], eos=special[1])
    tokenizer.chat_template = HEADERS
    return tokenizer


def sentencepiece_like(*, legacy: bool = False, special: bool = False) -> Any:
    """Return a tokenizer of characters, with bytes for unknown ones, and a space before a text.

    Args:
        legacy: Add the space before every part between special tokens, as Llama 2 does.
        special: Make the template's brackets special tokens, as in version 3 of Mistral.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    trained: Any = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False)
    trained.train_from_iterator(plan_like_lines(), trainer)
    merges = json.loads(trained.to_str())["model"]["merges"]
    control = ["<unk>", "<s>", "</s>", *(["[INST]", "[/INST]"] if special else [])]
    pieces = [*control, *(f"<0x{byte:02X}>" for byte in range(256)), *trained.get_vocab()]
    bpe: Any = Tokenizer(
        models.BPE(
            {piece: id_ for id_, piece in enumerate(pieces)},
            [(left, right) for left, right in merges],
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    if legacy:
        bpe.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    else:
        bpe.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    bpe.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    bpe.add_special_tokens(control)
    tokenizer = _fast_tokenizer(bpe, bos="<s>", eos="</s>", unk="<unk>")
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def _byte_level(special: list[str], split: Any = None, **special_tokens: str) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe: Any = Tokenizer(models.BPE())
    bpe.pre_tokenizer = split or pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        show_progress=False,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(plan_like_lines(), trainer)
    return _fast_tokenizer(bpe, **special_tokens)


def _fast_tokenizer(tokenizer: Any, **special_tokens: str) -> Any:
    """Return a tokenizer of Transformers; special tokens are ``bos``, ``eos`` and ``unk``."""
    transformers: Any = import_module("transformers")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **{f"{name}_token": token for name, token in special_tokens.items()},
    )
