"""Test of the index bench, which measures both encoders."""

from __future__ import annotations

from pathlib import Path

from casewright.bench.index import measure_index


def test_existing_index_is_opened_faster_than_it_was_built(tmp_path: Path) -> None:
    for number in range(20):
        body = "\n".join(f"    total += {number} * {line}" for line in range(20))
        code = f"def sum_{number}(total: int) -> int:\n{body}\n    return total\n"
        (tmp_path / f"sums_{number}.py").write_text(code, encoding="utf-8")
    report = measure_index(tmp_path)
    assert [row["encoder"] for row in report.rows] == ["fp32", "int8"]
    for row in report.rows:
        assert row["cases"] == 20
        assert 0 < row["again s"] < row["index s"]
        assert row["question ms"] > 0
