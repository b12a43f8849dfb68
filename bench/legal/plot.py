"""Heat maps of F1@k: weightings down, k across, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from casewright.bench.legal.measures import KS

#: The rows of one map: how each is called, and its F1 at every k.
Panel = Mapping[str, Sequence[float]]


def draw_heat_maps(axes: Any, ours: Mapping[str, Panel], published: Mapping[str, Panel]) -> None:
    """Draw one map for each panel into the figure of ``axes``: ours on the left.

    Maps in one column share their colours' scale, and each cell names its value.

    Args:
        axes: Matplotlib axes, which give way to the maps.
        ours: Title to panel.
        published: The paper's; none leaves one column.
    """
    figure = axes.figure
    axes.remove()
    columns = [list(ours.items()), *([list(published.items())] if published else [])]
    height = max(len(column) for column in columns)
    figure.set_size_inches(7.4 * len(columns), 2.9 * height)
    grid = figure.subplots(height, len(columns), squeeze=False)
    for across, column in enumerate(columns):
        top = max(max(scores) for _, panel in column for scores in panel.values())
        for down in range(height):
            place = grid[down][across]
            if down < len(column):
                _draw_panel(place, *column[down], top)
            else:
                place.set_axis_off()
    figure.suptitle("F1@k, two parent cases a question: weights of question, support, entities")


def _draw_panel(axes: Any, title: str, panel: Panel, top: float) -> None:
    values = list(panel.values())
    axes.imshow(values, cmap="viridis", vmin=0, vmax=top, aspect="auto")
    axes.set_xticks(range(len(KS)), [str(k) for k in KS], fontsize=9)
    axes.set_yticks(range(len(values)), list(panel), fontsize=9)
    axes.set_xlabel("k", fontsize=9)
    axes.set_title(title, fontsize=10)
    for row, scores in enumerate(values):
        for column, score in enumerate(scores):
            # Light cells need dark figures.
            colour = "black" if score > 0.6 * top else "white"
            axes.text(
                column, row, f"{score:.3f}", ha="center", va="center", color=colour, fontsize=8
            )
