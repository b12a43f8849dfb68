"""How good a planner is on a domain's annotated queries, beside what a planner must beat."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.bench.report import Report
from casewright.finetune.evaluation import ClassScore, Verdict, as_row, judge, score_classes
from casewright.finetune.folds import SAME_GROUP, group_folds, similarity_groups
from casewright.planner import AnnotatedQuery, PlanRequest, PlanResult, plan_store
from casewright.planner.fallback import fallback_plan
from casewright.planner.request import Planner
from casewright.stores import CachedEncoder, CaseStore, default_encoder
from casewright.stores.paths import data_folder
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox

Make = Callable[[CaseStore], Planner]


def measure_planner(domain_name: str, planner: str, folds: int) -> Report:
    """Cross-validate a planner: the queries of a fold take no part in its plan cases.

    Beside it, in the same run: the planner with its plan cases' plans shuffled among their
    questions, and the fallback plan, which asks one tool the whole question.
    """
    from casewright.domains import find_domain
    from casewright.serve.session import check_planner, make_planner

    check_planner(planner)
    domain = find_domain(domain_name)
    encoder = default_encoder()
    opened = domain.open(data_folder() / domain.name, encoder, False)
    toolbox, queries = opened.toolbox, domain.queries()
    opened.close()
    timed = UncachedQuestions(encoder)
    groups = similarity_groups([query.query for query in queries], encoder)
    parts = group_folds(groups, folds)

    def cross_validate(make: Make, label: str, *, shuffle: bool = False) -> list[Verdict]:
        verdicts: dict[int, Verdict] = {}
        with progress_bar(label, len(queries), show=None) as advance:
            for part in parts:
                held_out = set(part)
                known = [query for i, query in enumerate(queries) if i not in held_out]
                with plan_store(_shuffled(known) if shuffle else known, timed) as store:
                    made = make(store)
                    for index in part:
                        verdicts[index] = _verdict(made, queries[index], toolbox)
                        advance(1)
        return [verdict for _, verdict in sorted(verdicts.items())]

    own = cross_validate(lambda store: make_planner(planner, store), f"Planner {planner}")
    controls = {
        "control: plans shuffled": cross_validate(
            lambda store: make_planner(planner, store), "Control: shuffled", shuffle=True
        ),
        "control: fallback plan": cross_validate(lambda store: _Fallback(), "Control: fallback"),
    }
    scores = score_classes(own)
    rows = [dict(as_row(score)) for score in scores]
    rows += [
        {**as_row(score_classes(verdicts)[-1]), "class": name}
        for name, verdicts in controls.items()
    ]
    return Report(
        bench="planner",
        settings={
            "domain": domain.name,
            "planner": planner,
            "folds": folds,
            "queries": len(queries),
            "groups": len(set(groups)),
            "same_group_above": SAME_GROUP,
        },
        figures=_figures(scores, own, controls),
        rows=rows,
        notes=[
            "tools: share of plans with the right tool sequence; arguments: and every argument "
            "right; arguments_paper: the same over plans with prod_search or shipment_status. "
            "Precision, recall and F1 of “all” are means over the classes. Milliseconds include "
            "encoding the question, with no cache.",
        ],
        draw=lambda axes: _draw(axes, scores),
    )


def _figures(
    scores: Sequence[ClassScore], own: Sequence[Verdict], controls: dict[str, list[Verdict]]
) -> dict[str, float]:
    overall = scores[-1]
    times = [verdict.milliseconds for verdict in own]
    one_task = [verdict for verdict in own if verdict.gold != "multi_step"]
    return {
        "tool_accuracy": overall.tool_accuracy,
        "tool_accuracy_without_multi_step": float(np.mean([v.tools for v in one_task])),
        # The case planner's settings were chosen on every second query, from the first.
        "tool_accuracy_tuning_half": float(np.mean([v.tools for v in own[0::2]])),
        "tool_accuracy_other_half": float(np.mean([v.tools for v in own[1::2]])),
        "argument_accuracy": overall.argument_accuracy,
        "macro_f1": overall.f1,
        "plan_ms_p50": float(np.median(times)),
        "plan_ms_p95": float(np.percentile(times, 95)),
        **{
            f"tool_accuracy_{name.replace(': ', '_').replace(' ', '_')}": float(
                np.mean([verdict.tools for verdict in verdicts])
            )
            for name, verdicts in controls.items()
        },
    }


def _verdict(planner: Planner, query: AnnotatedQuery, toolbox: Toolbox) -> Verdict:
    result = planner.plan(query.record.request(toolbox))
    return judge(query, result.plan, result.milliseconds)


def _shuffled(queries: list[AnnotatedQuery]) -> list[AnnotatedQuery]:
    plans = [query.plan for query in queries]
    random.Random(0).shuffle(plans)
    return [replace(query, plan=plan) for query, plan in zip(queries, plans, strict=True)]


class UncachedQuestions:
    """The encoder, without its cache for a single text: that is the question being planned for."""

    def __init__(self, encoder: CachedEncoder) -> None:
        self._encoder = encoder
        self.name = encoder.name
        self.dimension = encoder.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension)."""
        return (self._encoder.encoder if len(texts) == 1 else self._encoder).embed(texts)


class _Fallback:
    name = "fallback"

    def plan(self, request: PlanRequest) -> PlanResult:
        return PlanResult(fallback_plan(request), self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return self.plan(request)


def _draw(axes: Any, scores: Sequence[ClassScore]) -> None:
    names = [score.name for score in scores]
    place = np.arange(len(names))
    axes.bar(place - 0.2, [s.tool_accuracy for s in scores], 0.4, label="tools right")
    axes.bar(place + 0.2, [s.argument_accuracy for s in scores], 0.4, label="arguments right too")
    axes.set_xticks(place, names, rotation=20, ha="right")
    axes.set(ylim=(0, 1), ylabel="share of plans", title="Plans by class, cross-validated")
    axes.legend()
