"""SufficiencyJudge: features of hits, and questions of unusual lengths."""

from __future__ import annotations

import numpy as np
import pytest

from casewright.stores import Case, Hit
from casewright.stores.feedback.sufficiency import (
    FEATURES,
    MAX_WORDS,
    SufficiencyJudge,
    hit_features,
)

JUDGE = SufficiencyJudge.shipped(2)
TEXT = "Descale the machine every three months with citric acid."


def hit(text: str, relevance: float) -> Hit:
    return Hit(Case({"title": ""}, text), relevance, relevance, {}, np.zeros(0, np.float32))


def hits_suffice(question: str, *hits: Hit) -> bool:
    return JUDGE.is_sufficient(hit_features(question, hits))


@pytest.mark.parametrize("question", ["How often must I descale the machine?", "", "1998"])
def test_question_without_hits_is_not_sufficient(question: str) -> None:
    assert hit_features(question, []) == (0.0, 0.0)
    assert not hits_suffice(question)


@pytest.mark.parametrize("question", ["Descale?", "How often must I descale?"])
def test_short_question_is_sufficient_if_a_relevant_passage_has_its_words(question: str) -> None:
    # Without ``MIN_WORDS``, a question of one word would not be sufficient.
    assert hits_suffice(question, hit(TEXT, 0.38))
    assert not hits_suffice(question, hit("The garden closes at dusk.", 0.38))


def test_long_message_that_shares_few_words_with_a_passage_is_not_sufficient() -> None:
    words = [f"word{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(30)]
    message = " ".join([*words, "machine months citric acid descale"])
    share, count = hit_features(message, [hit(TEXT, 0.3)])
    assert count == MAX_WORDS
    assert share < 0.1
    assert not hits_suffice(message, hit(TEXT, 0.3))


def test_rare_words_increase_the_share_of_found_words() -> None:
    rarity = {"descal": 5.0, "machin": 1.0}
    passages = [hit("They descale it.", 0.5)]
    equal = hit_features("descale machine", passages)
    weighted = hit_features("descale machine", passages, lambda word: rarity.get(word, 1.0))
    assert weighted > equal


@pytest.mark.parametrize("features", [2, 3])
def test_shipped_sufficiency_judge_has_positive_weights_for_all_its_features(features: int) -> None:
    weights = SufficiencyJudge.shipped(features).regression.weights
    assert tuple(weights) == FEATURES[:features]
    assert min(weights.values()) > 0


def test_logit_of_an_answer_can_replace_words_that_a_passage_lacks() -> None:
    judge = SufficiencyJudge.shipped()
    assert judge.is_sufficient((0.12, 1.2, 3.0))
    assert not judge.is_sufficient((0.12, 1.2, -3.0))
