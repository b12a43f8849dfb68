"""What narrowing costs is measured on toolboxes that are joined."""

from __future__ import annotations

import pytest

from casewright.bench.narrowing import measure_narrowing
from casewright.stores import CachedEncoder
from tests.support.encoders import HashingEncoder


@pytest.mark.slow
def test_more_tools_keep_fewer_of_those_that_are_needed() -> None:
    report = measure_narrowing([2, 40], messages=2, encoder=CachedEncoder(HashingEncoder(256)))
    few, many = report.rows
    assert few["tools"] < 64 < many["tools"]
    # A toolbox that is not large is not narrowed, and yet planned with beside another.
    assert few["kept"] == 1.0
    assert 0.2 < many["kept"] < 1.0
    assert few["alone"] == many["alone"]
