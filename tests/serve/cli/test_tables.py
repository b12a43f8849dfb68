"""Printed tables are complete in a narrow terminal."""

from __future__ import annotations

from collections import Counter

import pytest

from casewright.serve.cli.output import print_table


@pytest.mark.parametrize("columns", [20, 60, 300])
def test_table_prints_every_value_and_heading_at_any_width(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    headings = ["what is counted", *(f"planner number {name}" for name in "abcdef")]
    print_table(headings, [["tool sequence right", *(number + 0.123 for number in range(6))]])
    output = capsys.readouterr().out
    for number in range(6):
        assert f"{number}.123" in output
    # A word may be split over two lines, so letters are counted.
    assert Counter(" ".join(headings).replace(" ", "")) <= Counter(output)
