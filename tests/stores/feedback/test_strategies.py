"""How strategies search again: unseen cases only, alike each time and in every kind of place."""

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
HALVES: Any = 1.5
STRATEGIES: list[Strategy] = [
    RocchioStrategy(),
    RocchioStrategy(alpha=0.0, beta=1.0, gamma=0.0),
    TextStrategy(),
    SentenceStrategy(),
    NeighbourStrategy(),
]
EACH = pytest.mark.parametrize(
    "strategy", STRATEGIES, ids=[f"{n} {s.name}" for n, s in enumerate(STRATEGIES)]
)


def schema(encoder: HashingEncoder | None = None) -> CaseSchema:
    used = encoder or HashingEncoder()
    facets = (text_facet("question", used, weight=0.75), text_facet("answer", used, weight=0.25))
    return CaseSchema("strategies", facets)


def filled(store: CaseStore, qualities: Sequence[float | None] = ()) -> CaseStore:
    for n, text in enumerate(TEXTS):
        quality = qualities[n] if qualities else None
        problem = {"question": text, "answer": f"{WORDS[n * 5 % 11]} {WORDS[n * 3 % 11]}"}
        store.add([Case(problem, {"n": n}, metadata={"third": n % 3}, quality=quality)])
    return store


@pytest.fixture(scope="module")
def store() -> Iterator[CaseStore]:
    with filled(CaseStore(schema())) as opened:
        yield opened


@pytest.fixture(scope="module")
def other_place(shared_place: str) -> Iterator[CaseStore]:
    with filled(CaseStore(schema(), shared_place)) as opened:
        yield opened


def question_of(store: CaseStore, where: Any = None, weights: Any = None) -> Question:
    question = store.question(QUESTION, where=where, weights=weights)
    assert question is not None
    return question


def feedback(question: Question, relevant: int = 2, irrelevant: int = 2) -> Feedback:
    known = [
        Candidate(one.hit, case_text(one.hit.case), one.nearness, 1)
        for one in question.best(relevant + irrelevant)
    ]
    return Feedback(known[:relevant], known[relevant:])


def ids_and_scores(found: Sequence[Found]) -> list[tuple[str, float]]:
    return [(one.hit.case.id, one.nearness) for one in found]


@EACH
def test_strategy_finds_only_unseen_cases(store: CaseStore, strategy: Strategy) -> None:
    question = question_of(store)
    for relevant, irrelevant, k in ((1, 0, 3), (2, 3, 5), (4, 4, 99), (20, 0, 4), (3, 2, 0)):
        given = feedback(question, relevant, irrelevant)
        ids = [id_ for id_, _ in ids_and_scores(strategy.search(question, given, k))]
        assert given.seen.isdisjoint(ids)
        assert len(ids) == len(set(ids)) == min(k, 20 - relevant - irrelevant)


@EACH
def test_strategy_is_deterministic(store: CaseStore, strategy: Strategy) -> None:
    question = question_of(store)
    given = feedback(question)
    first = ids_and_scores(strategy.search(question, given, 7))
    assert (
        ids_and_scores(strategy.search(question_of(store), feedback(question_of(store)), 7))
        == first
    )
    turned = Feedback(given.relevant[::-1], given.irrelevant[::-1])
    again = dict(ids_and_scores(strategy.search(question, turned, 7)))
    if not isinstance(strategy, TextStrategy):
        # Nothing depends on the order of what was found; a text does.
        assert again == pytest.approx(dict(first), abs=1e-5)


@EACH
def test_strategy_applies_the_where_condition_of_the_question(
    store: CaseStore, strategy: Strategy
) -> None:
    question = question_of(store, where={"third": [0, 2]})
    found = strategy.search(question, feedback(question), 99)
    assert len(found) == 13 - 4
    assert {one.hit.case.metadata["third"] for one in found} == {0, 2}


@EACH
def test_strategy_finds_the_same_cases_in_memory_folder_and_server(
    store: CaseStore, other_place: CaseStore, strategy: Strategy
) -> None:
    found = []
    for place in (store, other_place):
        question = question_of(place, where={"third": {"not": 1}})
        found.append(ids_and_scores(strategy.search(question, feedback(question), 99)))
    here, there = map(dict, found)
    assert there == pytest.approx(here, abs=1e-4)
    # In the same order too, but where scores are the same.
    assert [round(s, 3) for _, s in found[1]] == pytest.approx(
        [round(s, 3) for _, s in found[0]], abs=2e-3
    )


@EACH
def test_strategy_ignores_the_quality_of_cases(store: CaseStore, strategy: Strategy) -> None:
    rated = [(7 * n % 20) / 20 for n in range(20)]
    with filled(CaseStore(schema()), rated) as other:
        question = question_of(other)
        found = strategy.search(question, feedback(question), 9)
        plain = question_of(store)
        expected = strategy.search(plain, feedback(plain), 9)
        assert ids_and_scores(found) == ids_and_scores(expected)
        assert [one.hit.score for one in found] == [one.hit.score for one in expected]
        assert {hit.case.quality for hit in other.search(QUESTION, 20)} == set(rated)


@pytest.mark.parametrize("weights", [None, {"question": 1}, {"question": 1, "answer": 4}], ids=str)
@pytest.mark.parametrize("factors", [(1, 0.75, 0.15), (0, 1, 0), (2, 0.5, 1)], ids=str)
def test_rocchio_ranks_by_its_formula(
    store: CaseStore, weights: Mapping[str, float] | None, factors: tuple[float, float, float]
) -> None:
    question = question_of(store, weights=weights)
    given = feedback(question, 3, 2)
    alpha, beta, gamma = factors
    facets = schema()
    points = {case.id: case for case in store.all()}
    vectors = {
        id_: facets.vectors([case.problem])[0].astype(np.float64) for id_, case in points.items()
    }
    query = (
        alpha * facets.vectors([facets.query(QUESTION)], query=True)[0]
        + beta * np.mean([vectors[one.id] for one in given.relevant], axis=0)
        - gamma * np.mean([vectors[one.id] for one in given.irrelevant], axis=0)
    )
    shares = facets.weights(weights)
    expected = {
        id_: sum(
            share * float(query[part] @ vector[part])
            for share, part in zip(shares, facets.slices.values(), strict=True)
        )
        for id_, vector in vectors.items()
        if id_ not in given.seen
    }
    found = ids_and_scores(RocchioStrategy(*factors).search(question, given, 99))
    assert dict(found) == pytest.approx(expected, abs=1e-5)
    assert [score for _, score in found] == sorted((s for _, s in found), reverse=True)
    best = ids_and_scores(RocchioStrategy(*factors).search(question, given, 3))
    assert best == found[:3]


def test_rocchio_ignores_gamma_without_irrelevant_cases(store: CaseStore) -> None:
    question = question_of(store)
    given = feedback(question, 2, 0)
    with_gamma = RocchioStrategy(gamma=0.9).search(question, given, 9)
    assert ids_and_scores(with_gamma) == ids_and_scores(
        RocchioStrategy(gamma=0).search(question, given, 9)
    )


def test_rocchio_and_neighbour_strategies_encode_nothing() -> None:
    encoder = HashingEncoder()
    with filled(CaseStore(schema(encoder))) as own:
        question = question_of(own)
        given = feedback(question)
        for strategy, calls in (
            (RocchioStrategy(), 0),
            (NeighbourStrategy(), 0),
            (TextStrategy(), 2),
            (SentenceStrategy(), 2),
        ):
            encoder.calls.clear()
            strategy.search(question, given, 5)
            # One batch a facet.
            assert len(encoder.calls) == calls


def test_text_strategy_joins_question_and_relevant_texts_in_one_query() -> None:
    encoder = HashingEncoder()
    with filled(CaseStore(schema(encoder))) as own:
        question = question_of(own)
        given = feedback(question)
        encoder.calls.clear()
        TextStrategy().search(question, given, 5)
        query = "\n".join([QUESTION, *(one.text for one in given.relevant)])
        assert encoder.calls == [[query], [query]]


def test_sentence_strategy_encodes_and_ranks_all_sentences_in_one_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = HashingEncoder()
    with filled(CaseStore(schema(encoder))) as own:
        question = question_of(own)
        *early, late = feedback(question, 3).relevant
        given = Feedback([*early, replace(late, round=2)])
        engine = question.finder.engine
        rank, ranked = engine.rank, []

        def counted(collection: str, vectors: Any, *more: Any) -> Any:
            ranked.append(len(vectors))
            return rank(collection, vectors, *more)

        monkeypatch.setattr(engine, "rank", counted)
        encoder.calls.clear()
        SentenceStrategy(sentences=2, texts=2).search(question, given, 5)
        assert ranked == [len(encoder.calls[0])] == [4]
        # What was found last is asked for first.
        assert encoder.calls[0][0] == f"{QUESTION} {late.text.split('.')[0]}."
        assert all(query.startswith(f"{QUESTION} ") for query in encoder.calls[0])


def test_sentence_strategy_scores_a_case_by_its_nearest_sentence() -> None:
    facet = text_facet("question", HashingEncoder(256))
    with CaseStore(CaseSchema("sentences", (facet,))) as own:
        long = "The bridge spans a wide green valley.\nThe organ was built by Arnold Schmid."
        own.add([note(long), note("organ Arnold Schmid"), note("wide green valley"), note("rain")])
        question = own.question("bridge organ")
        assert question is not None
        (first,) = (
            h for h in question.hits([c.id for c in own.all()]) if "organ was" in str(h.case)
        )
        given = Feedback([Candidate(first, case_text(first.case), 1.0, 1)])
        found = SentenceStrategy().search(question, given, 9)
        alone = [
            question.nearest(question.embed([f"bridge organ {line}"]), 9, exclude=given.seen)
            for line in long.split("\n")
        ]
        assert dict(ids_and_scores(found)) == {
            id_: pytest.approx(max(dict(ids_and_scores(one))[id_] for one in alone))
            for id_, _ in ids_and_scores(found)
        }
        assert [str(one.hit.case.problem["question"]) for one in found][-1] == "rain"


@pytest.mark.parametrize(
    "made",
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
def test_strategy_setting_out_of_range_raises_input_error(made: Any) -> None:
    with pytest.raises(InputError, match="at least"):
        made()


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (lambda given: SentenceStrategy(sentences=given), "sentences='3'"),
        (lambda given: SentenceStrategy(texts=given), "texts='3'"),
        (lambda given: RocchioStrategy(alpha=given), "alpha='3'"),
        (lambda given: NeighbourStrategy(reach=given), "reach='3'"),
        (lambda given: NeighbourStrategy(reach=HALVES), "reach=1.5"),
    ],
    ids=["sentences", "texts", "alpha", "reach", "half"],
)
def test_strategy_setting_of_wrong_type_raises_input_error(made: Any, word: str) -> None:
    with pytest.raises(InputError, match=word):
        made("3")
