"""Table 3: the encoding and the latents, by labels and by what following a case would lose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from casewright.bench.backgammon.represent import Representation
from casewright.bench.backgammon.retrieval import (
    NEAREST,
    Asked,
    Floats,
    lost_by_checkers,
    lost_by_own,
    nearest,
    precisions,
)
from casewright.domains.backgammon.decision import Decision
from casewright.domains.backgammon.training import choice_lost
from casewright.stores.progress import progress_bar

#: Queries and cases of the three tables: what a query is, what a case is.
COMBINED = "3: a query is its position, a case the mean of before and after its best play"
ALONE = "3: a query is its position, a case its position"
WITH_PLAY = "3: a query is the mean of before and after the play that was made, a case as well"
WITHOUT = "without cases"


def comparison_rows(asked: Asked, ways: Sequence[Representation]) -> list[dict[str, Any]]:
    """Return the rows of the three tables, and of what is lost without cases."""
    rows: list[dict[str, Any]] = []
    split = asked.split
    with progress_bar("Retrieving", len(ways), show=None) as advance:
        for way in ways:
            position, both = way.positions(split.queries), way.cases(split.cases)
            rows += [
                _row(asked, way, COMBINED, position, both),
                _row(asked, way, ALONE, position, way.positions(split.cases)),
                # What the human played tells what is best: no loss is asked of these queries.
                _row(asked, way, WITH_PLAY, way.with_plays(split.queries), both, losses=False),
            ]
            advance(1)
    return rows + _rows_without_cases(split.queries, ways)


def _row(
    asked: Asked,
    way: Representation,
    table: str,
    queries: Floats,
    cases: Floats,
    *,
    losses: bool = True,
) -> dict[str, Any]:
    order = nearest(asked, queries, cases, NEAREST, same_roll=False)
    told = precisions(asked, order)
    row = {
        "table": table,
        "compared by": way.name,
        **told,
        "mean": float(np.mean(list(told.values()))),
    }
    if losses:
        same = nearest(asked, queries, cases, 1, same_roll=True)
        row["lost"] = lost_by_own(asked, way, order)
        row["lost, same roll"] = lost_by_own(asked, way, same)
        row["near by checkers"] = lost_by_checkers(asked, same)
    return row


def _rows_without_cases(
    queries: Sequence[Decision], ways: Sequence[Representation]
) -> list[dict[str, Any]]:
    rows = [
        _choice("a listed candidate at random", [_mean_lost(one) for one in queries]),
        _choice("the play that was made", [one.lost(one.played_or_best) for one in queries]),
    ]
    for way in ways:
        if way.network is not None:
            lost = [choice_lost(way.network, one) for one in queries]
            rows.append(_choice(f"the network's choice: {way.name}", lost))
    return rows


def _choice(name: str, lost: Sequence[float]) -> dict[str, Any]:
    return {"table": WITHOUT, "chosen by": name, "lost": float(np.mean(lost))}


def _mean_lost(one: Decision) -> float:
    return float(np.mean([one.lost(place) for place in range(len(one.candidates))]))
