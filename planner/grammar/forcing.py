"""When the library may say which tokens must come next, and when it must not.

Where the grammar leaves no choice of text, llguidance lets the tokenizer cut that text. Tokenizers
may return other text than they were given: a special token for what merely looks like one, a
composed character for a letter and its mark. Such a token cannot come next, and no other would be
allowed. For texts of that kind forcing is switched off: every way of cutting them is then allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llguidance import LLTokenizer

#: The first line of a grammar without forcing.
NO_FORCING = '%llguidance {"no_forcing":true}\n'


def is_kept(tokenizer: LLTokenizer, text: str) -> bool:
    """Say whether the tokenizer keeps the text, and so every part of it, as it is."""
    tokens = tokenizer.tokenize_str(text)
    return tokenizer.decode_bytes(tokens) == text.encode() and not any(
        map(tokenizer.is_special_token, tokens)
    )
