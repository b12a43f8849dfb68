"""The example vectors of a recommend query: what every engine asks of them."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores.engines.engine import RecommendStrategy

STRATEGIES: tuple[str, ...] = get_args(RecommendStrategy)


def check_examples(
    positive: NDArray[np.float32], negative: NDArray[np.float32], strategy: str
) -> None:
    """Check what can be told without a collection, so that every engine refuses it alike.

    Args:
        positive: Array (p, dimension).
        negative: Array (n, dimension); n = 0 for none.
        strategy: One of ``RecommendStrategy``.

    Raises:
        InputError: The strategy is not known, p is 0, an array is not one of vectors, the two
            differ in dimension, or a number is NaN or infinite.
    """
    if strategy not in STRATEGIES:
        raise InputError(
            f"A recommend query has the strategy {strategy!r}. Give one of {', '.join(STRATEGIES)}."
        )
    if positive.ndim != 2 or negative.ndim != 2 or positive.shape[1] != negative.shape[1]:
        raise InputError(
            f"A recommend query has positive examples of shape {positive.shape} and negative ones "
            f"of shape {negative.shape}. Give arrays (p, dimension) and (n, dimension); "
            "(0, dimension) for no negative ones."
        )
    if not len(positive):
        raise InputError(
            "A recommend query has no positive example. Give at least one vector to be near to."
        )
    for name, vectors in (("positive", positive), ("negative", negative)):
        if wrong := int((~np.isfinite(vectors)).sum()):
            raise InputError(
                f"Of a recommend query's {name} examples, {wrong} numbers are NaN or infinite. "
                "Check the encoder."
            )
