"""Small tokenizers of the kinds that language models have, each with its chat template."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from casewright.finetune.training.base import TEMPLATE
from tests.support.tiny_mistral import byte_level_tokenizer, plan_like_lines

#: As Qwen's and many others'.
CHATML = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou help.<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
#: As Llama 3's, which strips what it shows.
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
    """Bytes, and a template whose brackets are text."""
    return byte_level_tokenizer()


def gpt2_like() -> Any:
    """Bytes, one special token for everything, and no template."""
    return _byte_level(["<|endoftext|>"], bos="<|endoftext|>", eos="<|endoftext|>")


def qwen_like() -> Any:
    """Bytes of normalized text, no token that starts a text, and markup that is not special."""
    from tokenizers import normalizers

    made = _byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"], eos="<|endoftext|>")
    made.backend_tokenizer.normalizer = normalizers.NFC()
    made.backend_tokenizer.add_tokens(["<think>", "</think>"])
    made.chat_template = CHATML
    return made


def llama3_like() -> Any:
    """Bytes split by words, where a line's end joins what stands before it."""
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
    made = _byte_level(special, split, bos=special[0], eos=special[1])
    made.chat_template = HEADERS
    return made


def sentencepiece_like(*, legacy: bool = False, special: bool = False) -> Any:
    """Characters, bytes for those it does not know, and a space before a text's first word.

    Args:
        legacy: The space stands before every piece of text, as in Llama 2's.
        special: The template's brackets are special tokens, as in Mistral's third version.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    learnt: Any = Tokenizer(models.BPE())
    learnt.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False)
    learnt.train_from_iterator(plan_like_lines(), trainer)
    merges = import_module("json").loads(learnt.to_str())["model"]["merges"]
    control = ["<unk>", "<s>", "</s>", *(["[INST]", "[/INST]"] if special else [])]
    pieces = [*control, *(f"<0x{byte:02X}>" for byte in range(256)), *learnt.get_vocab()]
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
    made = _wrapped(bpe, bos="<s>", eos="</s>", unk="<unk>")
    made.chat_template = TEMPLATE
    return made


def _byte_level(special: list[str], split: Any = None, **names: str) -> Any:
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
    return _wrapped(bpe, **names)


def _wrapped(tokenizer: Any, **names: str) -> Any:
    transformers: Any = import_module("transformers")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{name}_token": token for name, token in names.items()}
    )
