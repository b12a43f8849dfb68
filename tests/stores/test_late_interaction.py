"""Late interaction: what a passage says in few words, and encoders without vectors of tokens."""

from __future__ import annotations

import numpy as np
import pytest

from casewright.errors import InputError
from casewright.stores import default_encoder
from casewright.stores.encoders.late_interaction import late_interaction
from tests.support.encoders import HashingEncoder

PADDING = "The hall has white walls, and the windows are washed in spring. " * 6


def test_a_passage_that_says_it_in_one_sentence_of_many_is_most_similar() -> None:
    texts = [PADDING, f"{PADDING}Unused connections are closed after an hour. {PADDING}", ""]
    scores = late_interaction(default_encoder(), "When is an idle connection dropped?", texts)
    assert scores is not None
    assert scores[1] > scores[0] + 0.1
    assert scores[2] == 0.0
    assert all(score <= 1.0001 for score in scores)


def test_a_question_without_words_is_similar_to_nothing() -> None:
    assert late_interaction(default_encoder(), "", ["text"]) == [0.0]


@pytest.mark.parametrize("encoder", [None, HashingEncoder()])
def test_an_encoder_without_vectors_of_tokens_has_no_scores(encoder: HashingEncoder | None) -> None:
    assert late_interaction(encoder, "a question", ["a text"]) is None


@pytest.mark.parametrize("value", [np.nan, None], ids=["not finite", "too few"])
def test_wrong_token_vectors_of_an_encoder_are_refused(value: float | None) -> None:
    class Broken(HashingEncoder):
        def token_vectors(self, texts: list[str]) -> list[np.ndarray]:
            return [np.full((1, 2), value)] * len(texts) if value is not None else []

    with pytest.raises(InputError, match="must return finite token vectors"):
        late_interaction(Broken(), "a question", ["a text"])
