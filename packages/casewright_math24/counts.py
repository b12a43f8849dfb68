"""The paper's features of a problem: 40 counts of pairs that make a factor of 24.

For each factor of 24, they are the share of the six pairs that can make it, and for each number the
share of its three pairs. Counts do not show which pairs complete each other.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from casewright_math24.decomposition import pair_values
from casewright_math24.puzzle import LARGEST, Problem

FACTORS = (1, 2, 3, 4, 6, 8, 12, 24)
#: Counts of all pairs, and of the pairs of each of the four numbers.
COUNTS = 5 * len(FACTORS)
#: The numbers themselves, then the counts.
INPUTS = 4 + COUNTS


def counts(problem: Problem) -> NDArray[np.float32]:
    """Return the counts as shares of the pairs, array (40,)."""
    makes = {
        pair: pair_values(problem[pair[0]], problem[pair[1]]) for pair in combinations(range(4), 2)
    }
    groups = [list(makes), *([pair for pair in makes if n in pair] for n in range(4))]
    rows = [
        sum(Fraction(factor) in makes[pair] for pair in group) / len(group)
        for group in groups
        for factor in FACTORS
    ]
    return np.array(rows, dtype=np.float32)


def inputs(problem: Problem) -> NDArray[np.float32]:
    """Return the latent network's input, array (44,): the numbers from 0 to 1, the counts."""
    numbers = (np.array(problem, dtype=np.float32) - 1) / (LARGEST - 1)
    return np.concatenate([numbers, counts(problem)])
