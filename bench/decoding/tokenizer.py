"""A tokenizer that is trained in the run, since random weights bring none along.

Size and texts are such that prompts and plans are cut into about as many tokens, and leave about as
many choices to a grammar, as with Mistral's own tokenizer. No gold plan is among the texts: whole
calls would become tokens, which no real tokenizer has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from casewright.planner import AnnotatedQuery
from casewright.planner.prompt import render_head
from casewright.tools import Toolbox

#: Tokens, the bytes and the special ones included.
VOCABULARY = 4096
#: How often a prompt's head counts: its words are English and code, which real tokenizers know.
HEAD_WEIGHT = 20
BEGIN, END, PAD, UNKNOWN = "<s>", "</s>", "<pad>", "<unk>"
#: As Mistral's: the user's turn between brackets.
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]"
    "{% elif m['role'] == 'assistant' %} {{ m['content'] }}{{ eos_token }}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported.') }}{% endif %}"
    "{% endfor %}"
)


def tokenizer_texts(toolbox: Toolbox, queries: Iterable[AnnotatedQuery]) -> Sequence[str]:
    """Return what a tokenizer is trained on: a prompt's head, and questions."""
    return [*[render_head(toolbox)] * HEAD_WEIGHT, *(query.query for query in queries)]


def train_tokenizer(texts: Iterable[str], vocabulary: int = VOCABULARY) -> Any:
    """Return a byte-level BPE of transformers that can write every text, trained on these."""
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
    tokenizer.chat_template = TEMPLATE
    return tokenizer
