"""Runs the annotated (gold) plans of a domain's queries, to count the steps that have results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from casewright.domains.domain import Domain, OpenDomain
from casewright.graph import Outcome
from casewright.graph.outcome import MissingReferenceError, Status, StepInputs
from casewright.planner import AnnotatedQuery, Literal
from casewright.stores import Encoder
from casewright.stores.progress import progress_bar
from casewright.tools import CallContext, Toolbox, rows


@dataclass(frozen=True, slots=True)
class GoldRun:
    """A run of a gold plan in a scope, with the outcomes of the steps."""

    query: AnnotatedQuery
    scope: Mapping[str, str]
    outcomes: Sequence[Outcome]
    done_elsewhere: frozenset[str] = frozenset()  # steps that are ``done`` only in another scope

    @property
    def done_count(self) -> int:
        """The number of steps that ended ``done``."""
        return sum(outcome.status == "done" for outcome in self.outcomes)


class _WatchedScope(Mapping[str, str]):
    """A scope that records whether it is read. A plan that reads no scope needs only one run."""

    def __init__(self, scope: Mapping[str, str]) -> None:
        self._scope, self.is_read = scope, False

    def _read(self) -> Mapping[str, str]:
        self.is_read = True
        return self._scope

    def __getitem__(self, field: str) -> str:
        return self._read()[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


def scope_combinations(domain: Domain) -> list[dict[str, str]]:
    """Return every combination of the values of a domain's scope fields."""
    fields = domain.scopes
    return [dict(zip(fields, values, strict=True)) for values in product(*fields.values())]


def run_plan(toolbox: Toolbox, query: AnnotatedQuery, scope: Mapping[str, str]) -> list[Outcome]:
    """Run the steps of a gold plan in order, without time limits; return the outcomes."""
    context = CallContext(question=query.query, scope=scope)
    outcomes: dict[int, Outcome] = {}
    for number, step in enumerate(query.plan.steps, 1):
        inputs = StepInputs(query.query, query.record.context, outcomes)
        tool = toolbox[step.tool]
        try:
            assert tool.run is not None
            result_rows = rows(tool, tool.run(inputs.arguments(step), context))
            # A tool that declares no fields of results returns no rows.
            status: Status = "done" if result_rows or not tool.results else "empty"
        except MissingReferenceError:
            result_rows, status = [], "skipped"
        outcomes[number] = Outcome(f"s{number}", step.tool, status, rows=result_rows)
    return list(outcomes.values())


def run_gold_plans(domain: Domain, opened: OpenDomain, encoder: Encoder) -> list[GoldRun]:
    """Run the gold plans of the domain's queries, except of queries that declare tools.

    A plan runs in one scope after another until all its steps end ``done``, or once if it reads no
    scope. Of these runs, the one with the most ``done`` steps is returned. ``encoder`` is the
    stores' encoder.
    """
    queries = [query for query in domain.queries() if not query.record.tools_extra]
    # One batch for all texts is faster; the encoder's cache keeps the vectors for the runs.
    encoder.embed(sorted({text for query in queries for text in _texts_to_encode(query)}))
    scopes = scope_combinations(domain)
    runs = []
    with progress_bar("Running gold plans", len(queries)) as advance:
        for query in queries:
            runs.append(_best_run(opened.toolbox, query, scopes))
            advance(1)
    return runs


def _best_run(toolbox: Toolbox, query: AnnotatedQuery, scopes: Sequence[dict[str, str]]) -> GoldRun:
    runs: list[GoldRun] = []
    for scope in scopes:
        watched_scope = _WatchedScope(scope)
        runs.append(GoldRun(query, scope, run_plan(toolbox, query, watched_scope)))
        if runs[-1].done_count == len(query.plan.steps) or not watched_scope.is_read:
            break
    best = max(runs, key=lambda run: run.done_count)
    done = {outcome.step for run in runs for outcome in run.outcomes if outcome.status == "done"}
    empty = {outcome.step for outcome in best.outcomes if outcome.status == "empty"}
    return replace(best, done_elsewhere=frozenset(empty & done))


def _texts_to_encode(query: AnnotatedQuery) -> Iterator[str]:
    yield query.query
    for step in query.plan.steps:
        for _, argument in step.arguments:
            if isinstance(argument, Literal) and isinstance(argument.value, str):
                yield argument.value


def step_counts_by_tool(runs: Sequence[GoldRun]) -> list[dict[str, Any]]:
    """Return a row of step counts for each tool and for all; see ``GoldRun.done_elsewhere``."""
    counts: Counter[tuple[str, str]] = Counter(
        (name, "elsewhere" if outcome.step in run.done_elsewhere else outcome.status)
        for run in runs
        for outcome in run.outcomes
        for name in (outcome.tool, "all")
    )
    table_rows = []
    for name in [*sorted({name for name, _ in counts} - {"all"}), "all"]:
        done, skipped, elsewhere = (counts[name, s] for s in ("done", "skipped", "elsewhere"))
        empty = counts[name, "empty"] + elsewhere
        count = done + empty + skipped
        row = {"tool": name, "steps": count, "done": done, "empty": empty, "skipped": skipped}
        table_rows.append({**row, "empty_share": empty / max(count, 1), "elsewhere": elsewhere})
    return table_rows


def complete_share(runs: Sequence[GoldRun]) -> float:
    """Return the share of plans whose steps all ended ``done``."""
    return sum(run.done_count == len(run.outcomes) for run in runs) / max(len(runs), 1)
