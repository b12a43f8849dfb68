"""The accuracy of a planner on a domain's annotated queries, beside its baselines."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from casewright.bench.harness import mean, p50, p95, read_ground, verdicts_of
from casewright.bench.report import Report
from casewright.domains import Domain
from casewright.finetune.baselines.classifiers import train_classifiers
from casewright.finetune.evaluation import MULTI_STEP, Verdict, as_row, score_classes
from casewright.finetune.folds import SAME_GROUP, group_folds, similarity_groups
from casewright.planner import AnnotatedQuery, CasePlanner, plan_store
from casewright.planner.fallback import FallbackPlanner
from casewright.planner.named import (
    CASE_PLANNER,
    CLASSIFIERS,
    check_planner,
    make_planner,
)
from casewright.planner.reader import Reader
from casewright.planner.reader_weights import save_reader
from casewright.planner.request import Planner
from casewright.stores.encoders.cache import UncachedQuestions
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox

Queries = Sequence[AnnotatedQuery]
#: Of a learning curve: queries, right tools of one task, right tools of several.
Point = tuple[int, float, float]
#: The smallest learning curve that shows a shape: doubling.
FIRST_SIZE = 125


def measure_planner(domain_name: str, planner: str, folds: int, *, curve: bool = False) -> Report:
    """Cross-validate a planner: the queries of a fold take no part in its training or plan cases.

    A planner that a reader belongs to is trained anew for every fold. Beside it, in the same run: a
    reader that was not trained, the ensemble of classifiers where scikit-learn is installed, and
    the fallback plan, which asks one tool the whole question.
    """
    check_planner(planner)
    ground = read_ground(domain_name)
    domain, queries = ground.domain, ground.domain.queries()
    groups = similarity_groups([query.query for query in queries], ground.encoder)
    parts = group_folds(groups, folds)
    trial = Trial(domain, ground.toolbox, queries, parts, ground.uncached)
    trained = planner == CASE_PLANNER and domain.reader is not None
    own = trial.cross_validated(planner)
    others = {"fallback plan": trial.cross_validated("fallback")}
    if planner == CASE_PLANNER and find_spec("sklearn") is not None:
        others[CLASSIFIERS] = trial.cross_validated(CLASSIFIERS)
    if trained:
        others["reader not trained"] = trial.cross_validated("untrained")
    curves = trial.curve(planner, own) if curve else []
    rows: list[dict[str, Any]] = [dict(as_row(score)) for score in score_classes(own)]
    rows += [
        {**as_row(score_classes(verdicts)[-1]), "class": f"beside: {name}"}
        for name, verdicts in others.items()
    ]
    spent = [verdict.milliseconds for verdict in own]
    figures = {**planner_figures("", own), "plan_ms_p50": p50(spent), "plan_ms_p95": p95(spent)}
    for name, verdicts in others.items():
        figures |= planner_figures(f"_{name.replace(' ', '_')}", verdicts)
    for size, single, several in curves:
        figures[f"tool_accuracy_{planner}_of_{size}_queries"] = single
        figures[f"tool_accuracy_multi_step_{planner}_of_{size}_queries"] = several
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
        figures=figures,
        rows=rows,
        notes=[
            "tools: share of plans with the right tool sequence; arguments: and every argument "
            "right; arguments_paper: the same over plans with prod_search or shipment_status. "
            "Precision, recall and F1 of “all” are means over the classes. Milliseconds include "
            "encoding the question, with no cache. A query and its neighbours above "
            f"{SAME_GROUP} share a fold, so no plan is planned by a neighbour's.",
        ],
        draw=(lambda axes: _draw_curve(axes, curves)) if curve else lambda axes: _draw(axes, rows),
    )


@dataclass(frozen=True, slots=True)
class Trial:
    """A domain's queries, the folds of their positions, and an encoder for plan stores."""

    domain: Domain
    toolbox: Toolbox
    queries: Queries
    parts: Sequence[Sequence[int]]
    encoder: UncachedQuestions

    def cross_validated(self, name: str) -> list[Verdict]:
        """Return the verdict on every query, planned for by a planner that does not know it."""
        verdicts_at: dict[int, Verdict] = {}
        for fold, part in enumerate(self.parts, 1):
            with self._planner(name, self._others(part)) as planner:
                verdicts = self._verdicts(planner, part, f"Planner {name}, fold {fold}")
            verdicts_at |= zip(part, verdicts, strict=True)
        return [verdict for _, verdict in sorted(verdicts_at.items())]

    def curve(self, name: str, whole: Sequence[Verdict]) -> list[Point]:
        """Return the accuracy on the first fold by the number of known queries.

        Args:
            name: The planner's.
            whole: Its verdicts when it knows all but its own fold.
        """
        part = self.parts[0]
        known = self._others(part)
        random.Random(0).shuffle(known)
        sizes = [FIRST_SIZE]
        while sizes[-1] < len(known):
            sizes.append(sizes[-1] * 2)
        # All of them were known in the cross-validation.
        sizes.pop()
        points = []
        with progress_bar("Learning curve", len(sizes), show=None) as advance:
            for size in sizes:
                with self._planner(name, known[:size]) as planner:
                    verdicts = self._verdicts(planner, part, f"{name}, {size} queries")
                points.append((size, *_one_and_several(verdicts)))
                advance(1)
        return [*points, (len(known), *_one_and_several([whole[i] for i in part]))]

    def _others(self, part: Sequence[int]) -> list[AnnotatedQuery]:
        held_out = set(part)
        return [query for i, query in enumerate(self.queries) if i not in held_out]

    @contextmanager
    def _planner(self, name: str, known: Queries) -> Iterator[Planner]:
        """Make a planner that knows these queries and no others."""
        reads = name == "untrained" or (name == CASE_PLANNER and self.domain.reader is not None)
        with TemporaryDirectory() as folder:
            if name == "fallback":
                yield FallbackPlanner()
            elif reads:
                yield CasePlanner(None, _trained(known, Path(folder), fit=name != "untrained"))
            elif name == CLASSIFIERS:
                yield train_classifiers(known, self.encoder)
            else:
                with plan_store(known, self.encoder) as store:
                    yield make_planner(name, store)

    def _verdicts(self, planner: Planner, part: Sequence[int], label: str) -> list[Verdict]:
        return verdicts_of(planner, [self.queries[i] for i in part], self.toolbox, label)


def _trained(known: Queries, folder: Path, *, fit: bool) -> Reader:
    from casewright.finetune.reader_training import ReaderSettings, train_reader

    settings = ReaderSettings() if fit else ReaderSettings(epochs=0)
    save_reader(folder, *train_reader(known, settings))
    return Reader(folder)


def planner_figures(suffix: str, verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Return the shares that verdicts come to, their names ending in a suffix."""
    single, several = _one_and_several(verdicts)
    return {
        f"tool_accuracy{suffix}": share_right(verdicts),
        f"tool_accuracy_one_task{suffix}": single,
        f"tool_accuracy_multi_step{suffix}": several,
        f"argument_accuracy{suffix}": mean([v.arguments for v in verdicts]),
        f"macro_f1{suffix}": score_classes(verdicts)[-1].f1,
    }


def share_right(verdicts: Sequence[Verdict]) -> float:
    """Return the share of plans whose tools are right; NaN of none."""
    return mean([v.tools for v in verdicts])


def _one_and_several(verdicts: Sequence[Verdict]) -> tuple[float, float]:
    single = share_right([v for v in verdicts if v.gold != MULTI_STEP])
    return single, share_right([v for v in verdicts if v.gold == MULTI_STEP])


def _draw(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    own = [row for row in rows if ":" not in row["class"]]
    positions = np.arange(len(own))
    axes.bar(positions - 0.2, [row["tools"] for row in own], 0.4, label="tools right")
    axes.bar(positions + 0.2, [row["arguments"] for row in own], 0.4, label="arguments right too")
    axes.set_xticks(positions, [row["class"] for row in own], rotation=20, ha="right")
    axes.set(ylim=(0, 1), ylabel="share of plans", title="Plans by class, cross-validated")
    axes.legend()


def _draw_curve(axes: Any, curves: Sequence[Point]) -> None:
    sizes, ones, severals = zip(*curves, strict=True)
    axes.plot(sizes, ones, "o-", label="one task")
    axes.plot(sizes, severals, "o--", label="multi-step")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set(ylim=(0, 1), xlabel="annotated queries to learn from", ylabel="tools right")
    axes.set_title("What annotated queries are worth")
    axes.grid(alpha=0.3)
    axes.legend()
