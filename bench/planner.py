"""How good a planner is on a domain's annotated queries, beside what a planner must beat."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.bench.report import Report
from casewright.domains import Domain
from casewright.finetune.baselines.classifiers import train_classifiers
from casewright.finetune.evaluation import MULTI_STEP, Verdict, as_row, judge, score_classes
from casewright.finetune.folds import SAME_GROUP, group_folds, similarity_groups
from casewright.planner import AnnotatedQuery, CasePlanner, plan_store
from casewright.planner.fallback import FallbackPlanner
from casewright.planner.reader import Reader
from casewright.planner.reader_weights import save_reader
from casewright.planner.request import Planner
from casewright.serve.planners import CASE_PLANNER, CLASSIFIERS, SHAPE_PLANNER, make_planner
from casewright.stores import CachedEncoder, default_encoder
from casewright.stores.paths import data_folder
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox

Queries = Sequence[AnnotatedQuery]
#: The smallest learning curve that shows a shape: doubling.
FIRST_SIZE = 125


def measure_planner(domain_name: str, planner: str, folds: int, *, curve: bool = False) -> Report:
    """Cross-validate a planner: the queries of a fold take no part in its training or plan cases.

    A planner that a reader belongs to is trained anew for every fold. Beside it, in the same run:
    the planner without a reader, a reader that was not trained, plans shuffled among their
    questions, the ensemble of classifiers where scikit-learn is installed, and the fallback plan,
    which asks one tool the whole question.

    Args:
        domain_name: The domain.
        planner: The planner's name.
        folds: Of the cross-validation; similar questions share a fold.
        curve: Train on ever more of the first fold's training queries as well.
    """
    from casewright.domains import find_domain
    from casewright.serve.planners import check_planner

    check_planner(planner)
    domain = find_domain(domain_name)
    encoder = default_encoder()
    opened = domain.open(data_folder() / domain.name, encoder, False)
    toolbox, queries = opened.toolbox, domain.queries()
    opened.close()
    groups = similarity_groups([query.query for query in queries], encoder)
    trial = Trial(domain, toolbox, queries, group_folds(groups, folds), UncachedQuestions(encoder))
    trained = planner == CASE_PLANNER and domain.reader is not None
    own = trial.cross_validated(planner)
    others = {"fallback plan": trial.cross_validated("fallback")}
    if planner in (CASE_PLANNER, SHAPE_PLANNER):
        others["plans shuffled"] = trial.cross_validated(SHAPE_PLANNER, shuffle=True)
        if find_spec("sklearn") is not None:
            others[CLASSIFIERS] = trial.cross_validated(CLASSIFIERS)
    if trained:
        others["without a reader"] = trial.cross_validated(SHAPE_PLANNER)
        others["reader not trained"] = trial.cross_validated("untrained")
    whole = {planner: own, **({SHAPE_PLANNER: others["without a reader"]} if trained else {})}
    curves = trial.curve(whole) if curve else []
    scores = score_classes(own)
    rows: list[dict[str, Any]] = [dict(as_row(score)) for score in scores]
    rows += [
        {**as_row(score_classes(verdicts)[-1]), "class": f"beside: {name}"}
        for name, verdicts in others.items()
    ]
    figures = {
        **planner_figures("", own),
        "plan_ms_p50": float(np.median([v.milliseconds for v in own])),
        "plan_ms_p95": float(np.percentile([v.milliseconds for v in own], 95)),
    }
    for name, verdicts in others.items():
        figures |= planner_figures(f"_{name.replace(' ', '_')}", verdicts)
    for name, size, share, several in curves:
        figures[f"tool_accuracy_{name}_of_{size}_queries"] = share
        figures[f"tool_accuracy_multi_step_{name}_of_{size}_queries"] = several
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
    """Queries, their folds, and how planners are made of those that they may know.

    Attributes:
        domain: The domain.
        toolbox: Its tools.
        queries: Its annotated queries.
        parts: The folds: positions of queries.
        encoder: For plan stores.
    """

    domain: Domain
    toolbox: Toolbox
    queries: Queries
    parts: Sequence[Sequence[int]]
    encoder: UncachedQuestions

    def cross_validated(self, name: str, *, shuffle: bool = False) -> list[Verdict]:
        """Return the verdict on every query, planned for by a planner that does not know it."""
        verdicts: dict[int, Verdict] = {}
        label = f"Planner {name}{' (shuffled)' if shuffle else ''}"
        with progress_bar(label, len(self.queries), show=None) as advance:
            for part in self.parts:
                known = self._others(part)
                with self._planner(name, _shuffled(known) if shuffle else known) as planner:
                    for index in part:
                        verdicts[index] = self._verdict(planner, self.queries[index])
                        advance(1)
        return [verdict for _, verdict in sorted(verdicts.items())]

    def curve(self, whole: Mapping[str, list[Verdict]]) -> list[tuple[str, int, float, float]]:
        """Return (planner, queries, share of one-task tools, of multi-step tools) over sizes.

        Args:
            whole: The planners, with their verdicts when they know all but their own fold.
        """
        part = self.parts[0]
        known = self._others(part)
        random.Random(0).shuffle(known)
        sizes = [FIRST_SIZE]
        while sizes[-1] < len(known):
            sizes.append(sizes[-1] * 2)
        # All of them were known in the cross-validation.
        sizes.pop()
        found = []
        with progress_bar("Learning curve", len(sizes) * len(whole), show=None) as advance:
            for size in sizes:
                for name in whole:
                    with self._planner(name, known[:size]) as planner:
                        verdicts = [self._verdict(planner, self.queries[i]) for i in part]
                    found.append((name, size, *_one_and_several(verdicts)))
                    advance(1)
        for name, verdicts in whole.items():
            found.append((name, len(known), *_one_and_several([verdicts[i] for i in part])))
        return found

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

    def _verdict(self, planner: Planner, query: AnnotatedQuery) -> Verdict:
        result = planner.plan(query.record.request(self.toolbox))
        return judge(query, result.plan, result.milliseconds)


def _trained(known: Queries, folder: Path, *, fit: bool) -> Reader:
    from casewright.finetune.reader_training import ReaderSettings, train_reader

    settings = ReaderSettings() if fit else ReaderSettings(epochs=0)
    save_reader(folder, *train_reader(known, settings))
    return Reader(folder, graphs=folder)


def _shuffled(queries: Queries) -> list[AnnotatedQuery]:
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


def planner_figures(suffix: str, verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Return the shares that verdicts come to, their names ending in a suffix."""
    return {
        f"tool_accuracy{suffix}": share_right(verdicts),
        f"tool_accuracy_one_task{suffix}": share_right(
            [v for v in verdicts if v.gold != MULTI_STEP]
        ),
        f"tool_accuracy_multi_step{suffix}": share_right(
            [v for v in verdicts if v.gold == MULTI_STEP]
        ),
        f"argument_accuracy{suffix}": float(np.mean([v.arguments for v in verdicts])),
        f"macro_f1{suffix}": score_classes(verdicts)[-1].f1,
    }


def _one_and_several(verdicts: Sequence[Verdict]) -> tuple[float, float]:
    several = [v for v in verdicts if v.gold == MULTI_STEP]
    return share_right([v for v in verdicts if v.gold != MULTI_STEP]), share_right(several)


def share_right(verdicts: Sequence[Verdict]) -> float:
    """Return the share of plans whose tools are right; NaN of none."""
    return float(np.mean([v.tools for v in verdicts])) if verdicts else float("nan")


def _draw(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    own = [row for row in rows if ":" not in row["class"]]
    place = np.arange(len(own))
    axes.bar(place - 0.2, [row["tools"] for row in own], 0.4, label="tools right")
    axes.bar(place + 0.2, [row["arguments"] for row in own], 0.4, label="arguments right too")
    axes.set_xticks(place, [row["class"] for row in own], rotation=20, ha="right")
    axes.set(ylim=(0, 1), ylabel="share of plans", title="Plans by class, cross-validated")
    axes.legend()


def _draw_curve(axes: Any, curves: Sequence[tuple[str, int, float, float]]) -> None:
    for name in dict.fromkeys(name for name, *_ in curves):
        own = [(size, one, several) for n, size, one, several in curves if n == name]
        sizes = [size for size, _, _ in own]
        line = axes.plot(sizes, [one for _, one, _ in own], "o-", label=f"{name}: one task")[0]
        several = [share for _, _, share in own]
        axes.plot(sizes, several, "o--", color=line.get_color(), label=f"{name}: multi-step")
    axes.set_xscale("log", base=2)
    sizes = sorted({size for _, size, _, _ in curves})
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set(ylim=(0, 1), xlabel="annotated queries to learn from", ylabel="tools right")
    axes.set_title("What annotated queries are worth")
    axes.grid(alpha=0.3)
    axes.legend()
