"""Measures the accuracy of the shipped planners on the test queries."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from casewright.bench.harness import load_domain, mean, p50
from casewright.bench.planner import planner_figures, share_right, verdicts_of
from casewright.bench.report import Report
from casewright.finetune.corpus import read_corpus
from casewright.finetune.evaluation import as_row, score_classes
from casewright.finetune.examples.corpus_examples import guest_queries
from casewright.finetune.folds import NEAR_DUPLICATE_SIMILARITY, similarity_groups
from casewright.planner import AnnotatedQuery, Planner, plan_store
from casewright.planner.fallback import FallbackPlanner
from casewright.planner.named import CASE_PLANNER, ENSEMBLE, PARSER, make_planner
from casewright.planner.shipped import SHIPPED, has_adapter
from casewright.tools import Toolbox

#: The names of the tables.
FROZEN, ADDED = "frozen", "added tools"

NOTES = (
    "The queries took no part in training, tuning or plan cases. A query's neighbour is a training "
    f"query whose similarity to the query is above {NEAR_DUPLICATE_SIMILARITY}.",
)
ADDED_NOTE = (
    "added tools: messages of the corpus's test toolboxes; the tools of a message's plan are added "
    "to the domain's tools. beside added tools: the test queries, with such tools added."
)


def shipped_planners() -> tuple[str, ...]:
    """Return the shipped planners' names: two without the packaged language model, else four."""
    return (CASE_PLANNER, PARSER, *((SHIPPED, ENSEMBLE) if has_adapter() else ()))


def measure_frozen(domain_name: str, message_count: int = 0, seed: int = 0) -> Report:
    """Measure accuracy on queries that were written after the planners were final.

    The planners also plan for ``message_count`` messages that add tools to the domain's toolbox.
    """
    tested = load_domain(domain_name)
    domain, encoder = tested.domain, tested.encoder
    test_queries, known_queries = tested.held_out_queries(), domain.queries()
    groups = similarity_groups([query.query for query in (*known_queries, *test_queries)], encoder)
    known_groups = set(groups[: len(known_queries)])
    has_neighbour = [group in known_groups for group in groups[len(known_queries) :]]
    queries_by_kind = _with_added_tools(tested.toolbox, test_queries, message_count, seed)
    rows: list[dict[str, Any]] = []
    figures = {"queries": float(len(test_queries))}
    figures["queries_with_a_neighbour"] = float(sum(has_neighbour))
    with plan_store(known_queries, tested.uncached_encoder) as store:
        reader = domain.open_reader()
        planners: dict[str, Planner] = {
            name: make_planner(name, store, reader) for name in shipped_planners()
        }
        for name, planner in {**planners, "fallback": FallbackPlanner()}.items():
            planner.plan(test_queries[0].record.request(tested.toolbox))  # the first plan is slow
            verdicts = verdicts_of(planner, test_queries, tested.toolbox, name)
            scores = [as_row(score) for score in score_classes(verdicts)]
            rows += [{"table": FROZEN, "planner": name, **score} for score in scores]
            distant = [v for v, is_near in zip(verdicts, has_neighbour, strict=True) if not is_near]
            figures |= planner_figures(f"_{name}", verdicts)
            figures[f"tool_accuracy_{name}_without_neighbours"] = share_right(distant)
            figures[f"plan_ms_p50_{name}"] = p50([v.milliseconds for v in verdicts])
            for kind, queries in queries_by_kind.items():
                kind_verdicts = verdicts_of(planner, queries, tested.toolbox, f"{name}, {kind}")
                accuracy = mean([v.right_arguments for v in kind_verdicts])
                row = {"planner": name, "messages": kind, "count": len(queries)}
                row |= {"tools": share_right(kind_verdicts), "arguments": accuracy}
                rows.append({"table": ADDED, **row})
    settings = {"domain": domain.name, "same_group_above": NEAR_DUPLICATE_SIMILARITY}
    settings |= {"guests": message_count, "seed": seed}
    notes = [*NOTES, *([ADDED_NOTE] if message_count else [])]
    return Report(FROZEN, settings, figures, rows, notes, titles={FROZEN: FROZEN, ADDED: ADDED})


def _with_added_tools(
    toolbox: Toolbox, queries: Sequence[AnnotatedQuery], count: int, seed: int
) -> dict[str, list[AnnotatedQuery]]:
    """Return, by kind, ``count`` messages that add their tools, and queries with added tools."""
    if not count:
        return {}
    rng = random.Random(seed)
    messages = guest_queries(toolbox, read_corpus("measuring"), count, rng)
    with_tools = [
        replace(query, record=query.record.model_copy(update={"tools_extra": tools}))
        for query in queries
        if not query.record.tools_extra
        for tools in [rng.choice(messages).record.tools_extra]
    ]
    return {ADDED: messages, f"beside {ADDED}": with_tools}
