from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from casewright.bench.selection import naive, read_sizes
from casewright.errors import InputError
from tests.serve.helpers import result, run

SMALL = ("--sizes", "80:6,40:4", "--queries", "60", "--repeats", "1")


def test_naive_selection_equals_picks_calculated_by_hand() -> None:
    vectors = np.array([[1.0, 0.0], [0.96, 0.28], [0.0, 1.0]])
    scores = np.array([0.9, 0.8, 0.5])
    ids = ["a", "b", "c"]
    # After pick a, the score of b is 0.4 - 0.48 = -0.08, and of c 0.25 - 0 = 0.25.
    assert naive(vectors, scores, ids, 3, 0.5) == [0, 2, 1]
    assert naive(vectors, scores, ids, 3, 1.0) == [0, 1, 2]
    assert naive(vectors, scores, ids, 9, 0.5) == [0, 2, 1]


def test_selection_bench_prints_every_figure_and_its_picks_equal_the_naive_ones(
    home: Path, tmp_path: Path
) -> None:
    completed = run(home, "bench", "selection", *SMALL, "--json", "--plot", tmp_path / "s.png")
    figures = result(completed)["figures"]
    for size in ("80_to_6", "40_to_4"):
        for lambda_d in (0.5, 0.75, 0.95):
            name = f"{size}_lambda_{lambda_d}"
            assert figures[f"same_picks_as_naive_{name}"] == 1
            assert figures[f"ratio_langchain_over_casewright_{name}"] > 0
    for lambda_d in (0.5, 0.75, 0.95):
        assert figures[f"certified_lambda_{lambda_d}"] == 1
        assert figures[f"exact_where_certified_lambda_{lambda_d}"] == 1
        assert 20 <= figures[f"candidates_p50_lambda_{lambda_d}"] <= 60
    assert (tmp_path / "s.png").stat().st_size > 5000


@pytest.mark.parametrize("text", ["", "a", "10", "10:20", "10:0", "10:5:1", "-5:-9", "10:5,"])
def test_invalid_sizes_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--sizes"):
        read_sizes(text)
