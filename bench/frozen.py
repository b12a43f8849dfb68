"""How good the planners are, as they are shipped, on queries that are for measuring only."""

from __future__ import annotations

from typing import Any

import numpy as np

from casewright.bench.planner import UncachedQuestions, planner_figures, share_right
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.evaluation import as_row, judge, score_classes
from casewright.finetune.folds import SAME_GROUP, similarity_groups
from casewright.planner import plan_store
from casewright.planner.fallback import FallbackPlanner
from casewright.planner.request import Planner
from casewright.planner.shipped import SHIPPED, is_shipped
from casewright.serve.planners import CASE_PLANNER, SHAPE_PLANNER, make_planner
from casewright.serve.session import open_reader
from casewright.stores import default_encoder
from casewright.stores.paths import data_folder


def measure_frozen(domain_name: str, others: tuple[str, ...] = ()) -> Report:
    """Plan for the queries that were written after the planners were frozen.

    Args:
        domain_name: A domain that has such queries.
        others: Planners beside the case planner with and without its reader and the language model
            that ships.

    Raises:
        InputError: The domain has none.
    """
    from casewright.domains import find_domain

    domain = find_domain(domain_name)
    kept, known = domain.measuring_queries(), domain.queries()
    if not kept:
        raise InputError(
            f"Domain {domain_name!r} has no queries for measuring only. Measure it by "
            "cross-validation: casewright bench planner."
        )
    encoder = default_encoder()
    opened = domain.open(data_folder() / domain.name, encoder, False)
    toolbox = opened.toolbox
    opened.close()
    groups = similarity_groups([query.query for query in (*known, *kept)], encoder)
    taught = set(groups[: len(known)])
    near = [group in taught for group in groups[len(known) :]]
    rows: list[dict[str, Any]] = []
    figures = {"queries": float(len(kept)), "queries_with_a_neighbour": float(sum(near))}
    with plan_store(known, UncachedQuestions(encoder)) as store:
        reader = open_reader(domain)
        planners: dict[str, Planner] = {
            name: make_planner(
                name, store, reader, queries=lambda: known, encoder=UncachedQuestions(encoder)
            )
            for name in dict.fromkeys((CASE_PLANNER, SHAPE_PLANNER, *_shipped(), *others))
        }
        for name, planner in {**planners, "fallback": FallbackPlanner()}.items():
            planner.plan(kept[0].record.request(toolbox))
            results = [planner.plan(query.record.request(toolbox)) for query in kept]
            verdicts = [
                judge(query, result.plan, result.milliseconds)
                for query, result in zip(kept, results, strict=True)
            ]
            rows += [{"planner": name, **as_row(score)} for score in score_classes(verdicts)]
            far = [v for v, close in zip(verdicts, near, strict=True) if not close]
            figures |= planner_figures(f"_{name}", verdicts)
            figures[f"tool_accuracy_{name}_without_neighbours"] = share_right(far)
            figures[f"plan_ms_p50_{name}"] = float(np.median([v.milliseconds for v in verdicts]))
    return Report(
        bench="frozen",
        settings={"domain": domain.name, "same_group_above": SAME_GROUP},
        figures=figures,
        rows=rows,
        notes=[
            "The queries took no part in training, tuning or plan cases. A neighbour is a query "
            f"to learn from whose similarity is above {SAME_GROUP}.",
        ],
    )


def _shipped() -> tuple[str, ...]:
    return (SHIPPED,) if is_shipped() else ()
