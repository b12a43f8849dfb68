"""The accuracy of the shipped planners on the test queries."""

from __future__ import annotations

from typing import Any

from casewright.bench.harness import load_domain, p50, verdicts_of
from casewright.bench.planner import planner_figures, share_right
from casewright.bench.report import Report
from casewright.finetune.evaluation import as_row, score_classes
from casewright.finetune.folds import SAME_GROUP, similarity_groups
from casewright.planner import Planner, plan_store
from casewright.planner.fallback import FallbackPlanner
from casewright.planner.named import CASE_PLANNER, ENSEMBLE, PARSER, make_planner
from casewright.planner.shipped import SHIPPED, is_shipped

NOTES = (
    "The queries took no part in training, tuning or plan cases. A neighbour is a training query "
    f"with a similarity above {SAME_GROUP}.",
)


def shipped_planners() -> tuple[str, ...]:
    """Return the names of the planners that ship, some only with the packaged language model."""
    return (CASE_PLANNER, PARSER, *((SHIPPED, ENSEMBLE) if is_shipped() else ()))


def measure_frozen(domain_name: str) -> Report:
    """Measure accuracy on queries that were written after the planners were final."""
    tested = load_domain(domain_name)
    domain, encoder = tested.domain, tested.encoder
    frozen, known = tested.held_out_queries(), domain.queries()
    groups = similarity_groups([query.query for query in (*known, *frozen)], encoder)
    known_groups = set(groups[: len(known)])
    has_neighbour = [group in known_groups for group in groups[len(known) :]]
    rows: list[dict[str, Any]] = []
    figures = {"queries": float(len(frozen)), "queries_with_a_neighbour": float(sum(has_neighbour))}
    with plan_store(known, tested.uncached) as store:
        reader = domain.open_reader()
        planners: dict[str, Planner] = {
            name: make_planner(name, store, reader) for name in shipped_planners()
        }
        for name, planner in {**planners, "fallback": FallbackPlanner()}.items():
            planner.plan(frozen[0].record.request(tested.toolbox))
            verdicts = verdicts_of(planner, frozen, tested.toolbox, name)
            rows += [{"planner": name, **as_row(score)} for score in score_classes(verdicts)]
            distant = [v for v, near in zip(verdicts, has_neighbour, strict=True) if not near]
            figures |= planner_figures(f"_{name}", verdicts)
            figures[f"tool_accuracy_{name}_without_neighbours"] = share_right(distant)
            figures[f"plan_ms_p50_{name}"] = p50([v.milliseconds for v in verdicts])
    settings = {"domain": domain.name, "same_group_above": SAME_GROUP}
    return Report("frozen", settings, figures, rows, NOTES)
