"""The cost of narrowing is measured on joined toolboxes."""

from __future__ import annotations

import pytest

from casewright.bench.narrowing import measure_narrowing
from casewright.stores import CachedEncoder
from tests.support.encoders import HashingEncoder


@pytest.mark.slow
def test_narrowing_keeps_fewer_needed_tools_of_a_larger_toolbox() -> None:
    report = measure_narrowing([2, 40], messages=2, encoder=CachedEncoder(HashingEncoder(256)))
    few, many = report.rows
    assert few["tools"] < 64 < many["tools"]
    # A toolbox that is not large is not narrowed, and yet planned with beside another.
    assert few["kept"] == 1.0
    assert 0.2 < many["kept"] < 1.0
    assert few["alone"] == many["alone"]
