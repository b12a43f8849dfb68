"""How long a text is to the packaged encoder, which reads no more than 256 tokens of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from casewright.stores.encoders.minilm import packaged_minilm

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: The most tokens of a chunk: all of them are read, with room for the two that mark its ends.
MOST = 240
#: The model reads a word of more than 100 letters as one token, so that long ones are measured by
#: their letters too: English has 4 to 5 a token, source code 3.
LETTERS_A_TOKEN = 8
#: Texts that are measured together, and letters of one that are: tokens take much memory.
TEXTS, LETTERS = 2000, 20_000


@cache
def _tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer

    made = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
    made.no_padding()
    made.no_truncation()
    return made


def text_sizes(texts: Sequence[str]) -> list[int]:
    """Return the size of each text, in tokens; sizes of lines add up to that of their text."""
    return [size for at in range(0, len(texts), TEXTS) for size in _sizes(texts[at : at + TEXTS])]


def counted(text: str) -> range:
    """Return as many items as the text has tokens, for who counts those of a list."""
    return range(text_sizes([text])[0])


def _sizes(texts: Sequence[str]) -> list[int]:
    pieces = [
        (number, text[at : at + LETTERS])
        for number, text in enumerate(texts)
        for at in range(0, len(text), LETTERS)
    ]
    encoded = _tokenizer().encode_batch_fast(
        [piece for _, piece in pieces], add_special_tokens=False
    )
    sizes = [0] * len(texts)
    for (number, piece), tokens in zip(pieces, encoded, strict=True):
        sizes[number] += max(len(tokens), len(piece) // LETTERS_A_TOKEN)
    return sizes
