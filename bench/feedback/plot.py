"""Recall over the number of judged cases: loops round by round, beside single searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Line = Sequence[tuple[float, float]]
#: One colour a strategy, one stroke a judge.
STROKES = {"labels": "-", "offline": "--", "labels shuffled": ":", "first two, unread": "-."}


def draw_recall(axes: Any, panels: Mapping[str, Mapping[str, Line]]) -> None:
    """Draw one panel a set into the figure of ``axes``.

    Args:
        axes: Matplotlib axes, which give way to the panels.
        panels: Set to the lines of its panel: ``"strategy, judge"`` to how many cases were judged
            and which share of the relevant was among them, after each round.
    """
    figure = axes.figure
    axes.remove()
    across = min(len(panels), 2)
    down = -(-len(panels) // across)
    figure.set_size_inches(6.5 * across, 4.2 * down)
    grid = figure.subplots(down, across, squeeze=False).ravel()
    for place, (name, lines) in zip(grid, panels.items(), strict=False):
        strategies = list(dict.fromkeys(label.partition(", ")[0] for label in lines))
        for label, line in lines.items():
            strategy, _, judge = label.partition(", ")
            colour = "black" if not judge else f"C{strategies.index(strategy)}"
            place.plot(
                [x for x, _ in line],
                [y for _, y in line],
                STROKES.get(judge, "-"),
                color=colour,
                marker="o" if judge else None,
                markersize=3,
                label=label,
            )
        place.set_title(name, fontsize=10)
        place.set_xlabel("cases judged, mean", fontsize=9)
        place.set_ylabel("share of the relevant among them", fontsize=9)
        right = max(x for label, line in lines.items() for x, _ in line if ", " in label)
        place.set_xlim(9.5, right + 0.5)
    for place in grid[len(panels) :]:
        place.set_axis_off()
    # The panel with the most lines names them all.
    most = max(range(len(panels)), key=lambda number: len(grid[number].get_lines()))
    grid[most].legend(fontsize=6, ncols=2)
