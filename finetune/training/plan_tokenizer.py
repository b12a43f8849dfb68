"""A tokenizer for planners: what stands in every prompt and every plan is one token.

Prompts and plans are made of the same few pieces. A byte-level BPE that may join these needs fewer
tokens for both, and a plan as many fewer steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from casewright.planner.prompt import CONSTRAINTS, ROLE

BEGIN, END, PAD, UNKNOWN = "<s>", "</s>", "<pad>", "<unk>"
#: As Mistral's: the user's turn between brackets, and none of the system.
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]"
    "{% elif m['role'] == 'assistant' %} {{ m['content'] }}{{ eos_token }}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported.') }}{% endif %}"
    "{% endfor %}"
)
_SOURCE = "(?:literal|span|question|context|step|number|boolean)"
#: Pieces that BPE joins no further, the first that fits; the last ones are GPT-2's.
_PIECES = (
    r"\n*Question: ",
    r"\nPlan:\n",
    r"\n?s[0-9]+ = ",
    r"=s[0-9]+(?:\[[0-9]+\])?\.",
    r"=context\.",
    rf": {_SOURCE}(?: \| {_SOURCE})*",
    # Names of tools and parameters, with what joins their words.
    r" ?[\p{L}_][\p{L}\p{N}_]*",
    r"'(?:s|t|re|ve|m|ll|d)",
    r" ?\p{N}+",
    r" ?[^\s\p{L}\p{N}]+",
    r"\s+(?!\S)",
    r"\s+",
)
#: In every prompt of a planner.
_WHOLE = (ROLE, CONSTRAINTS)
#: What joins lines; lines are all that is counted else.
_JOINTS = ("\nPlan:\n", "\n\nQuestion: ", *(f"\ns{step} = " for step in range(2, 7)))


def train_tokenizer(
    texts: Iterable[str], vocabulary: int, template: str = TEMPLATE, *, plans: bool = False
) -> Any:
    """Return a byte-level BPE of transformers that can write every text, trained on these.

    Args:
        texts: What it is trained on.
        vocabulary: Tokens, the bytes and the special ones included: at least 260.
        template: Its chat template.
        plans: Whether pieces of prompts and plans may be joined, or nothing but words, as in
            other models' tokenizers.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    transformers: Any = import_module("transformers")
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if plans:
        pieces = Regex("|".join((*map(_literally, _WHOLE), *_PIECES)))
        split = pre_tokenizers.Split(pieces, "isolated")
        plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        bpe.pre_tokenizer = pre_tokenizers.Sequence([split, plain])
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


def _literally(text: str) -> str:
    return re.sub(r"([\\.^$|?*+()\[\]{}])", r"\\\1", text)


def prompt_pieces(prompts: Iterable[str]) -> list[str]:
    """Return what to train the tokenizer of planners on: each line of prompts and answers once.

    The same toolbox stands in many prompts, and would drown the questions. What stands in all of
    them is added as often as there are lines, so that it becomes one token.
    """
    lines: dict[str, None] = {}
    whole = dict.fromkeys(_WHOLE, False)
    for prompt in prompts:
        rest = prompt
        for text in _WHOLE:
            if text in rest:
                whole[text] = True
                rest = rest.replace(text, "\n")
        lines.update(dict.fromkeys(rest.splitlines(keepends=True)))
    repeated = [*(text for text, there in whole.items() if there), *_JOINTS]
    return [*lines, *(repeated * (1 + len(lines) // 20))]
