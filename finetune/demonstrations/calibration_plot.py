"""RAGSys's Figure 1: what demonstrations gain, beside how alike they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from casewright.finetune.demonstrations.calibrate import Calibration, SettingResult


def draw_calibration(axes: Any, found: Calibration) -> None:
    """Draw the benefit of each setting over the mean cosine of what it shows.

    Args:
        axes: Of matplotlib.
        found: What is drawn.
    """
    for lambda_b in sorted({row.lambda_b for row in found.rows}):
        rows = [r for r in found.rows if r.lambda_b == lambda_b and r.cosine is not None]
        _draw_line(axes, rows, f"λ_b = {lambda_b:g}")
    axes.axhline(found.held_out["random"][0], color="grey", linestyle=":", label="random cases")
    axes.set_xlabel("mean cosine of the pairs shown (left: more diverse)")
    axes.set_ylabel(f"{found.measure}, mean of {found.questions} questions")
    axes.set_title(f"{found.model}: each point a λ_d, {found.k} demonstrations")
    axes.legend()


def _draw_line(axes: Any, rows: Sequence[SettingResult], label: str) -> None:
    cosines = [row.cosine for row in rows]
    benefits = [row.benefit for row in rows]
    reach = [
        [row.benefit - row.interval[0] for row in rows],
        [row.interval[1] - row.benefit for row in rows],
    ]
    axes.errorbar(cosines, benefits, yerr=reach, marker="o", capsize=2, linewidth=1, label=label)
    for row in rows:
        axes.annotate(
            f"{row.lambda_d:g}",
            (row.cosine, row.benefit),
            textcoords="offset points",
            xytext=(4, 4),
            fontsize=7,
        )
