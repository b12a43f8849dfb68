"""The accuracy of planners by the number of plan cases, for a user's or the corpus's toolboxes."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from casewright.bench import toolbox_planners, unseen
from casewright.bench.harness import p50
from casewright.bench.report import Report
from casewright.domains.python_file import load_object, running_user_code
from casewright.errors import InputError
from casewright.finetune.corpus import Split, read_corpus
from casewright.finetune.evaluation import EvaluationItem, Figure, evaluate, items_of, plan_class
from casewright.finetune.evaluation.intervals import Resamples, percentile_interval, shares
from casewright.finetune.evaluation.outcome import PlanOutcome
from casewright.planner import AnnotatedQuery, read_annotated
from casewright.planner.named import ModelSettings
from casewright.stores import CachedEncoder, default_encoder
from casewright.stores.progress import show_progress
from casewright.tools import Toolbox

#: The files in a folder with a user's own tools.
TOOLS_FILE, LEARN_FILE, TEST_FILE = "tools.py", "learn.jsonl", "test.jsonl"
#: The default numbers of plan cases.
CASE_COUNTS = (0, 5, 20, 60)
NOTES = (
    f"{unseen.COLUMNS_NOTE} An argument that holds the whole question where the gold plan has a "
    "short literal is also wrong. Figures are means over random draws of plan cases. ms: median "
    "wall time. cpu ms: median CPU time, over all cores.",
    "Brackets are 95 % intervals of a Bayesian bootstrap over a folder's messages, or over the "
    "corpus's toolboxes. They have no width if all plans are right, or all are wrong.",
)


class OwnFolder(NamedTuple):
    """A user's toolbox, messages for plan cases (``learn``), and test messages (``items``)."""

    name: str
    toolbox: Toolbox
    learn: Sequence[AnnotatedQuery]
    items: Sequence[EvaluationItem]

    def test_set(self, case_count: int, seed: int) -> unseen.UnseenSet:
        """Return the test messages, with ``case_count`` plan cases drawn from ``learn``."""
        plan_cases = {self.toolbox.fingerprint(): stratified(self.learn, case_count, seed)}
        classes = [(item.query.label,) for item in self.items]
        bootstrap_groups = range(len(self.items))
        return unseen.UnseenSet(self.name, self.items, classes, bootstrap_groups, plan_cases)


def own_folder(folder: Path) -> OwnFolder:
    """Run a folder's ``tools.py``; return the toolbox, and the messages of the folder's two files.

    ``toolbox`` in ``tools.py`` is a ``Toolbox``, or a function that returns one. Raise
    ``InputError`` if a file is missing or cannot be read, or a plan is not valid for the tools.
    """
    name = f"{folder / TOOLS_FILE}:toolbox"
    toolbox: Any = load_object(name, "--data", "a Toolbox, or a function that returns one")
    if not isinstance(toolbox, Toolbox):
        with running_user_code(f"--data {name}"):
            toolbox = toolbox()
    if not isinstance(toolbox, Toolbox):
        raise InputError(f"--data {name} is a {type(toolbox).__name__}. Make it a Toolbox.")
    item_lists = []
    for file in (folder / LEARN_FILE, folder / TEST_FILE):
        try:
            item_lists.append(items_of(read_annotated(file), toolbox))
        except InputError as error:
            raise InputError(f"--data {file}: {error}") from error
    learn, test = item_lists
    if not test:
        raise InputError(f"--data {folder / TEST_FILE} has no message. Add annotated messages.")
    return OwnFolder(folder.resolve().name, toolbox, [item.query for item in learn], test)


def stratified(queries: Sequence[AnnotatedQuery], count: int, seed: int) -> list[AnnotatedQuery]:
    """Return a sample with each class's share; a seed's larger samples contain its smaller ones."""
    rng = random.Random(seed)
    queries_by_class: dict[str, list[AnnotatedQuery]] = defaultdict(list)
    for query in queries:
        queries_by_class[query.label or plan_class(query.plan)].append(query)
    # Each class's queries get evenly spaced positions from 0 to 1; the lowest positions win.
    positioned = []
    for members in queries_by_class.values():
        rng.shuffle(members)
        offset = rng.random()
        positioned += [((n + offset) / len(members), query) for n, query in enumerate(members)]
    return [query for _, query in sorted(positioned, key=lambda pair: pair[0])[:count]]


@dataclass(frozen=True, slots=True)
class OwnToolsTrial:
    """The options of ``casewright bench own-tools``."""

    planners: Sequence[str]
    data: Path | None = None  # a folder with tools and messages; None measures only on the corpus
    case_counts: Sequence[int] = CASE_COUNTS  # the numbers of plan cases, measured in turn
    seeds: int = 5  # the number of draws of plan cases
    split: Split | None = "measuring"  # the split of the corpus; None measures only on data
    limit: int | None = None  # the maximum number of messages of a test set
    settings: ModelSettings = field(default_factory=ModelSettings)


def measure_own_tools(trial: OwnToolsTrial, encoder: CachedEncoder | None = None) -> Report:
    """Plan every message with every planner and control, for each draw of plan cases."""
    measurements = [
        (table, case_count, [test_set.limited(trial.limit, 0) for test_set in sets])
        for table, case_count, sets in _measurements(trial)
    ]
    if not measurements:
        raise InputError("No messages are given. Give --data DIR, or --corpus.")
    names = toolbox_planners.names_with_controls(trial.planners, with_base_model=False)
    factories = {name: toolbox_planners.planner_factory(name, trial.settings) for name in names}
    encoder = encoder or default_encoder()
    rows: list[dict[str, Any]] = []
    # The fallback plan uses no cases, so it runs with only one number of cases.
    runs = [
        (name, table, case_count, sets)
        for name, (table, case_count, sets) in product(factories, measurements)
        if name != toolbox_planners.FALLBACK or case_count == min(trial.case_counts)
    ]
    with show_progress("Planning", sum(len(sets) for *_, sets in runs), "runs") as advance:
        for name, table, case_count, sets in runs:
            outcomes: list[PlanOutcome] = []
            cpu_ms: list[float] = []
            for test_set in sets:
                with unseen.stores_of([test_set], encoder) as (stores, empty_store):
                    factory = factories[name]
                    planner = toolbox_planners.ToolboxPlanner(name, factory, stores, empty_store)
                    outcomes += evaluate(test_set.items, {name: planner}).outcomes[name]
                cpu_ms += planner.cpu_ms
                advance(1)
            groups = [group for test_set in sets for group in test_set.groups]
            row = {"table": table, "planner": name, "cases": case_count, "draws": len(sets)}
            row |= unseen.figures_of(outcomes, partial(_clustered_share, groups=groups))
            rows.append({**row, "cpu ms": round(p50(cpu_ms), 1) if cpu_ms else None})
    settings = {"planners": trial.planners, "cases": trial.case_counts, "seeds": trial.seeds}
    settings |= {"split": trial.split, "data": trial.data and str(trial.data), "limit": trial.limit}
    figures = {
        f"{column}, {row['table']}, {row['planner']}, {row['cases']} cases": row[column]
        for row in rows
        for column in unseen.COLUMN_BY_FIGURE.values()
    }
    titles = {row["table"]: f"{row['table']}, by number of annotated messages" for row in rows}
    format_rows = unseen.with_intervals
    return Report(
        "own-tools", settings, figures, rows, NOTES, titles=titles, format_rows=format_rows
    )


def _measurements(trial: OwnToolsTrial) -> Iterator[tuple[str, int, list[unseen.UnseenSet]]]:
    """Yield a table's name, a number of plan cases, and a test set for each draw of the cases."""
    if trial.data is not None:
        folder = own_folder(trial.data)
        max_count = len(folder.learn)
        for case_count in _case_counts(trial, max_count):
            # With no message or all messages as plan cases, all draws are equal.
            draws = 1 if case_count in (0, max_count) else trial.seeds
            yield folder.name, case_count, [folder.test_set(case_count, n) for n in range(draws)]
    if trial.split is not None:
        max_count = min(len(box.queries) for box in read_corpus(trial.split)) - 1
        case_counts = _case_counts(trial, max_count)
        draw = partial(unseen.corpus_set, trial.split)
        for case_count in case_counts:
            # All case counts have the same test messages: those left by the largest count.
            sets = [
                replace(draw(case_counts[-1], seed), plan_cases=draw(case_count, seed).plan_cases)
                for seed in range(trial.seeds)
            ]
            yield trial.split, case_count, sets


def _case_counts(trial: OwnToolsTrial, max_count: int) -> list[int]:
    """Return the trial's numbers of plan cases that are at most ``max_count``, in order."""
    return [count for count in sorted(set(trial.case_counts)) if count <= max_count]


def _clustered_share(values: Sequence[bool], groups: Sequence[int]) -> Figure:
    """Return the share of true values, with the interval of a bootstrap over the groups."""
    interval = percentile_interval(shares(values, Resamples(len(values), tuple(groups))))
    return Figure(sum(values) / len(values), *interval, len(values))
