"""The accuracy and the confidence of planners with toolboxes on which no planner was trained."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.report import Report, without_table
from casewright.bench.toolbox_planners import ToolboxPlanner, names_with_controls, planner_factory
from casewright.errors import InputError
from casewright.finetune.corpus import CorpusToolbox, Split, read_corpus
from casewright.finetune.corpus.counts import class_of, page_of
from casewright.finetune.evaluation import Evaluation, EvaluationItem, Figure, evaluate, items_of
from casewright.finetune.evaluation.figures import share_of
from casewright.finetune.evaluation.outcome import PlanOutcome
from casewright.finetune.tool_sets.registry import tool_queries
from casewright.finetune.tool_sets.sealtools import QUERY_FILES
from casewright.planner import AnnotatedQuery, Planner, plan_store
from casewright.planner.named import ModelSettings
from casewright.stores import CachedEncoder, CaseStore, default_encoder
from casewright.stores.encoders.cache import UncachedQuestionEncoder

CORPUS, SEALTOOLS, BFCL = "corpus", "sealtools", "bfcl"
#: Seal-Tools's out-of-domain file, and its in-domain files.
OUT_OF_DOMAIN, IN_DOMAIN = QUERY_FILES[2], QUERY_FILES[:2]
#: The class of messages whose tools are in no in-domain file.
NEW_TOOLS = "no tool of the in-domain files"
#: The name of the class that has all messages, and the names of two tables.
ALL, DIFFERENCES, CONFIDENCE = "all", "differences", "confidence"
#: Columns of the tables, by the names of the figures of an ``Evaluation``.
COLUMN_BY_FIGURE = {"tools": "right tools", "graph_arguments": "whole plans"}
#: Shares of the plans, which are sorted by confidence, the highest first.
COVERAGES = (0.25, 0.5, 0.75, 0.9, 1.0)
#: Number of bins for the calibration error, each with equally many plans.
BIN_COUNT = 8
COLUMNS_NOTE = (
    "right tools: the plan's tool sequence is that of the gold plan. whole plans: tools, "
    "references and every argument are those of the gold plan. An argument that the gold plan "
    "lacks is wrong."
)
NOTES = (
    f"{COLUMNS_NOTE} invalid: number of messages without a valid plan, for which the fallback's "
    "plan is scored. ms: median; for plans of one batch, a plan's share of the batch's time.",
    "Brackets are 95 % intervals: for shares, Wilson's over messages; for differences, those of a "
    "paired Bayesian bootstrap over toolboxes. Messages about an open page are also a class of "
    "their own.",
)
PUBLIC_NOTE = (
    "For public sets planners have no plan cases. BFCL allows several values for some arguments, "
    "but only one is the gold value here, so its share of whole plans is too low."
)


@dataclass(frozen=True, slots=True)
class UnseenSet:
    """Messages with gold plans, sorted by toolbox."""

    name: str
    items: Sequence[EvaluationItem]
    classes: Sequence[tuple[str, ...]]  # the classes of each item, at least one
    groups: Sequence[int]  # the number of each item's toolbox
    #: Plan cases by the fingerprint of their toolbox.
    plan_cases: Mapping[str, Sequence[AnnotatedQuery]] = field(default_factory=dict)
    #: For a public set, the number of rejected records by reason.
    rejected: Mapping[str, int] = field(default_factory=dict)

    def limited(self, limit: int | None, seed: int) -> UnseenSet:
        """Return the set or, if it is larger, ``limit`` random items of it in their order."""
        if limit is None or limit >= len(self.items):
            return self
        indices = sorted(random.Random(seed).sample(range(len(self.items)), limit))
        fields = ("items", "classes", "groups")
        sampled: Any = {name: [getattr(self, name)[i] for i in indices] for name in fields}
        return replace(self, **sampled)


def corpus_set(split: Split, case_count: int, seed: int) -> UnseenSet:
    """Return a split's messages; ``case_count`` of each toolbox are not items but plan cases."""
    items: list[EvaluationItem] = []
    groups: list[int] = []
    plan_cases = {}
    for number, box in enumerate(read_corpus(split)):
        plan_cases[box.toolbox.fingerprint()] = box_cases = draw_cases(box, case_count, seed)
        test_queries = [query for query in box.queries if query not in box_cases]
        items += items_of(test_queries, box.toolbox)
        groups += [number] * len(test_queries)
    return UnseenSet(CORPUS, items, [_classes(item.query) for item in items], groups, plan_cases)


def draw_cases(box: CorpusToolbox, count: int, seed: int) -> list[AnnotatedQuery]:
    """Return ``count`` random messages of a toolbox; a larger ``count`` only adds messages.

    Raise ``InputError`` if no other message of the toolbox remains.
    """
    if count >= len(box.queries):
        raise InputError(
            f"--cases {count} leaves no message to measure: the toolbox {box.name} has "
            f"{len(box.queries)} messages. Give fewer cases."
        )
    return random.Random(f"{seed}:{box.name}").sample(box.queries, len(box.queries))[:count]


def public_sets(folder: Path) -> list[UnseenSet]:
    """Return Seal-Tools's out-of-domain messages and BFCL's messages, each from a subfolder."""
    sealtools = _public_set(SEALTOOLS, folder / SEALTOOLS / OUT_OF_DOMAIN)
    files = [file for name in IN_DOMAIN if (file := folder / SEALTOOLS / name).is_file()]
    toolboxes = [toolbox for file in files for _, toolbox in tool_queries(SEALTOOLS, file)]
    known_tools = {name for toolbox in toolboxes for name in toolbox.names}
    # Without in-domain files, it is not known which tools are new.
    classes = [
        (*names, NEW_TOOLS) if files and known_tools.isdisjoint(item.query.plan.tools) else names
        for item, names in zip(sealtools.items, sealtools.classes, strict=True)
    ]
    bfcl = _public_set(BFCL, folder / BFCL)
    pairs = zip(bfcl.classes, bfcl.items, strict=True)
    bfcl_classes = [(*names, item.query.label) for names, item in pairs]
    return [replace(sealtools, classes=classes), replace(bfcl, classes=bfcl_classes)]


def _public_set(name: str, path: Path) -> UnseenSet:
    rejected = Counter[str]()
    queries = tool_queries(name, path, rejected)
    items = [item for query, toolbox in queries for item in items_of([query], toolbox)]
    classes = [_classes(item.query) for item in items]
    return UnseenSet(name, items, classes, range(len(items)), rejected=rejected)


def _classes(query: AnnotatedQuery) -> tuple[str, ...]:
    return tuple(filter(None, (class_of(query), page_of(query))))


@dataclass(frozen=True, slots=True)
class UnseenTrial:
    """The options of ``casewright bench unseen``."""

    planners: Sequence[str]
    split: Split = "measuring"  # the split of the corpus
    cases: int = 0  # the number of each toolbox's messages that become plan cases
    limit: int | None = None  # the maximum number of messages of a set
    data: Path | None = None  # the folder of the public sets, if they are measured
    with_base_model: bool = True  # true if the untuned base model is a control
    settings: ModelSettings = field(default_factory=ModelSettings)
    seed: int = 0


def measure_unseen(trial: UnseenTrial, encoder: CachedEncoder | None = None) -> Report:
    """Return a report on every set's plans by every planner and every control."""
    names = names_with_controls(trial.planners, with_base_model=trial.with_base_model)
    sets = [corpus_set(trial.split, trial.cases, trial.seed)]
    sets += [] if trial.data is None else public_sets(trial.data)
    sets = [data.limited(trial.limit, trial.seed) for data in sets]
    # The models are loaded first: if one cannot be loaded, the user learns it at once.
    factories = {name: planner_factory(name, trial.settings) for name in names}
    with stores_of(sets, encoder or default_encoder()) as (stores, empty_store):
        planners: dict[str, Planner] = {
            name: ToolboxPlanner(name, factory, stores, empty_store)
            for name, factory in factories.items()
        }
        evaluations = {
            data.name: evaluate(data.items, planners, groups=data.groups, seed=trial.seed)
            for data in sets
        }
    return _report(trial, sets, evaluations)


@contextmanager
def stores_of(
    sets: Sequence[UnseenSet], encoder: CachedEncoder
) -> Iterator[tuple[dict[str, CaseStore], CaseStore]]:
    """Open a store for each toolbox with plan cases, by its fingerprint, and an empty store."""
    # A planner's time includes the embedding of the question, as for a new question.
    uncached = UncachedQuestionEncoder(encoder)
    with ExitStack() as stack:
        stores = {
            key: stack.enter_context(plan_store(queries, uncached))
            for data in sets
            for key, queries in data.plan_cases.items()
            if queries
        }
        yield stores, stack.enter_context(plan_store([], uncached))


def _report(
    trial: UnseenTrial, sets: Sequence[UnseenSet], evaluations: Mapping[str, Evaluation]
) -> Report:
    rows = [row for data in sets for row in _rows(data, evaluations[data.name])]
    figures = {
        f"{column}, {data.name}, {planner}": shares[name].value or 0.0
        for data in sets
        for planner, shares in evaluations[data.name].figures.items()
        for name, column in COLUMN_BY_FIGURE.items()
    }
    # Confidence is measured on the corpus only: all its messages are annotated by the same rules.
    outcomes = evaluations[sets[0].name].outcomes
    curves = {name: curve for name, plans in outcomes.items() if (curve := confidences(plans))}
    for name, confidence in curves.items():
        rows += [{"table": CONFIDENCE, "planner": name, **row} for row in confidence.rows()]
        figures |= {f"{figure}, {name}": value for figure, value in confidence.figures().items()}
    rows += [
        {"table": DIFFERENCES, "set": name, **row}
        for name, evaluation in evaluations.items()
        for row in evaluation.differences
        if row["figure"] in COLUMN_BY_FIGURE
    ]
    errors = [error for evaluation in evaluations.values() for error in evaluation.errors]
    option_names = ("planners", "split", "cases", "limit", "seed")
    settings = {name: getattr(trial, name) for name in option_names}
    settings["toolboxes"] = len(sets[0].plan_cases)
    settings["refused"] = {data.name: dict(data.rejected) for data in sets if data.rejected}
    notes = [*NOTES, *([PUBLIC_NOTE] if trial.data is not None else [])]
    notes += [f"{error['planner']}, {error['item']}: {error['error']}" for error in errors]
    draw = partial(_draw, curves=curves) if curves else None
    titles = {data.name: f"{data.name}: {len(data.items)} messages" for data in sets}
    titles[CONFIDENCE] = f"{sets[0].name}: whole plans among the most confident ones"
    titles[DIFFERENCES] = f"difference from {trial.planners[0]}"
    return Report("unseen", settings, figures, rows, notes, draw, titles, with_intervals)


def _rows(data: UnseenSet, evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    names = list(dict.fromkeys(name for classes in sorted(data.classes) for name in classes))
    for planner, outcomes in evaluation.outcomes.items():
        for name in (ALL, *names):
            pairs = zip(outcomes, data.classes, strict=True)
            subset = [outcome for outcome, classes in pairs if name == ALL or name in classes]
            yield {"table": data.name, "planner": planner, "class": name, **figures_of(subset)}


def figures_of(
    outcomes: Sequence[PlanOutcome], share_of: Callable[[Sequence[bool]], Figure] = share_of
) -> dict[str, Any]:
    """Return the cells of a row; ``share_of`` computes a share of true values with its interval."""
    times = [o.result.milliseconds for o in outcomes if o.result is not None]
    row: dict[str, Any] = {"messages": len(outcomes)}
    for name, flags in (
        ("right tools", [o.verdict.right_tools for o in outcomes]),
        ("whole plans", [o.graph_arguments for o in outcomes]),
    ):
        figure = share_of(flags).to_json()
        row |= {name: figure["value"], f"{name} low": figure["low"], f"{name} high": figure["high"]}
    invalid = sum(not o.is_own_plan for o in outcomes)
    return {**row, "invalid": invalid, "ms": round(float(np.median(times)), 1) if times else None}


def with_intervals(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a table's rows; a share or a difference and its interval become one cell."""
    table = without_table(rows)
    for row in table:
        if "difference" in row:
            low, high = row.pop("low"), row.pop("high")
            row["difference"] = f"{row['difference']:+.3f} [{low:+.3f}, {high:+.3f}]"
            row["figure"] = COLUMN_BY_FIGURE[row["figure"]]
        for name in COLUMN_BY_FIGURE.values() if "whole plans low" in row else ():
            low, high = row.pop(f"{name} low"), row.pop(f"{name} high")
            row[name] = f"{row[name]:.3f} [{low:.3f}, {high:.3f}]"
    return table


@dataclass(frozen=True, slots=True)
class Confidences:
    """A planner's confidence in its plans; the plans are sorted from high confidence to low."""

    values: tuple[float, ...]
    is_right: tuple[bool, ...]  # true for a plan with the gold plan's graph and arguments
    asks_back: tuple[bool, ...]  # true for a plan that the planner asks the user to confirm

    def bins(self) -> list[tuple[float, float, int]]:
        """Return the mean confidence, the share of right plans and the size of each bin."""
        count = min(BIN_COUNT, len(self.values))
        values, right = (np.array_split(np.array(c), count) for c in (self.values, self.is_right))
        pairs = zip(values, right, strict=True)
        return [(float(v.mean()), float(r.mean()), len(v)) for v, r in pairs]

    def rows(self) -> Iterator[dict[str, float]]:
        """Yield the lowest confidence and the share of right plans at each coverage."""
        for coverage in COVERAGES:
            size = max(1, round(coverage * len(self.values)))
            lowest, accuracy = self.values[size - 1], sum(self.is_right[:size]) / size
            row = {"coverage": coverage, "confidence at least": round(lowest, 3)}
            yield {**row, "whole plans": round(accuracy, 3)}

    def figures(self) -> dict[str, float]:
        """Return the expected calibration error, and how often the planner asks back.

        The error follows Guo et al. (2017), but each bin has equally many plans.
        """
        error = sum(size * abs(value - accuracy) for value, accuracy, size in self.bins())
        count, asked_count = len(self.values), sum(self.asks_back)
        figures = {"calibration error": error / count, "asked back, share": asked_count / count}
        if asked_count:
            pairs = zip(self.is_right, self.asks_back, strict=True)
            figures["of these wrong, share"] = sum(a and not r for r, a in pairs) / asked_count
        return figures


def confidences(outcomes: Sequence[PlanOutcome]) -> Confidences | None:
    """Return a planner's confidence in its plans; ``None`` if no plan has a confidence."""
    plans = [
        (result.confidence, outcome.graph_arguments, result.asks_back)
        for outcome in outcomes
        if (result := outcome.result) is not None and result.confidence is not None
    ]
    plans.sort(key=lambda row: -row[0])
    return Confidences(*zip(*plans, strict=True)) if plans else None


def _draw(axes: Any, curves: Mapping[str, Confidences]) -> None:
    axes.plot([0, 1], [0, 1], color="0.7", linestyle=":", label="calibrated")
    for name, curve in curves.items():
        confidence, right, _ = zip(*curve.bins(), strict=True)
        axes.plot(confidence, right, marker="o", label=name)
    axes.set(xlabel="confidence", ylabel="whole plans, share")
    axes.legend()
