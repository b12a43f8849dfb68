"""From a card's image to a checked answer; only right answers are retained."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from casewright.errors import InputError
from casewright.stores import Case, CaseStore
from casewright_math24.answerer import CardAnswerer
from casewright_math24.card_reader import CardReader
from casewright_math24.cards import render_card
from casewright_math24.cases import card_image, puzzle_case, puzzle_schema
from casewright_math24.decomposition import classes, decomposable_problems, product_of_pairs
from casewright_math24.latent import FEATURE_COUNT, features, load_network, shipped_network
from casewright_math24.latent_training import train_contrastive_network, train_paper_network
from casewright_math24.page import page_of
from casewright_math24.puzzle import Problem

READER = CardReader()


def store_without(*excluded: Problem) -> CaseStore:
    """Return a store of a third of the puzzles, without the given puzzles."""
    store = CaseStore(puzzle_schema(READER, shipped_network()), ":memory:")
    known = [p for p in decomposable_problems()[::3] if p not in excluded]
    store.add([puzzle_case(problem) for problem in known])
    return store


@pytest.fixture(scope="module")
def store() -> CaseStore:
    return store_without((1, 8, 10, 12), (2, 3, 7, 8))


def test_card_is_answered_by_the_plan_of_a_similar_card_and_checked(
    store: CaseStore,
) -> None:
    answer = CardAnswerer(store, READER).answer(card_image((12, 1, 8, 10)))
    assert answer.reading.numbers == (12, 1, 8, 10)
    assert answer.problem == (1, 8, 10, 12)
    assert answer.problem not in [tuple(hit.case.metadata["numbers"]) for hit in answer.hits]
    assert answer.right
    assert answer.checks[-1].expression == "(1 * 12) * (10 - 8)"
    assert answer.retained is None


def test_wrong_answer_is_followed_by_exactly_one_second_attempt(
    store: CaseStore,
) -> None:
    attempt_counts = {
        len(CardAnswerer(store, READER).answer(card_image(p)).checks)
        for p in [(3, 8, 11, 13), (1, 8, 10, 12), (5, 5, 5, 5)]
    }
    assert attempt_counts == {1, 2}
    wrong_answer = CardAnswerer(store, READER).answer(card_image((3, 8, 11, 13)))
    assert [check.right for check in wrong_answer.checks] == [False, False]
    assert [check.why for check in wrong_answer.checks] == [
        "The nearest case's plan gives no solution with these numbers.",
        "The next plan gives no solution with these numbers.",
    ]


def test_chat_model_gets_the_plans_and_a_correction_of_a_wrong_answer() -> None:
    store = store_without((2, 3, 7, 8))
    prompts: list[list[tuple[str, str]]] = []
    replies = ["Final Answer: 8 * 3 = 24", "Final Answer: (8 - 2) * (7 - 3) = 24"]

    def chat(messages: Sequence[tuple[str, str]]) -> str:
        prompts.append(list(messages))
        return replies[len(prompts) - 1]

    answer = CardAnswerer(store, READER, chat, "tiny").answer(card_image((2, 3, 7, 8)), retain=True)
    assert answer.right
    assert answer.answered_by == "tiny"
    assert "A hint that may help" in prompts[0][1][1]
    assert "must use 2, 3, 7, 8" in prompts[1][-1][1]
    assert answer.retained is not None
    assert answer.retained.outcome == "added"
    (case,) = store.get(answer.retained.id)
    assert case.solution["plans"] == [[6, 0, 3]]


def test_product_of_pairs_is_none_for_right_answers_of_another_form() -> None:
    assert product_of_pairs("8 - (2 - 3 * 7) - 3", (2, 3, 7, 8)) is None
    assert product_of_pairs("(7 - 3) * (8 - 2)", (2, 3, 7, 8)) is not None
    assert product_of_pairs("(12 * 1) * 10 - 96", (1, 8, 10, 12)) is None
    assert product_of_pairs("(10 - 8) * 12 * 1", (1, 8, 10, 12)) is None


def test_puzzle_is_not_answered_by_its_own_case(store: CaseStore) -> None:
    known = [tuple(case.metadata["numbers"]) for case in store.all()]
    for problem in known[:8]:
        hits = CardAnswerer(store, READER).answer(card_image(problem)).hits
        assert len(hits) == 3
        assert problem not in [tuple(hit.case.metadata["numbers"]) for hit in hits]


def test_right_answer_is_retained_once_and_found_only_by_other_puzzles() -> None:
    cards = store_without((1, 8, 10, 12))
    answerer, image, before = CardAnswerer(cards, READER), card_image((1, 8, 10, 12)), cards.count()
    first = answerer.answer(image, retain=True)
    assert first.retained is not None
    assert first.retained.outcome == "added"
    second = answerer.answer(image, retain=True)
    assert first.retained.id not in [hit.case.id for hit in second.hits]
    other_answer = answerer.answer(card_image((1, 7, 9, 11)))
    assert first.retained.id in [hit.case.id for hit in other_answer.hits]
    assert second.retained is not None
    assert second.retained.outcome in ("unchanged", "duplicate")
    assert cards.count() == before + 1


def test_wrong_answer_or_invalid_card_is_not_retained() -> None:
    cards = store_without()
    answerer, before = CardAnswerer(cards, READER), cards.count()
    assert answerer.answer(card_image((3, 8, 11, 13)), retain=True).retained is None
    noise = io.BytesIO()
    Image.effect_noise((180, 180), 80).save(noise, format="PNG")
    for image in (noise.getvalue(), card_image((1, 8, 10, 12))[:900], b"no image"):
        with pytest.raises(InputError):
            answerer.answer(image, retain=True)
    assert cards.count() == before


def test_store_refuses_a_case_with_a_wrong_solution(store: CaseStore) -> None:
    valid = puzzle_case((2, 3, 7, 8))
    broken = {**valid.solution, "expressions": ["(8 - 3) * (7 - 2)"]}
    retained = store.retain(Case(valid.problem, broken, metadata=valid.metadata))
    assert retained.outcome == "refused"
    assert "It is 25, not 24" in retained.reason


def test_the_page_shows_the_card_the_cases_and_the_check(store: CaseStore, tmp_path: Path) -> None:
    file = tmp_path / "card.jpg"
    render_card((1, 8, 10, 12)).save(file)
    answer = CardAnswerer(store, READER).answer(file)
    page = page_of(answer, file.read_bytes())
    assert page.count("<img") == 1 + len(answer.hits)
    assert "(1 * 12) * (10 - 8) = 24" in page
    assert "http" not in page


def test_features_are_the_shares_of_pairs_that_make_each_factor() -> None:
    shares = features((1, 2, 3, 4))
    assert shares.shape == (FEATURE_COUNT,)
    # Of six pairs, 12 is made by 3 and 4 alone; 6 by 2 and 3, and by 2 and 4.
    assert shares[6] == pytest.approx(1 / 6)
    assert shares[4] == pytest.approx(2 / 6)
    # Of the three pairs of the first number, only the pair with 2 makes 1.
    assert shares[8] == pytest.approx(1 / 3)


@pytest.mark.parametrize("train", [train_paper_network, train_contrastive_network])
def test_latent_groups_puzzles_by_class_better_than_with_shuffled_labels(
    train: type,
) -> None:
    problems = decomposable_problems()
    test, known = problems[::5], [p for n, p in enumerate(problems) if n % 5]
    labels = [frozenset(classes(problem)) for problem in known]
    budget = {"epochs": 30} if train is train_paper_network else {"steps": 120}

    def share(labels: Sequence[frozenset[tuple[int, int, int]]]) -> float:
        latent = train(known, labels, seed=1, **budget)
        rows, queries = latent.vectors(known), latent.vectors(test)
        rows = rows / (rows**2).sum(1, keepdims=True) ** 0.5
        nearest = (queries @ rows.T).argmax(1)
        matches = [bool(classes(p) & labels[n]) for p, n in zip(test, nearest, strict=True)]
        return sum(matches) / len(matches)

    learned = share(labels)
    assert learned > 0.5
    shuffled = [labels[index] for index in np.random.default_rng(0).permutation(len(labels))]
    assert learned > share(shuffled) + 0.1


def test_latent_is_equal_after_loading_and_invalid_files_are_refused(tmp_path: Path) -> None:
    problems = decomposable_problems()[:20]
    latent = train_contrastive_network(problems, [classes(p) for p in problems], steps=2)
    latent.save(tmp_path / "latent.npz")
    loaded = load_network(tmp_path / "latent.npz")
    assert (loaded.vectors(problems) == latent.vectors(problems)).all()
    (tmp_path / "other.npz").write_text("nothing", encoding="utf-8")
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "latent.npz").read_bytes()[:500])
    for name in ("other.npz", "empty.npz", "cut.npz", "nowhere.npz"):
        with pytest.raises(InputError, match="finetune math24"):
            load_network(tmp_path / name)
