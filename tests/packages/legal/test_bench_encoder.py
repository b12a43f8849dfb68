"""Tests of the encoder bench, which compares integer weights with float32 weights."""

from __future__ import annotations

import pytest

from casewright.errors import InputError
from casewright_legal.bench_encoder import measure_encoder


def test_both_encoders_are_measured_on_the_same_cases() -> None:
    report = measure_encoder(None, only="shipped", limit=8, texts=8)
    (row_of_set,) = [row for row in report.rows if row["table"] == "retrieval"]
    assert row_of_set["measure"] == "F1"
    assert 0.1 < row_of_set["fp32"] < 1
    assert row_of_set["points"] == pytest.approx(100 * (row_of_set["int8"] - row_of_set["fp32"]))
    speeds = [row for row in report.rows if row["table"] == "speed"]
    assert len({row["encoder"] for row in speeds}) == 2
    assert all(row["texts a second"] > 0 for row in speeds)


def test_another_encoder_is_compared_question_by_question() -> None:
    report = measure_encoder(None, against="minilm", only="shipped", limit=4, texts=1)
    row = report.rows[0]
    assert row["fp32"] == row["minilm"] > 0.1
    assert [row["points"], row["points from"], row["points to"]] == [0, 0, 0]


def test_unknown_set_is_refused() -> None:
    with pytest.raises(InputError, match="no set"):
        measure_encoder(None, only="somewhere")
