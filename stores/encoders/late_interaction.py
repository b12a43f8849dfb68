"""Late interaction: the similarity of a question and a text by their tokens (arXiv 2004.12832).

One vector for a whole text says what the text is about; vectors of its tokens also say whether a
few words in it fit the question, in the question's words or in others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from casewright.errors import InputError
from casewright.stores.encoders.encoder import Encoder


def late_interaction(
    encoder: Encoder | None, question: str, texts: Sequence[str]
) -> list[float] | None:
    """Return for each text the mean, over the question's tokens, of the best cosine of a token.

    The mean is over all tokens, so that scores of different questions are comparable. Return
    ``None`` if the encoder has no ``token_vectors``, and raise ``InputError`` if it returns other
    than finite vectors for each text.
    """
    embed = getattr(encoder, "token_vectors", None)
    vectors = None if embed is None else embed([question, *texts])
    if vectors is None:
        return None
    if len(vectors) != len(texts) + 1 or not all(np.isfinite(v).all() for v in vectors):
        raise InputError(
            f"The encoder {getattr(encoder, 'name', encoder)!r} must return finite token vectors "
            f"for each of {len(texts) + 1} texts. Correct its token_vectors."
        )
    tokens, *passages = map(np.asarray, vectors)
    if not len(tokens):
        return [0.0] * len(texts)
    return [float((tokens @ p.T).max(axis=1).mean()) if len(p) else 0.0 for p in passages]
