"""Four-bit matrices: how near an unpacked matrix is to the packed one."""

from __future__ import annotations

import numpy as np
import pytest

from casewright.stores.encoders.four_bit import BLOCK, pack, unpack


def test_error_of_random_numbers_is_about_a_twelfth_of_their_deviation() -> None:
    matrix = np.random.default_rng(0).standard_normal((200, 4 * BLOCK)).astype(np.float32)
    error = unpack(*pack(matrix)) - matrix
    # With the largest scales only, which clip no number, it is 0.0865.
    assert np.sqrt((error**2).mean()) < 0.0845 * matrix.std()


@pytest.mark.parametrize("number", [0.0, 1e-9, -1e-9])
def test_block_without_notable_numbers_becomes_zeros(number: float) -> None:
    matrix = np.full((2, BLOCK), number, np.float32)
    assert not unpack(*pack(matrix)).any()


def test_integers_from_minus_8_to_7_are_exact_and_the_first_is_in_the_lower_half() -> None:
    matrix = np.arange(-8, 8, dtype=np.float32).repeat(BLOCK // 8).reshape(2, BLOCK)
    matrix[:, :2] = -8, 7
    integers, scales = pack(matrix)
    assert integers[0, 0, 0] == 0xF0
    np.testing.assert_array_equal(unpack(integers, scales), matrix)
