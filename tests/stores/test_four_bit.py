"""Four-bit matrices: how near an unpacked matrix is to the packed one."""

from __future__ import annotations

import numpy as np
import pytest

from casewright.stores.encoders.four_bit import BLOCK, pack, unpack

RNG = np.random.default_rng(0)


def test_number_differs_by_at_most_its_block_s_largest_number_over_eight() -> None:
    matrix = RNG.standard_normal((5, 4 * BLOCK)).astype(np.float32)
    error = np.abs(unpack(*pack(matrix)) - matrix).reshape(5, 4, BLOCK)
    largest = np.abs(matrix).reshape(5, 4, BLOCK).max(2, keepdims=True)
    # A factor below 1 clips the largest numbers, at most by a quarter.
    assert (error <= largest / 4).all()
    assert np.sqrt((error**2).mean()) < 0.1 * matrix.std()


@pytest.mark.parametrize("number", [0.0, 1e-9, -1e-9])
def test_block_without_notable_numbers_becomes_zeros(number: float) -> None:
    matrix = np.full((2, BLOCK), number, np.float32)
    assert not unpack(*pack(matrix)).any()


def test_matrix_of_integers_from_minus_8_to_7_is_unpacked_exactly() -> None:
    matrix = RNG.integers(-7, 8, (3, 2 * BLOCK)).astype(np.float32)
    matrix[:, ::BLOCK] = -8
    np.testing.assert_array_equal(unpack(*pack(matrix)), matrix)
