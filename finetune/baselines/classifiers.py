"""The classifiers planner, which first chooses a plan's shape and then fills its arguments.

The planner is the baseline of REAPER (Joshi et al. 2024): classifiers choose among fixed plans.
A plan's shape is the plan with empty literals. Binary classifiers of the question vote for the
shapes of the training queries' plans, so no other shape or tool is chosen. The second step fills
each empty literal with a run of the question's words; a logistic regression scores each word.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from casewright.errors import InputError, PlanError
from casewright.finetune.baselines.question_features import (
    MIN_COUNT,
    Floats,
    QuestionFeatures,
    fit_regression,
)
from casewright.finetune.plan_shape import argument_sources, last_tools, shape
from casewright.planner import AnnotatedQuery, PlanRequest, PlanResult, parse_plan
from casewright.planner.fallback import fallback_plan
from casewright.planner.plan import Literal, Plan, QuestionRef, text_literals, with_literals
from casewright.planner.plan_cases import can_run
from casewright.planner.spans import Word, is_span, normalized, words_of
from casewright.stores import Encoder
from casewright.tools import alias

#: Number of columns; a word's features are hashed into them.
COLUMN_COUNT = 1 << 17
#: Number of equal parts of a question; the part of a word is one of the word's features.
_PART_COUNT = 6
#: Maximum number of plan shapes that the planner tries before the fallback plan.
MAX_ATTEMPTS = 8
#: Weight of the prior in a shape's score; the prior is the logarithm of the shape's query count.
PRIOR_WEIGHT = 1.0


@dataclass(frozen=True, slots=True)
class Slot:
    """An empty literal of a ``tool.argument``, at ``index`` of the plan's ``count`` literals."""

    name: str
    index: int
    count: int


def word_rows(words: Sequence[Word], slot: Slot) -> csr_array:
    """Return each word's features for a slot, array (words, ``COLUMN_COUNT``) of zeros and ones."""
    texts = ["", *(normalized(word.text) for word in words), ""]
    rows = []
    for index in range(len(words)):
        features = list(_features(texts, words, index, slot))
        features += [f"{slot.name}|{feature}" for feature in features]
        rows.append(sorted({zlib.crc32(feature.encode()) % COLUMN_COUNT for feature in features}))
    starts = np.cumsum([0, *map(len, rows)])
    columns = np.array([column for row in rows for column in row], dtype=np.int64)
    values = np.ones(len(columns), dtype=np.float32)
    return csr_array((values, columns, starts), shape=(len(words), COLUMN_COUNT))


def _features(texts: Sequence[str], words: Sequence[Word], index: int, slot: Slot) -> Iterator[str]:
    """Yield a word's features; ``texts`` has the words between two empty texts."""
    word, (before, text, after) = words[index], texts[index : index + 3]
    # Flags: a break is before the word, and a break is after the word.
    breaks = word.after_break, index + 1 < len(words) and words[index + 1].after_break
    part = _PART_COUNT * index // len(words)
    yield "any word"
    yield f"word {text}"
    yield f"end {text[-3:]}"
    yield f"before {'' if breaks[0] else before}"
    yield f"after {'' if breaks[1] else after}"
    yield f"pair {before} {text}"
    yield f"pair {text} {after}"
    yield f"two before {texts[max(index - 1, 0)]} {before}"
    yield f"breaks {breaks}"
    yield f"part {part} of slot {slot.index} of {slot.count}"
    yield f"upper {index > 0 and word.text[:1].isupper()}"
    yield f"digit {any(char.isdigit() for char in text)}"


@dataclass(frozen=True, slots=True)
class ArgumentFinder:
    """Fills empty literals by a regression; the last of its ``weights`` is the intercept."""

    weights: Floats

    @classmethod
    def fit(cls, queries: Sequence[AnnotatedQuery]) -> ArgumentFinder:
        """Return a finder that is trained on all literals that are words of their question."""
        from scipy.sparse import vstack

        rows, labels = [], []
        for query in queries:
            words = words_of(query.query)
            for (*_, text), slot in zip(text_literals(query.plan), _slots(query.plan), strict=True):
                flags = _literal_flags(words, text, query.query)
                if any(flags):
                    rows.append(word_rows(words, slot))
                    labels += flags
        if all(labels) or not any(labels):
            # A regression needs words inside literals and outside. Without both, all weights are 0.
            return cls(np.zeros(COLUMN_COUNT + 1, np.float32))
        return cls(fit_regression(vstack(rows, format="csr"), labels))

    def fill(self, plan: Plan, question: str) -> Plan:
        """Return the plan with words of the question in its literals; no word is used twice.

        If several steps have the same argument, the question's order decides which words each gets.
        Literals stay empty if the question has too few words.
        """
        words = words_of(question)
        is_free = np.ones(len(words), dtype=bool)
        # By the slot's name: the first and last index of each run of words.
        runs: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for slot in _slots(plan):
            scores = word_rows(words, slot) @ self.weights[:-1] + self.weights[-1]
            if run := _best_run(words, scores, is_free):
                is_free[run[0] : run[1] + 1] = False
                runs[slot.name].append(run)
        next_runs = {name: iter(sorted(runs_of_name)) for name, runs_of_name in runs.items()}
        texts: dict[tuple[int, str], str] = {}
        for (index, name, _), slot in zip(text_literals(plan), _slots(plan), strict=True):
            if run := next(next_runs.get(slot.name, iter(())), None):
                texts[index, name] = question[words[run[0]].start : words[run[1]].end]
        return with_literals(plan, texts)


def _slots(plan: Plan) -> Iterator[Slot]:
    literals = text_literals(plan)
    for position, (index, name, _) in enumerate(literals):
        yield Slot(f"{plan.steps[index].tool}.{name}", position, len(literals))


def _literal_flags(words: Sequence[Word], text: str, question: str) -> list[bool]:
    """Return a flag for each word of a question: true in the first occurrence of the text."""
    target = [normalized(word.text) for word in words_of(text)]
    texts = [normalized(word.text) for word in words]
    if text and is_span(text, question):
        for start in range(len(texts) - len(target) + 1):
            if texts[start : start + len(target)] == target:
                return [start <= index < start + len(target) for index in range(len(texts))]
    return [False] * len(words)


def _best_run(
    words: Sequence[Word], scores: Floats, is_free: NDArray[np.bool_]
) -> tuple[int, int] | None:
    """Return the first and last index of the run of free words with the highest score sum."""
    best_total, best_run = -np.inf, None
    total, start = 0.0, 0
    # Kadane's algorithm for the maximum subarray; a run does not cross a used word or a break.
    for index, (word, score) in enumerate(zip(words, scores, strict=True)):
        if not is_free[index]:
            total = 0.0
            continue
        if total <= 0 or word.after_break:
            total, start = 0.0, index
        total += float(score)
        if total > best_total:
            best_total, best_run = total, (start, index)
    return best_run


def plan_labels(plan: Plan) -> frozenset[str]:
    """Return the labels of a plan; each label has a binary classifier.

    Some labels name a tool that is used, or used more than once. Others name an argument and its
    source: the question, words of the question, the context, or another tool's result. One label
    states the number of steps whose results no other step needs.
    """
    counts = Counter(plan.tools)
    labels = {*argument_sources(plan), f"asks {len(last_tools(plan))}"}
    labels |= {f"uses {tool}" for tool in counts}
    labels |= {f"repeats {tool}" for tool, count in counts.items() if count > 1}
    kinds = {QuestionRef: "question", Literal: "literal"}
    for step in plan.steps:
        for name, value in step.arguments:
            if type(value) in kinds:
                labels.add(f"{step.tool}.{name}<{kinds[type(value)]}")
    return frozenset(labels)


@dataclass(frozen=True, slots=True)
class PlanEnsemble:
    """Binary classifiers, and the plan shapes that they vote for.

    Attributes:
        labels: One for each classifier; see ``plan_labels``. At least ``MIN_COUNT`` queries have
            the label, and at least ``MIN_COUNT`` do not have it.
        has_label: True where a shape has a label, array (shapes, labels).
        shape_counts: The number of queries of each shape, array (shapes,).
        weights: The classifiers' weights and, last, intercepts, array (labels, columns + 1).
    """

    features: QuestionFeatures
    labels: tuple[str, ...]
    shapes: tuple[Plan, ...]
    has_label: NDArray[np.bool_]
    shape_counts: NDArray[np.int64]
    weights: Floats

    @classmethod
    def untrained(cls, queries: Sequence[AnnotatedQuery], dimension: int) -> PlanEnsemble:
        """Return an ensemble for queries; all its weights are 0."""
        contexts = [query.record.context for query in queries]
        features = QuestionFeatures.of([query.query for query in queries], contexts)
        counts = Counter(label for query in queries for label in plan_labels(query.plan))
        # A regression needs queries with the label and queries without it.
        max_count = len(queries) - MIN_COUNT
        labels = sorted(name for name, count in counts.items() if MIN_COUNT <= count <= max_count)
        shape_counts = Counter(shape(query.plan) for query in queries)
        shapes = tuple(parse_plan(text) for text in shape_counts)
        has_label = [[name in plan_labels(plan) for name in labels] for plan in shapes]
        weights = np.zeros((len(labels), dimension + features.width + 1), np.float32)
        arrays = np.array(has_label, bool), np.array(list(shape_counts.values())), weights
        return cls(features, tuple(labels), shapes, *arrays)

    def fit_weights(self, queries: Sequence[AnnotatedQuery], vectors: Floats) -> Floats:
        """Return the trained weights; ``vectors`` are embeddings, array (queries, dimension)."""
        contexts = [query.record.context for query in queries]
        rows = self.features.matrix([query.query for query in queries], vectors, contexts)
        query_labels = [plan_labels(query.plan) for query in queries]
        flags = [[label in labels for labels in query_labels] for label in self.labels]
        weights = [fit_regression(rows, label_flags) for label_flags in flags]
        return np.stack(weights) if weights else self.weights

    def rank_shapes(self, request: PlanRequest, vector: Floats) -> Iterator[Plan]:
        """Yield the shapes that the request's tools and context allow, the likeliest first.

        The classifiers are treated as independent, as in naive Bayes; ``vector`` (dimension,) is
        the embedding of the question.
        """
        row = self.features.matrix([request.question], vector[None], [request.context])
        logits = row @ self.weights[:, :-1].T + self.weights[:, -1]
        # The logarithm of the logistic function, without overflow.
        votes = np.where(self.has_label, -np.logaddexp(0, -logits), -np.logaddexp(0, logits))
        scores = votes.sum(axis=1) + PRIOR_WEIGHT * np.log(self.shape_counts)
        for index in np.argsort(-scores, kind="stable"):
            if can_run(self.shapes[index], request):
                yield self.shapes[index]


class ClassifierPlanner:
    """A planner with classifiers, limited to the tools and plan shapes of the training queries."""

    name = "classifiers"

    def __init__(self, ensemble: PlanEnsemble, arguments: ArgumentFinder, encoder: Encoder) -> None:
        self.ensemble = ensemble
        self.arguments = arguments
        self.encoder = encoder

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the likeliest plan that passes the static checks, or a fallback plan."""
        started = time.perf_counter()
        attempts = 0
        reason = "No plan that the classifiers know uses only this request's tools and context."
        vector = self.encoder.embed([request.question])[0]
        for plan_shape in islice(self.ensemble.rank_shapes(request, vector), MAX_ATTEMPTS):
            attempts += 1
            plan = self.arguments.fill(plan_shape, request.question)
            try:
                request.validate(plan)
            except PlanError as error:
                reason = str(error)
                continue
            reason = ""
            break
        else:
            attempts += 1
            plan = fallback_plan(request)
        milliseconds = (time.perf_counter() - started) * 1000
        return PlanResult(plan, self.name, attempts, reason, milliseconds)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the result of ``plan``, which takes too few milliseconds to need a thread."""
        return self.plan(request)


def train_classifiers(
    queries: Sequence[AnnotatedQuery], encoder: Encoder, weights: Mapping[str, Floats] | None = None
) -> ClassifierPlanner:
    """Return a planner that is trained on queries; equal queries give equal planners.

    Queries that remove a tool, or add one that their plan uses, are left out. With ``weights``, the
    arrays ``ensemble`` and ``words`` of an earlier training on these queries, nothing is trained.

    Raises:
        InputError: All remaining plans call the same tools, or the weights do not fit.
        DependencyError: scikit-learn is not installed.
    """
    usable = []
    for query in queries:
        added = {alias(str(tool.get("name", ""))) for tool in query.record.tools_extra}
        if added.isdisjoint(query.plan.tools) and not query.record.tools_removed:
            usable.append(query)
    if len({query.plan.tools for query in usable}) < 2:
        raise InputError(
            f"Classifiers cannot be trained: of {len(queries)} queries, {len(usable)} use the "
            "toolbox as it is, and the plans of these call the same tools. Give more queries."
        )
    ensemble = PlanEnsemble.untrained(usable, encoder.dimension)
    if weights is None:
        trained = ensemble.fit_weights(usable, encoder.embed([query.query for query in usable]))
        arguments = ArgumentFinder.fit(usable)
    else:
        trained, arguments = weights["ensemble"], ArgumentFinder(weights["words"])
    if trained.shape != ensemble.weights.shape:
        raise InputError(f"Weights of the shape {trained.shape} belong to other classifiers.")
    return ClassifierPlanner(replace(ensemble, weights=trained), arguments, encoder)
