"""The words that an identifier is made of."""

from __future__ import annotations

import regex as re

_PIECES = re.compile(r"\p{Lu}+(?!\p{Ll})|\p{Lu}?[^\W\d_\p{Lu}]+|\d+|\p{Lu}")


def words_in(text: str) -> list[str]:
    """Return the words of a text or an identifier: ``findTrain_id`` has find, train and id."""
    return [piece.casefold() for piece in _PIECES.findall(text)]
