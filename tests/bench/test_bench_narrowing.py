"""Test of the narrowing bench on joined toolboxes."""

from __future__ import annotations

import pytest

from casewright.bench.narrowing import measure_narrowing
from casewright.stores import CachedEncoder
from tests.support.encoders import HashingEncoder


@pytest.mark.slow
def test_narrowing_keeps_fewer_needed_tools_of_a_larger_toolbox() -> None:
    report = measure_narrowing([2, 40], messages=2, encoder=CachedEncoder(HashingEncoder(256)))
    small, large = report.rows
    assert small["tools"] < 64 < large["tools"]
    # A small toolbox is not narrowed.
    assert small["kept"] == 1.0
    assert 0.2 < large["kept"] < 1.0
    assert small["alone"] == large["alone"]
