"""The classifiers planner: an ensemble that chooses a plan's shape, and a separate argument step.

What REAPER calls the status quo (Joshi et al. 2024): classifiers choose where to look things up,
and each choice stands for a fixed plan. The probabilities of binary classifiers over a question are
joined to the likeliest of the plan shapes of the training queries; it can write no other: a
combination that no query had, or a tool that a request brings along, is out of its reach. The
argument step is given that shape and finds each open literal: a logistic regression says of every
word of the question how likely it belongs to the argument, which is the likeliest run of words.
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
    ClassifierSettings,
    Floats,
    QuestionFeatures,
    fit_regression,
)
from casewright.finetune.plan_shape import feeds, shape
from casewright.planner import (
    AnnotatedQuery,
    Literal,
    Plan,
    PlanRequest,
    PlanResult,
    QuestionRef,
    parse_plan,
)
from casewright.planner.fallback import fallback_plan
from casewright.planner.literals import Word, text_literals, with_literals, words_of
from casewright.planner.plan_cases import runnable
from casewright.planner.spans import is_span, normalized
from casewright.stores import Encoder
from casewright.tools import alias

#: Columns that features are hashed into.
COLUMNS = 1 << 17
#: Parts of a question that places are told apart by.
_PARTS = 6


@dataclass(frozen=True, slots=True)
class Slot:
    """An argument whose words are looked for.

    Attributes:
        place: Which of the plan's literals it is, counting from 0.
    """

    name: str
    place: int
    slots: int


def word_rows(words: Sequence[Word], slot: Slot) -> csr_array:
    """Return one row a word, array (words, ``COLUMNS``) of zeros and ones.

    Every feature stands twice: for all arguments alike, and for this one's alone.
    """
    texts = ["", *(normalized(word.text) for word in words), ""]
    results = [sorted({*_columns(texts, words, at, slot)}) for at in range(len(words))]
    starts = np.cumsum([0, *map(len, results)])
    places = np.array([column for own in results for column in own], dtype=np.int64)
    values = np.ones(len(places), dtype=np.float32)
    return csr_array((values, places, starts), shape=(len(words), COLUMNS))


def _columns(texts: Sequence[str], words: Sequence[Word], at: int, slot: Slot) -> Iterator[int]:
    for feature in _features(texts, words, at, slot):
        yield zlib.crc32(feature.encode()) % COLUMNS
        yield zlib.crc32(f"{slot.name}|{feature}".encode()) % COLUMNS


def _features(texts: Sequence[str], words: Sequence[Word], at: int, slot: Slot) -> Iterator[str]:
    """Yield what holds of a word; ``texts`` has an empty text before and after the words'."""
    word, (before, own, after) = words[at], texts[at : at + 3]
    breaks = word.after_break, at + 1 < len(words) and words[at + 1].after_break
    part = _PARTS * at // len(words)
    yield "any word"
    yield f"word {own}"
    yield f"end {own[-3:]}"
    yield f"before {'' if breaks[0] else before}"
    yield f"after {'' if breaks[1] else after}"
    yield f"pair {before} {own}"
    yield f"pair {own} {after}"
    yield f"two before {texts[max(at - 1, 0)]} {before}"
    yield f"breaks {breaks}"
    yield f"part {part} of slot {slot.place} of {slot.slots}"
    yield f"upper {at > 0 and word.text[:1].isupper()}"
    yield f"digit {any(char.isdigit() for char in own)}"


@dataclass(frozen=True, slots=True)
class ArgumentFinder:
    """Fills the open literals of a plan.

    Attributes:
        weights: Of the regression and its intercept, array (``COLUMNS`` + 1,).
    """

    weights: Floats

    @classmethod
    def fit(cls, queries: Sequence[AnnotatedQuery], settings: ClassifierSettings) -> ArgumentFinder:
        """Train on the literals that are words of their question; others are left out."""
        from scipy.sparse import vstack

        rows, labels = [], []
        for query in queries:
            words = words_of(query.query)
            for (*_, text), slot in zip(text_literals(query.plan), _slots(query.plan), strict=True):
                inside = _covered(words, text, query.query)
                if any(inside):
                    rows.append(word_rows(words, slot))
                    labels += inside
        if all(labels) or not any(labels):
            # No plan has a literal, or no question a word beside it: every word is as good.
            return cls(np.zeros(COLUMNS + 1, np.float32))
        return cls(fit_regression(vstack(rows, format="csr"), labels, settings))

    def filled(self, plan: Plan, question: str) -> Plan:
        """Return the plan with words of the question as its literals, each word used once.

        Where one argument of one tool is looked for several times, its literals stand in the
        question's order. They are left open where the question has too few words.
        """
        words = words_of(question)
        free = np.ones(len(words), dtype=bool)
        runs: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for slot in _slots(plan):
            scores = word_rows(words, slot) @ self.weights[:-1] + self.weights[-1]
            if run := _best_run(words, scores, free):
                free[run[0] : run[1] + 1] = False
                runs[slot.name].append(run)
        ordered = {name: iter(sorted(result)) for name, result in runs.items()}
        texts: dict[tuple[int, str], str] = {}
        for (index, name, _), slot in zip(text_literals(plan), _slots(plan), strict=True):
            if run := next(ordered.get(slot.name, iter(())), None):
                texts[index, name] = question[words[run[0]].start : words[run[1]].end]
        return with_literals(plan, texts)


def _slots(plan: Plan) -> Iterator[Slot]:
    result = text_literals(plan)
    for position, (index, name, _) in enumerate(result):
        yield Slot(f"{plan.steps[index].tool}.{name}", position, len(result))


def _covered(words: Sequence[Word], text: str, question: str) -> list[bool]:
    """Return which words of a question a text covers, where it stands there first."""
    wanted = [normalized(word.text) for word in words_of(text)]
    own = [normalized(word.text) for word in words]
    for start in range(len(own) - len(wanted) + 1):
        if text and is_span(text, question) and own[start : start + len(wanted)] == wanted:
            return [start <= at < start + len(wanted) for at in range(len(own))]
    return [False] * len(words)


def _best_run(
    words: Sequence[Word], scores: Floats, free: NDArray[np.bool_]
) -> tuple[int, int] | None:
    """Return the run of free words with the highest sum of log-odds, by its first and last word.

    A run does not go on behind a break such as a full stop. It has at least one word.
    """
    best, result = -np.inf, None
    total, start = 0.0, 0
    for at, (word, score) in enumerate(zip(words, scores, strict=True)):
        if not free[at]:
            total = 0.0
            continue
        if total <= 0 or word.after_break:
            total, start = 0.0, at
        total += float(score)
        if total > best:
            best, result = total, (start, at)
    return result


def plan_labels(plan: Plan) -> frozenset[str]:
    """Return what holds of a plan: what the classifiers are asked, yes-or-no questions.

    Of each tool: whether it is used, and more than once. Of each of its arguments: whether it is
    the question, words of it, a field of the context or another tool's result. Of the whole: how
    many steps are there for their own sake, since no other step needs their results.
    """
    counts = Counter(plan.tools)
    kinds = {QuestionRef: "question", Literal: "literal"}
    needed = {reference.step for step in plan.steps for reference in step.references()}
    asked = sum(number not in needed for number in range(1, len(plan.steps) + 1))
    return frozenset(
        [
            *(f"uses {tool}" for tool in counts),
            *(f"repeats {tool}" for tool, count in counts.items() if count > 1),
            *feeds(plan),
            *(
                f"{step.tool}.{name}<{kinds[type(value)]}"
                for step in plan.steps
                for name, value in step.arguments
                if type(value) in kinds
            ),
            f"asks {asked}",
        ]
    )


@dataclass(frozen=True, slots=True)
class PlanEnsemble:
    """Binary classifiers, and the plan shapes that they vote for.

    Attributes:
        labels: What each classifier says of a plan: those that some queries' plans have and some
            have not; see ``plan_labels``.
        described: Which labels each shape has, array (shapes, labels).
        counts: How many queries have each, array (shapes,).
        weights: The classifiers' and their intercepts, array (labels, columns + 1).
    """

    features: QuestionFeatures
    labels: tuple[str, ...]
    shapes: tuple[Plan, ...]
    described: NDArray[np.bool_]
    counts: NDArray[np.int64]
    weights: Floats

    @classmethod
    def untrained(
        cls, queries: Sequence[AnnotatedQuery], dimension: int, settings: ClassifierSettings
    ) -> PlanEnsemble:
        """Return what queries tell without a training; all weights are 0."""
        contexts = [query.record.context for query in queries]
        features = QuestionFeatures.of([query.query for query in queries], contexts, settings)
        counts = Counter(label for query in queries for label in plan_labels(query.plan))
        most = len(queries) - settings.least
        labels = sorted(n for n, count in counts.items() if settings.least <= count <= most)
        seen = Counter(shape(query.plan) for query in queries)
        shapes = tuple(parse_plan(text) for text in seen)
        described = [[name in plan_labels(plan) for name in labels] for plan in shapes]
        return cls(
            *(features, tuple(labels), shapes),
            np.array(described, bool),
            np.array(list(seen.values())),
            np.zeros((len(labels), dimension + features.width + 1), np.float32),
        )

    def fitted(self, queries: Sequence[AnnotatedQuery], vectors: Floats) -> Floats:
        """Return the weights of the classifiers, trained on these queries.

        Args:
            vectors: Embeddings of their questions, array (queries, dimension).
        """
        contexts = [query.record.context for query in queries]
        rows = self.features.matrix([query.query for query in queries], vectors, contexts)
        held = [plan_labels(query.plan) for query in queries]
        results = [
            fit_regression(rows, [name in own for own in held], self.features.settings)
            for name in self.labels
        ]
        return np.stack(results) if results else self.weights

    def ranked(self, request: PlanRequest, vector: Floats) -> Iterator[Plan]:
        """Yield the shapes whose tools and context fields the request has, the likeliest first.

        The classifiers are taken for independent of each other, as in naive Bayes.

        Args:
            vector: The question's embedding, array (dimension,).
        """
        row = self.features.matrix([request.question], vector[None], [request.context])
        said = row @ self.weights[:, :-1].T + self.weights[:, -1]
        # The logarithms of the logistic function, without overflow.
        votes = np.where(self.described, -np.logaddexp(0, -said), -np.logaddexp(0, said))
        scores = votes.sum(axis=1) + self.features.settings.prior * np.log(self.counts)
        for index in np.argsort(-scores, kind="stable"):
            if runnable(self.shapes[index], request):
                yield self.shapes[index]


#: Plan shapes that are tried before the fallback plan.
ATTEMPTS = 8


class ClassifierPlanner:
    """Plans by classifiers, which know the tools and the plans of their training and no others.

    A tool that a request brings along is never used; one that a request lacks is respected.

    Args:
        encoder: The one that the ensemble was trained with.
    """

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
        for seen in islice(self.ensemble.ranked(request, vector), ATTEMPTS):
            attempts += 1
            plan = self.arguments.filled(seen, request.question)
            try:
                request.validate(plan)
            except PlanError as error:
                reason = str(error)
                continue
            return PlanResult(plan, self.name, attempts, "", _since(started))
        plan = fallback_plan(request)
        return PlanResult(plan, self.name, attempts + 1, reason, _since(started))

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """The same; it takes a few milliseconds and does not wait for anything."""
        return self.plan(request)


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def train_classifiers(
    queries: Sequence[AnnotatedQuery],
    encoder: Encoder,
    settings: ClassifierSettings | None = None,
    weights: Mapping[str, Floats] | None = None,
) -> ClassifierPlanner:
    """Train the ensemble and the argument step; the same queries give the same planner.

    Queries whose plan uses a tool of their own, or whose toolbox lacks one, are left out: what
    another request can do says nothing of this one's tools.

    Args:
        settings: The defaults are those of the figures in the documentation.
        weights: Of an earlier training on the same, ``ensemble`` and ``words``.

    Raises:
        InputError: No query is left, all have one plan, or the weights are others'.
        DependencyError: scikit-learn is not installed.
    """
    given = settings or ClassifierSettings()
    known = [query for query in queries if _of_the_toolbox(query)]
    if len({query.plan.tools for query in known}) < 2:
        raise InputError(
            f"Classifiers cannot be trained: of {len(queries)} queries, {len(known)} use the "
            "toolbox as it is, and these have fewer than two different plans. Give more queries."
        )
    bare = PlanEnsemble.untrained(known, encoder.dimension, given)
    if weights is None:
        own = bare.fitted(known, encoder.embed([query.query for query in known]))
        words = ArgumentFinder.fit(known, given)
    else:
        own, words = weights["ensemble"], ArgumentFinder(weights["words"])
    if own.shape != bare.weights.shape:
        raise InputError(f"Weights of the form {own.shape} are of other classifiers.")
    return ClassifierPlanner(replace(bare, weights=own), words, encoder)


def _of_the_toolbox(query: AnnotatedQuery) -> bool:
    own = {alias(str(tool.get("name", ""))) for tool in query.record.tools_extra}
    return own.isdisjoint(query.plan.tools) and not query.record.tools_removed
