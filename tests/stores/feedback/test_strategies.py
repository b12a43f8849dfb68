"""Strategies search again: for unseen cases only, with equal results on every engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from casewright.errors import InputError
from casewright.stores import Case, CaseSchema, CaseStore, Found, Question, text_facet
from casewright.stores.feedback import (
    Candidate,
    Feedback,
    NeighbourStrategy,
    RocchioStrategy,
    SentenceStrategy,
    Strategy,
    TextStrategy,
    case_text,
)
from tests.stores.helpers import note
from tests.support.encoders import HashingEncoder

QUESTION = "how does the river flow"
WORDS = ["river", "town", "old", "flow", "bridge", "mill", "stone", "water", "bank", "fish", "sea"]
TEXTS = [
    f"{' '.join(WORDS[i % 11] for i in (n, n + 1, 2 * n + 1, 3 * n))} number {n}. Then more of {n}."
    for n in range(20)
]
FRACTION: Any = 1.5
STRATEGIES: list[Strategy] = [
    RocchioStrategy(),
    RocchioStrategy(alpha=0.0, beta=1.0, gamma=0.0),
    TextStrategy(),
    SentenceStrategy(),
    NeighbourStrategy(),
]
EVERY_STRATEGY = pytest.mark.parametrize(
    "strategy", STRATEGIES, ids=[f"{n} {s.name}" for n, s in enumerate(STRATEGIES)]
)


def schema(encoder: HashingEncoder | None = None) -> CaseSchema:
    model = encoder or HashingEncoder()
    facets = (text_facet("question", model, weight=0.75), text_facet("answer", model, weight=0.25))
    return CaseSchema("strategies", facets)


def fill_store(store: CaseStore, qualities: Sequence[float | None] = ()) -> CaseStore:
    for n, text in enumerate(TEXTS):
        quality = qualities[n] if qualities else None
        problem = {"question": text, "answer": f"{WORDS[n * 5 % 11]} {WORDS[n * 3 % 11]}"}
        store.add([Case(problem, {"n": n}, metadata={"third": n % 3}, quality=quality)])
    return store


@pytest.fixture(scope="module")
def store() -> Iterator[CaseStore]:
    with fill_store(CaseStore(schema())) as case_store:
        yield case_store


@pytest.fixture(scope="module")
def other_store(shared_location: str) -> Iterator[CaseStore]:
    with fill_store(CaseStore(schema(), shared_location)) as case_store:
        yield case_store


def make_question(store: CaseStore, where: Any = None, weights: Any = None) -> Question:
    question = store.question(QUESTION, where=where, weights=weights)
    assert question is not None
    return question


def make_feedback(question: Question, relevant: int = 2, irrelevant: int = 2) -> Feedback:
    candidates = [
        Candidate(result.hit, case_text(result.hit.case), result.nearness, 1)
        for result in question.best(relevant + irrelevant)
    ]
    return Feedback(candidates[:relevant], candidates[relevant:])


def ids_and_scores(results: Sequence[Found]) -> list[tuple[str, float]]:
    return [(result.hit.case.id, result.nearness) for result in results]


@EVERY_STRATEGY
def test_strategy_finds_only_unseen_cases(store: CaseStore, strategy: Strategy) -> None:
    question = make_question(store)
    for relevant, irrelevant, k in ((1, 0, 3), (2, 3, 5), (4, 4, 99), (20, 0, 4), (3, 2, 0)):
        feedback = make_feedback(question, relevant, irrelevant)
        ids = [id_ for id_, _ in ids_and_scores(strategy.search(question, feedback, k))]
        assert feedback.seen.isdisjoint(ids)
        assert len(ids) == len(set(ids)) == min(k, 20 - relevant - irrelevant)


@EVERY_STRATEGY
def test_strategy_is_deterministic(store: CaseStore, strategy: Strategy) -> None:
    question = make_question(store)
    feedback = make_feedback(question)
    first = ids_and_scores(strategy.search(question, feedback, 7))
    repeated = strategy.search(make_question(store), make_feedback(make_question(store)), 7)
    assert ids_and_scores(repeated) == first
    reversed_feedback = Feedback(feedback.relevant[::-1], feedback.irrelevant[::-1])
    scores = dict(ids_and_scores(strategy.search(question, reversed_feedback, 7)))
    if not isinstance(strategy, TextStrategy):
        # Only ``TextStrategy`` depends on the order of the relevant cases.
        assert scores == pytest.approx(dict(first), abs=1e-5)


@EVERY_STRATEGY
def test_strategy_applies_the_where_condition_of_the_question(
    store: CaseStore, strategy: Strategy
) -> None:
    question = make_question(store, where={"third": [0, 2]})
    results = strategy.search(question, make_feedback(question), 99)
    assert len(results) == 13 - 4
    assert {result.hit.case.metadata["third"] for result in results} == {0, 2}


@EVERY_STRATEGY
def test_strategy_finds_the_same_cases_in_memory_folder_and_server(
    store: CaseStore, other_store: CaseStore, strategy: Strategy
) -> None:
    results = []
    for searched_store in (store, other_store):
        question = make_question(searched_store, where={"third": {"not": 1}})
        results.append(ids_and_scores(strategy.search(question, make_feedback(question), 99)))
    memory_scores, other_scores = map(dict, results)
    assert other_scores == pytest.approx(memory_scores, abs=1e-4)
    # The order is the same too, except among equal scores.
    assert [round(s, 3) for _, s in results[1]] == pytest.approx(
        [round(s, 3) for _, s in results[0]], abs=2e-3
    )


@EVERY_STRATEGY
def test_strategy_ignores_the_quality_of_cases(store: CaseStore, strategy: Strategy) -> None:
    qualities = [(7 * n % 20) / 20 for n in range(20)]
    with fill_store(CaseStore(schema()), qualities) as rated_store:
        question = make_question(rated_store)
        results = strategy.search(question, make_feedback(question), 9)
        unrated_question = make_question(store)
        expected = strategy.search(unrated_question, make_feedback(unrated_question), 9)
        assert ids_and_scores(results) == ids_and_scores(expected)
        assert [result.hit.score for result in results] == [result.hit.score for result in expected]
        assert {hit.case.quality for hit in rated_store.search(QUESTION, 20)} == set(qualities)


@pytest.mark.parametrize("weights", [None, {"question": 1}, {"question": 1, "answer": 4}], ids=str)
@pytest.mark.parametrize("factors", [(1, 0.75, 0.15), (0, 1, 0), (2, 0.5, 1)], ids=str)
def test_rocchio_ranks_by_its_formula(
    store: CaseStore, weights: Mapping[str, float] | None, factors: tuple[float, float, float]
) -> None:
    question = make_question(store, weights=weights)
    feedback = make_feedback(question, 3, 2)
    alpha, beta, gamma = factors
    facets = schema()
    cases = {case.id: case for case in store.all()}
    vectors = {
        id_: facets.vectors([case.problem])[0].astype(np.float64) for id_, case in cases.items()
    }
    query = (
        alpha * facets.vectors([facets.query(QUESTION)], query=True)[0]
        + beta * np.mean([vectors[candidate.id] for candidate in feedback.relevant], axis=0)
        - gamma * np.mean([vectors[candidate.id] for candidate in feedback.irrelevant], axis=0)
    )
    shares = facets.weights(weights)
    expected = {
        id_: sum(
            share * float(query[part] @ vector[part])
            for share, part in zip(shares, facets.slices.values(), strict=True)
        )
        for id_, vector in vectors.items()
        if id_ not in feedback.seen
    }
    ranked = ids_and_scores(RocchioStrategy(*factors).search(question, feedback, 99))
    assert dict(ranked) == pytest.approx(expected, abs=1e-5)
    assert [score for _, score in ranked] == sorted((s for _, s in ranked), reverse=True)
    best = ids_and_scores(RocchioStrategy(*factors).search(question, feedback, 3))
    assert best == ranked[:3]


def test_rocchio_ignores_gamma_without_irrelevant_cases(store: CaseStore) -> None:
    question = make_question(store)
    feedback = make_feedback(question, 2, 0)
    with_gamma = RocchioStrategy(gamma=0.9).search(question, feedback, 9)
    assert ids_and_scores(with_gamma) == ids_and_scores(
        RocchioStrategy(gamma=0).search(question, feedback, 9)
    )


def test_only_text_and_sentence_strategies_encode_texts() -> None:
    encoder = HashingEncoder()
    with fill_store(CaseStore(schema(encoder))) as store:
        question = make_question(store)
        feedback = make_feedback(question)
        for strategy, calls in (
            (RocchioStrategy(), 0),
            (NeighbourStrategy(), 0),
            (TextStrategy(), 2),
            (SentenceStrategy(), 2),
        ):
            encoder.calls.clear()
            strategy.search(question, feedback, 5)
            # Each facet encodes one batch.
            assert len(encoder.calls) == calls


def test_text_strategy_joins_question_and_relevant_texts_in_one_query() -> None:
    encoder = HashingEncoder()
    with fill_store(CaseStore(schema(encoder))) as store:
        question = make_question(store)
        feedback = make_feedback(question)
        encoder.calls.clear()
        TextStrategy().search(question, feedback, 5)
        query = "\n".join([QUESTION, *(candidate.text for candidate in feedback.relevant)])
        assert encoder.calls == [[query], [query]]


def test_sentence_strategy_encodes_and_ranks_all_sentences_in_one_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = HashingEncoder()
    with fill_store(CaseStore(schema(encoder))) as store:
        question = make_question(store)
        *early, last_hit = make_feedback(question, 3).relevant
        feedback = Feedback([*early, replace(last_hit, round=2)])
        engine = question.finder.engine
        rank, batch_sizes = engine.rank, []

        def count_and_rank(collection: str, vectors: Any, *arguments: Any) -> Any:
            batch_sizes.append(len(vectors))
            return rank(collection, vectors, *arguments)

        monkeypatch.setattr(engine, "rank", count_and_rank)
        encoder.calls.clear()
        SentenceStrategy(sentences=2, texts=2).search(question, feedback, 5)
        assert batch_sizes == [len(encoder.calls[0])] == [4]
        # The sentences of the latest relevant case come first.
        assert encoder.calls[0][0] == f"{QUESTION} {last_hit.text.split('.')[0]}."
        assert all(query.startswith(f"{QUESTION} ") for query in encoder.calls[0])


def test_sentence_strategy_scores_a_case_by_its_nearest_sentence() -> None:
    facet = text_facet("question", HashingEncoder(256))
    with CaseStore(CaseSchema("sentences", (facet,))) as store:
        passage = "The bridge spans a wide green valley.\nThe organ was built by Arnold Schmid."
        texts = [passage, "organ Arnold Schmid", "wide green valley", "rain"]
        store.add([note(text) for text in texts])
        question = store.question("bridge organ")
        assert question is not None
        hits = question.hits([case.id for case in store.all()])
        (first,) = (hit for hit in hits if "organ was" in str(hit.case))
        feedback = Feedback([Candidate(first, case_text(first.case), 1.0, 1)])
        results = SentenceStrategy().search(question, feedback, 9)
        results_by_line = [
            question.nearest(question.embed([f"bridge organ {line}"]), 9, exclude=feedback.seen)
            for line in passage.split("\n")
        ]
        assert dict(ids_and_scores(results)) == {
            id_: pytest.approx(max(dict(ids_and_scores(line))[id_] for line in results_by_line))
            for id_, _ in ids_and_scores(results)
        }
        assert [str(result.hit.case.problem["question"]) for result in results][-1] == "rain"


@pytest.mark.parametrize(
    "make_strategy",
    [
        lambda: RocchioStrategy(beta=0),
        lambda: RocchioStrategy(alpha=-1),
        lambda: RocchioStrategy(gamma=float("nan")),
        lambda: SentenceStrategy(sentences=0),
        lambda: SentenceStrategy(texts=0),
        lambda: NeighbourStrategy(reach=0),
    ],
    ids=["beta", "alpha", "gamma", "sentences", "texts", "reach"],
)
def test_strategy_setting_out_of_range_raises_input_error(make_strategy: Any) -> None:
    with pytest.raises(InputError, match="at least"):
        make_strategy()


@pytest.mark.parametrize(
    ("make_strategy", "message"),
    [
        (lambda value: SentenceStrategy(sentences=value), "sentences='3'"),
        (lambda value: SentenceStrategy(texts=value), "texts='3'"),
        (lambda value: RocchioStrategy(alpha=value), "alpha='3'"),
        (lambda value: NeighbourStrategy(reach=value), "reach='3'"),
        (lambda value: NeighbourStrategy(reach=FRACTION), "reach=1.5"),
    ],
    ids=["sentences", "texts", "alpha", "reach", "half"],
)
def test_strategy_setting_of_wrong_type_raises_input_error(
    make_strategy: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make_strategy("3")
