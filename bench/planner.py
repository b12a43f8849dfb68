"""The accuracy of planners on a domain's annotated queries."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import count, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from casewright.bench.harness import finish, grouped_bars, load_domain, mean, p50, p95, tracked
from casewright.bench.report import Report
from casewright.domains import Domain
from casewright.finetune.baselines.classifiers import train_classifiers
from casewright.finetune.evaluation import MULTI_STEP, Verdict, as_row, judge, score_classes
from casewright.finetune.folds import NEAR_DUPLICATE_SIMILARITY, group_folds, similarity_groups
from casewright.planner import AnnotatedQuery, CasePlanner, Planner, Reader, Turn, plan_store
from casewright.planner.fallback import FallbackPlanner
from casewright.planner.named import CASE_PLANNER, CLASSIFIERS, check_planner, make_planner
from casewright.planner.reader_weights import save_reader
from casewright.stores.encoders.cache import UncachedQuestionEncoder
from casewright.tools import Toolbox

Queries = Sequence[AnnotatedQuery]
#: A learning curve's point: known queries, tool accuracy on one-task and on multi-step queries.
Point = tuple[int, float, float]
#: The number of known queries at a curve's first point. The number doubles from point to point.
FIRST_SIZE = 125
NOTES = (
    "tools: share of plans with the right tool sequence; arguments: share of plans with the right "
    "tools and arguments; arguments_paper: the same, of plans with prod_search or shipment_status. "
    "Precision, recall and F1 of “all” are means over the classes. Milliseconds include the "
    f"encoding of the question. Queries with a similarity above {NEAR_DUPLICATE_SIMILARITY} are in "
    "one fold, so that no planner knows a neighbour.",
)


def measure_planner(domain_name: str, planner: str, folds: int, *, curve: bool = False) -> Report:
    """Cross-validate a planner: each fold's plans come from a planner that knows the other folds.

    For a domain with a reader, the case planner's reader is trained for every fold, and an
    untrained reader is a control. Other controls are the fallback planner and, for the case
    planner, the ensemble of classifiers if scikit-learn is installed.
    """
    check_planner(planner)
    tested = load_domain(domain_name)
    domain, queries = tested.domain, tested.domain.queries()
    groups = similarity_groups([query.query for query in queries], tested.encoder)
    query_folds = group_folds(groups, folds)
    trial = Trial(domain, tested.toolbox, queries, query_folds, tested.uncached_encoder)
    trains_reader = planner == CASE_PLANNER and domain.reader is not None
    verdicts = trial.cross_validated(planner)
    controls = {"fallback plan": trial.cross_validated("fallback")}
    if planner == CASE_PLANNER and find_spec("sklearn") is not None:
        controls[CLASSIFIERS] = trial.cross_validated(CLASSIFIERS)
    if trains_reader:
        controls["reader not trained"] = trial.cross_validated("untrained")
    points = trial.learning_curve(planner, verdicts) if curve else []
    rows: list[dict[str, Any]] = [dict(as_row(score)) for score in score_classes(verdicts)]
    times = [verdict.milliseconds for verdict in verdicts]
    figures = planner_figures("", verdicts) | {"plan_ms_p50": p50(times), "plan_ms_p95": p95(times)}
    for name, control in controls.items():
        rows.append({**as_row(score_classes(control)[-1]), "class": f"control: {name}"})
        figures |= planner_figures(f"_{name.replace(' ', '_')}", control)
    for size, one_task, multi_step in points:
        figures[f"tool_accuracy_{planner}_of_{size}_queries"] = one_task
        figures[f"tool_accuracy_multi_step_{planner}_of_{size}_queries"] = multi_step
    settings = {"domain": domain.name, "planner": planner, "folds": folds, "queries": len(queries)}
    settings |= {"groups": len(set(groups)), "same_group_above": NEAR_DUPLICATE_SIMILARITY}
    draw = partial(_draw_curve, points=points) if curve else partial(_draw, rows=rows)
    return Report("planner", settings, figures, rows, NOTES, draw)


class Trial(NamedTuple):
    """A cross-validation: a domain's queries, and the positions of each fold's queries."""

    domain: Domain
    toolbox: Toolbox
    queries: Queries
    folds: Sequence[Sequence[int]]
    encoder: UncachedQuestionEncoder

    def cross_validated(self, name: str) -> list[Verdict]:
        """Return each query's verdict; the planner (or control) knows only the other folds."""
        verdict_by_position: dict[int, Verdict] = {}
        for number, fold in enumerate(self.folds, 1):
            with self._planner(name, self._queries_outside(fold)) as planner:
                verdicts = self._verdicts(planner, fold, f"Planner {name}, fold {number}")
            verdict_by_position |= zip(fold, verdicts, strict=True)
        return [verdict for _, verdict in sorted(verdict_by_position.items())]

    def learning_curve(self, name: str, verdicts: Sequence[Verdict]) -> list[Point]:
        """Return the accuracy on the first fold by the number of known queries.

        The last point, with all other folds known, is taken from the cross-validated ``verdicts``.
        """
        fold = self.folds[0]
        known = self._queries_outside(fold)
        random.Random(0).shuffle(known)
        doubling = (FIRST_SIZE * 2**exponent for exponent in count())
        sizes = list(takewhile(lambda size: size < len(known), doubling))
        points = []
        for size in tracked("Learning curve", sizes):
            with self._planner(name, known[:size]) as planner:
                fold_verdicts = self._verdicts(planner, fold, f"{name}, {size} queries")
            points.append((size, *_accuracies_by_tasks(fold_verdicts)))
        return [*points, (len(known), *_accuracies_by_tasks([verdicts[i] for i in fold]))]

    def _queries_outside(self, fold: Sequence[int]) -> list[AnnotatedQuery]:
        held_out = set(fold)
        return [query for i, query in enumerate(self.queries) if i not in held_out]

    @contextmanager
    def _planner(self, name: str, known: Queries) -> Iterator[Planner]:
        trains_reader = name == CASE_PLANNER and self.domain.reader is not None
        with TemporaryDirectory() as folder:
            if name == "fallback":
                yield FallbackPlanner()
            elif trains_reader or name == "untrained":
                reader = _train_reader(known, Path(folder), fit=name != "untrained")
                yield CasePlanner(store=None, reader=reader)
            elif name == CLASSIFIERS:
                yield train_classifiers(known, self.encoder)
            else:
                with plan_store(known, self.encoder) as store:
                    yield make_planner(name, store)

    def _verdicts(self, planner: Planner, fold: Sequence[int], label: str) -> list[Verdict]:
        return verdicts_of(planner, [self.queries[i] for i in fold], self.toolbox, label)


def _train_reader(known: Queries, folder: Path, *, fit: bool) -> Reader:
    from casewright.finetune.reader_training import ReaderSettings, train_reader

    save_reader(folder, *train_reader(known, ReaderSettings(epochs=None if fit else 0)))
    return Reader(folder)


def verdicts_of(
    planner: Planner,
    queries: Sequence[AnnotatedQuery],
    toolbox: Toolbox,
    label: str = "Planning",
    histories: Sequence[Sequence[Turn]] | None = None,
) -> list[Verdict]:
    """Plan each query, with its history if ``histories`` are given, and return the verdicts."""
    verdicts = []
    for number, query in enumerate(tracked(label, queries)):
        request = query.record.request(toolbox)
        if histories is not None:
            request = replace(request, history=histories[number])
        result = planner.plan(request)
        verdicts.append(judge(query, result.plan, result.milliseconds))
    return verdicts


def planner_figures(suffix: str, verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Return the figures of verdicts; the figures' names end with ``suffix``."""
    one_task, multi_step = _accuracies_by_tasks(verdicts)
    return {
        f"tool_accuracy{suffix}": share_right(verdicts),
        f"tool_accuracy_one_task{suffix}": one_task,
        f"tool_accuracy_multi_step{suffix}": multi_step,
        f"argument_accuracy{suffix}": mean([v.right_arguments for v in verdicts]),
        f"macro_f1{suffix}": score_classes(verdicts)[-1].f1,
    }


def share_right(verdicts: Sequence[Verdict]) -> float:
    """Return the tool accuracy; NaN without verdicts."""
    return mean([v.right_tools for v in verdicts])


def _accuracies_by_tasks(verdicts: Sequence[Verdict]) -> tuple[float, float]:
    """Return the tool accuracy on queries with one task, and on queries with several."""
    one_task = share_right([v for v in verdicts if v.gold != MULTI_STEP])
    return one_task, share_right([v for v in verdicts if v.gold == MULTI_STEP])


def _draw(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    classes = [row for row in rows if not row["class"].startswith("control:")]
    columns = {"tools right": "tools", "arguments right too": "arguments"}
    bars = {label: [row[name] for row in classes] for label, name in columns.items()}
    grouped_bars(axes, [row["class"] for row in classes], bars, rotation=20, ha="right")
    axes.set(ylim=(0, 1), ylabel="share of plans", title="Plans by class, cross-validated")


def _draw_curve(axes: Any, points: Sequence[Point]) -> None:
    sizes, one_task, multi_step = zip(*points, strict=True)
    axes.plot(sizes, one_task, "o-", label="one task")
    axes.plot(sizes, multi_step, "o--", label="multi-step")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    labels = {"xlabel": "known annotated queries", "ylabel": "tools right"}
    finish(axes, "Accuracy by the number of annotated queries", ylim=(0, 1), **labels)
