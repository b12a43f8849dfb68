"""Count for how many steps of gold plans a domain's stores have results."""

from __future__ import annotations

from casewright.bench.harness import open_domain
from casewright.bench.report import Report
from casewright.domains.gold_plans import complete_share, run_gold_plans, step_counts_by_tool

NOTES = (
    "Outcomes of the steps of gold plans. Each plan runs for the user for whom most of its steps "
    "have results. elsewhere: steps without results for this user, but with results for another "
    "user: some queries are about several users. whole_plans_share: share of the plans in which "
    "every step has results. Queries that declare tools are left out.",
)


def measure_evidence(domain_name: str) -> Report:
    """Run the gold plan of every annotated query, and count the outcomes of each tool's steps."""
    with open_domain(domain_name) as tested:
        runs = run_gold_plans(tested.domain, tested.opened, tested.encoder)
    rows = step_counts_by_tool(runs)  # the last row is about all tools
    excluded_count = len(tested.domain.queries()) - len(runs)
    settings = {"domain": tested.domain.name, "queries": len(runs), "left_out": excluded_count}
    shares = {"empty_share": rows[-1]["empty_share"], "whole_plans_share": complete_share(runs)}
    figures = {**shares, "queries": len(runs), "queries_left_out": excluded_count}
    return Report("evidence", settings, figures, rows, NOTES)
