"""Whether a domain's stores hold what its annotated queries ask for: how gold plans end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from casewright.bench.harness import open_ground
from casewright.bench.report import Report
from casewright.domains import Domain, OpenDomain
from casewright.graph import Outcome
from casewright.graph.outcome import Status
from casewright.graph.references import Known, MissingReferenceError
from casewright.planner import AnnotatedQuery, Literal
from casewright.stores import Encoder
from casewright.stores.progress import progress_bar
from casewright.tools import CallContext, Toolbox, rows


@dataclass(frozen=True, slots=True)
class GoldRun:
    """A gold plan, run for somebody.

    Attributes:
        query: The annotated query.
        scope: For whom it was run.
        steps: How its steps ended.
        elsewhere: Those that ended ``empty`` here and ``done`` for another asker.
    """

    query: AnnotatedQuery
    scope: Mapping[str, str]
    steps: Sequence[Outcome]
    elsewhere: frozenset[str] = frozenset()

    @property
    def done(self) -> int:
        """How many steps found something, or needed nothing."""
        return sum(step.status == "done" for step in self.steps)


class _Watched(Mapping[str, str]):
    """A scope that knows whether it was read: where it was not, who asks does not matter."""

    def __init__(self, scope: Mapping[str, str]) -> None:
        self._own = scope
        self.read = False

    @property
    def _scope(self) -> Mapping[str, str]:
        self.read = True
        return self._own

    def __getitem__(self, field: str) -> str:
        return self._scope[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scope)

    def __len__(self) -> int:
        return len(self._scope)


def measure_evidence(domain_name: str) -> Report:
    """Run the gold plan of every annotated query, and count how the steps of each tool end."""
    with open_ground(domain_name) as ground:
        runs = run_gold_plans(ground.domain, ground.opened, ground.encoder)
    return report(ground.domain, runs)


def report(domain: Domain, runs: Sequence[GoldRun]) -> Report:
    """Count how the steps of gold plans ended: by tool, and all together."""
    ended: Counter[tuple[str, str]] = Counter(
        (name, "elsewhere" if step.step in run.elsewhere else step.status)
        for run in runs
        for step in run.steps
        for name in (step.tool, "all")
    )
    tools = sorted({name for name, _ in ended} - {"all"})
    table = [_row(name, ended) for name in [*tools, "all"]]
    left_out = len(domain.queries()) - len(runs)
    whole = sum(run.done == len(run.steps) for run in runs)
    return Report(
        bench="evidence",
        settings={"domain": domain.name, "queries": len(runs), "left_out": left_out},
        figures={
            "empty_share": table[-1]["empty_share"],
            "whole_plans_share": whole / max(len(runs), 1),
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


def run_gold_plans(domain: Domain, opened: OpenDomain, encoder: Encoder) -> list[GoldRun]:
    """Run the gold plans of a domain's queries, but for those that bring tools of their own.

    Each is run for the asker for whom most steps end ``done``, with the encoder of the stores.
    """
    chosen = [query for query in domain.queries() if not query.record.tools_extra]
    # Together, texts are encoded several times faster than one by one; the cache keeps them.
    encoder.embed(sorted({text for query in chosen for text in _texts(query)}))
    fields = domain.scopes
    askers = [dict(zip(fields, values, strict=True)) for values in product(*fields.values())]
    runs = []
    with progress_bar("Running gold plans", len(chosen)) as advance:
        for query in chosen:
            runs.append(_best_run(opened.toolbox, query, askers))
            advance(1)
    return runs


def run_plan(toolbox: Toolbox, query: AnnotatedQuery, scope: Mapping[str, str]) -> list[Outcome]:
    """Run a gold plan as the graph does, but one step after the other and without time limits."""
    outcomes: dict[int, Outcome] = {}
    for number, step in enumerate(query.plan.steps, 1):
        known = Known(query.query, query.record.context, outcomes)
        tool = toolbox[step.tool]
        try:
            assert tool.run is not None
            returned = tool.run(known.arguments(step), CallContext("", "", "", query.query, scope))
            found = rows(tool, returned)
            status: Status = "done" if found or not tool.results else "empty"
        except MissingReferenceError:
            found, status = [], "skipped"
        outcomes[number] = Outcome(f"s{number}", step.tool, status, rows=found)
    return list(outcomes.values())


def _best_run(
    toolbox: Toolbox, query: AnnotatedQuery, askers: Sequence[Mapping[str, str]]
) -> GoldRun:
    runs: list[GoldRun] = []
    for asker in askers:
        watched = _Watched(asker)
        runs.append(GoldRun(query, asker, run_plan(toolbox, query, watched)))
        if runs[-1].done == len(query.plan.steps) or not watched.read:
            break
    best = max(runs, key=lambda run: run.done)
    found = {step.step for run in runs for step in run.steps if step.status == "done"}
    empty = {step.step for step in best.steps if step.status == "empty"}
    return replace(best, elsewhere=frozenset(empty & found))


def _texts(query: AnnotatedQuery) -> Iterator[str]:
    yield query.query
    for value in (value for step in query.plan.steps for _, value in step.arguments):
        if isinstance(value, Literal) and isinstance(value.value, str):
            yield value.value


def _row(name: str, ended: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    done, empty, skipped, elsewhere = (
        ended.get((name, status), 0) for status in ("done", "empty", "skipped", "elsewhere")
    )
    steps = done + empty + elsewhere + skipped
    return {
        "tool": name,
        "steps": steps,
        "done": done,
        "empty": empty + elsewhere,
        "skipped": skipped,
        "empty_share": (empty + elsewhere) / max(steps, 1),
        "elsewhere": elsewhere,
    }
