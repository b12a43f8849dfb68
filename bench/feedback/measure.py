"""Relevance feedback beside a single search that judges as many, and beside the post's loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from casewright.bench.feedback.figures import Arm, Trial, figures_of, lines_of, mean, rows_of
from casewright.bench.feedback.judges import (
    BLIND,
    GOLD,
    OFFLINE,
    SHUFFLED,
    BlindJudge,
    GoldJudge,
    ShuffledJudge,
)
from casewright.bench.feedback.plot import draw_recall
from casewright.bench.feedback.post_loop import POST_KS, post_loop
from casewright.bench.feedback.runs import K, Run, State, looped, single
from casewright.bench.feedback.sets import CODE, DESCRIBED, FeedbackQuestion, FeedbackSet, find_sets
from casewright.bench.feedback.symbol_filter import SymbolFilter
from casewright.bench.report import Report
from casewright.graph.feedback import FeedbackLimits, FeedbackResult, build_feedback
from casewright.stores import CaseStore, Encoder, Question
from casewright.stores.feedback import (
    Judge,
    NeighbourStrategy,
    OfflineJudge,
    RecommendStrategy,
    RocchioStrategy,
    SentenceStrategy,
    Strategy,
    TextStrategy,
)
from casewright.stores.progress import note, progress_bar

#: No bound but these ends a loop here, so that the judges are compared and not the clock.
LIMITS = FeedbackLimits(tokens=1_000_000, seconds=600.0)
JUDGES: Mapping[str, Callable[[FeedbackQuestion], Judge]] = {
    GOLD: GoldJudge,
    OFFLINE: lambda question: OfflineJudge(),
    SHUFFLED: ShuffledJudge,
    BLIND: lambda question: BlindJudge(),
}


#: Set to the facet weights that it is searched by, where they are not the schema's own. Those of
#: the code domain are for questions that name a symbol; documents' weights for all others.
NAMED, TOLD = {"text": 0.3, "title": 0.7}, {"text": 0.8, "title": 0.2}
WEIGHTS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    CODE: {"": NAMED, ", documents' weights": TOLD},
    DESCRIBED: {"": TOLD},
}
#: Results of one search that are looked at beside.
ALONE = (5, 10, 20, 30, 50)


def measure_feedback(
    data: Path | None, encoder: Encoder, *, only: str | None = None, limit: int | None = None
) -> Report:
    """Measure every strategy with every judge, on questions that the offline judge never saw.

    Args:
        data: Where the multi-hop sets are; ``None`` measures on installed packages' code alone.
        encoder: Embeds questions and cases.
        only: One set.
        limit: At most so many questions of each set.

    Raises:
        InputError: There is nothing to measure on.
    """
    note("Reading the questions and the cases of the feedback bench.")
    trials = list(_trials(find_sets(data, only, limit), encoder))
    rows: list[dict[str, Any]] = []
    figures: dict[str, float] = {}
    for trial in trials:
        rows += rows_of(trial)
        figures |= figures_of(trial)
    return Report(
        bench="feedback",
        settings={
            "sets": {one.found.name: {**one.found.size(), **one.found.settings} for one in trials},
            "weights": {f"{s}{n}": dict(w) for s, of in WEIGHTS.items() for n, w in of.items()},
            "encoder": encoder.name,
            "limits": {name: getattr(LIMITS, name) for name in ("first", "more", "rounds")},
        },
        figures=figures,
        rows=rows,
        notes=_NOTES,
        draw=partial(draw_recall, panels={one.name: lines_of(one) for one in trials}),
    )


_NOTES = (
    "Test questions only: the offline judge was trained on the others.",
    "judged: cases a question; found: share of the relevant among the judged; single: the same for "
    "one search that judges as many; gain: found less single, in points, with its standard error; "
    "answer: share of the relevant that the judge called relevant; precision: of what it called "
    f"relevant; recall@{K}: of what was judged, what was called relevant first.",
    "The post's loop judges all that every round finds, again; tokens are estimated at four "
    "characters each.",
)


def strategies_for(found: FeedbackSet) -> list[Strategy]:
    """Return the strategies that a set can be searched by."""
    own: list[Strategy] = [
        TextStrategy(),
        SentenceStrategy(),
        RocchioStrategy(),
        RecommendStrategy(),
    ]
    return [*own, NeighbourStrategy()] if found.kind == "code" else own


def default_for(found: FeedbackSet) -> str:
    """Return the strategy that is the default for a set's kind, and has controls beside it."""
    return (NeighbourStrategy() if found.kind == "code" else SentenceStrategy()).name


def _trials(sets: Sequence[FeedbackSet], encoder: Encoder) -> Iterator[Trial]:
    # Sets of the same cases share a store.
    for _, group in groupby(sets, key=lambda found: id(found.cases)):
        members = list(group)
        note(f"Encoding {len(members[0].cases)} cases of {members[0].name}.")
        with TemporaryDirectory() as folder, members[0].store(encoder, folder) as store:
            for found in members:
                for name, weights in WEIGHTS.get(found.name, {"": None}).items():
                    yield _tried(f"{found.name}{name}", found, store, weights)


def _tried(
    name: str, found: FeedbackSet, store: CaseStore, weights: Mapping[str, float] | None
) -> Trial:
    questions = found.half(training=False)
    strategies = strategies_for(found)
    tried = [
        (strategy, judge)
        for strategy in strategies
        for judge in (JUDGES if strategy.name == default_for(found) else (GOLD, OFFLINE))
    ]
    total = len(questions) * (len(tried) + 1)
    note(f"Asking {len(questions)} questions of {name}, with {len(tried)} loops each.")
    with progress_bar(f"Questions of {name}", total, show=None) as advance:
        arms = []
        for strategy, judge in tried:
            runs, singles = [], []
            for asked in questions:
                run, state = _run(store, asked, strategy, JUDGES[judge](asked), weights)
                runs.append(run)
                singles.append(state)
                advance(1)
            arms.append(Arm(strategy.name, judge, runs, singles))
        post: dict[int, tuple[list[Run], list[int]]] = {k: ([], []) for k in POST_KS}
        shares: dict[int, list[float]] = {k: [] for k in ALONE}
        for asked in questions:
            question = _question(store, asked, weights)
            ranking = [one.hit.case.id for one in question.best(max(ALONE))]
            for k in ALONE:
                shares[k].append(State(ranking[:k], frozenset()).coverage(asked))
            for k in POST_KS:
                run, judged = post_loop(question, asked, k)
                post[k][0].append(run)
                post[k][1].append(judged)
            advance(1)
    filtered = []
    if found.kind == "code":
        named = SymbolFilter(found.cases)
        for asked in questions:
            ids = named.find(asked.text)
            filtered.append(State(ids, frozenset(ids)))
    alone = {k: mean(values) for k, values in shares.items()}
    return Trial(name, found, questions, arms, post, filtered, alone)


def _question(
    store: CaseStore, asked: FeedbackQuestion, weights: Mapping[str, float] | None
) -> Question:
    question = store.question(asked.text, weights=weights)
    assert question is not None, "the store of a set has cases"
    return question


def _run(
    store: CaseStore,
    asked: FeedbackQuestion,
    strategy: Strategy,
    judge: Judge,
    weights: Mapping[str, float] | None,
) -> tuple[Run, State]:
    loop = build_feedback(store, judge, strategy, limits=LIMITS, weights=weights)
    run = looped(FeedbackResult.from_state(loop.invoke({"question": asked.text})))
    return run, single(_question(store, asked, weights), judge, len(run.last.judged))
