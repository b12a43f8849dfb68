"""The example of docs/modality.md runs as it is printed, and finds the fault."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "modality.md").read_text(encoding="utf-8")
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_example_of_the_page_has_at_most_50_lines_and_finds_the_fault(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len([line for line in CODE.splitlines() if line.strip()]) <= 50
    exec(compile(CODE, "modality", "exec"), {"__name__": "modality"})
    printed = capsys.readouterr().out
    assert "A bearing is dry" in printed
    assert re.match(r"a hum near (94|156) Hz|a hum near 18", printed), printed
