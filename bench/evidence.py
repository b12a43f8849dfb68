"""The results of gold plans' steps: what a domain's stores hold for its annotated queries."""

from __future__ import annotations

from casewright.bench.harness import open_ground
from casewright.bench.report import Report
from casewright.domains.gold_plans import ends_by_tool, run_gold_plans, whole_share


def measure_evidence(domain_name: str) -> Report:
    """Run the gold plan of every annotated query, and count how the steps of each tool end."""
    with open_ground(domain_name) as ground:
        runs = run_gold_plans(ground.domain, ground.opened, ground.encoder)
    table, left_out = ends_by_tool(runs), len(ground.domain.queries()) - len(runs)
    return Report(
        bench="evidence",
        settings={"domain": ground.domain.name, "queries": len(runs), "left_out": left_out},
        figures={
            "empty_share": table[-1]["empty_share"],
            "whole_plans_share": whole_share(runs),
            "queries": len(runs),
            "queries_left_out": left_out,
        },
        rows=table,
        notes=[
            "How the steps of the annotated queries' own plans end, each plan run for the asker "
            "for whom most of its steps end done. elsewhere: of the empty steps, those that find "
            "something for another asker: some queries ask for things of several customers. "
            "Whole plans: every step done. Left out: queries that bring tools of their own."
        ],
    )
