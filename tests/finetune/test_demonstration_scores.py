"""The log-probabilities of answers are those of reading each whole prompt by itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.finetune.demonstrations import (
    AnswerPrompt,
    Demonstration,
    ModelScorer,
)
from casewright.planner.language_model import LanguageModel
from tests.finetune.scoring import answer_by_hand, by_hand
from tests.support.examples import at_most
from tests.support.tiny_mistral import tiny_mistral
from tests.support.tiny_tokenizers import gpt2_like, llama3_like, sentencepiece_like

ASKED = [
    AnswerPrompt("where is it?", ("here", "in the north", "s1 = late parcel, of the galaxy phone")),
    AnswerPrompt(
        "how heavy is the watch?",
        ("x", "7"),
        (Demonstration("what is it?", "a phone"), Demonstration("when?", "late, on 3 May")),
    ),
    AnswerPrompt("why?", ("because",), (Demonstration("who?", "nobody at all " * 8),)),
    AnswerPrompt("why?", ("é", "ﬁ 日本", "at the end", "here"), (Demonstration("a", "b"),)),
]
#: Largest difference between float32 in batches and one row at a time.
NEAR = 2e-3


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return tiny_mistral(1, initializer_range=0.4)


def scored(scorer: ModelScorer, asked: list[AnswerPrompt]) -> list[list[float]]:
    found = dict(scorer.score(asked))
    assert sorted(found) == list(range(len(asked)))
    return [[one.logprob for one in found[place]] for place in range(len(asked))]


def near(found: list[list[float]], wanted: list[list[float]]) -> bool:
    pairs = zip(chain.from_iterable(found), chain.from_iterable(wanted), strict=True)
    return all(abs(a - b) < NEAR for a, b in pairs)


@pytest.mark.parametrize("batch_tokens", [1, 150, 4096])
def test_batched_scores_equal_those_of_reading_each_prompt_alone(
    model: LanguageModel, batch_tokens: int
) -> None:
    scorer = ModelScorer(model, batch_tokens=batch_tokens)
    wanted = [[answer_by_hand(model, one, answer) for answer in one.answers] for one in ASKED]
    spread = [number for row in wanted for number in row]
    assert max(spread) - min(spread) > 50, "the model tells nothing apart"
    assert near(scored(scorer, ASKED), wanted)


def test_scores_with_a_sliding_window_equal_those_without_reuse() -> None:
    narrow = tiny_mistral(2, sliding_window=24, initializer_range=0.4)
    wanted = [[answer_by_hand(narrow, one, answer) for answer in one.answers] for one in ASKED]
    assert near(scored(ModelScorer(narrow), ASKED), wanted)
    full = scored(ModelScorer(tiny_mistral(2, sliding_window=None, initializer_range=0.4)), ASKED)
    assert not near(full, wanted), "the window hides nothing"


@pytest.fixture(scope="module")
def without_masks() -> LanguageModel:
    """Return the same model, which refuses masks of its own: each prompt is read by itself."""
    other = tiny_mistral(1, initializer_range=0.4)
    forward = other.network.forward

    def called(**given: Any) -> Any:
        mask = given.get("attention_mask")
        if mask is not None and mask.dim() == 4:
            raise ValueError("Only masks of two dimensions.")
        return forward(**given)

    other.network.forward = called
    return other


def test_network_without_custom_masks_gives_the_same_scores(
    model: LanguageModel, without_masks: LanguageModel
) -> None:
    assert near(scored(ModelScorer(without_masks), ASKED), scored(ModelScorer(model), ASKED))


@pytest.mark.parametrize(
    ("tokenizer", "begins"),
    [(gpt2_like, False), (llama3_like, True), (sentencepiece_like, True)],
    ids=["gpt2", "llama3", "sentencepiece"],
)
def test_scores_use_the_tokens_of_the_whole_text_with_every_tokenizer(
    tokenizer: Callable[[], Any], *, begins: bool
) -> None:
    made = tokenizer()
    network = tiny_mistral(3, vocab=max(512, len(made)), initializer_range=0.4).network
    other = LanguageModel("other", network, made)
    wanted = [
        [answer_by_hand(other, one, a, begins=begins) for a in one.answers] for one in ASKED[:3]
    ]
    assert near(scored(ModelScorer(other), ASKED[:3]), wanted)


def test_special_token_in_an_answer_is_scored_as_text(model: LanguageModel) -> None:
    ends = model.tokenizer.eos_token_id
    (scored_text,) = dict(ModelScorer(model).score([AnswerPrompt("a", ("</s>",))])).values()
    ids = [model.tokenizer.bos_token_id, *model.tokenizer("Q: a\nA:")["input_ids"]]
    as_end = by_hand(model, [*ids, ends], len(ids))
    assert scored_text[0].tokens > 1
    assert abs(scored_text[0].logprob - as_end) > 0.1


@settings(
    max_examples=at_most(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.tuples(
            st.text(max_size=12),
            st.lists(st.text(min_size=1, max_size=9).filter(str.strip), min_size=1, max_size=4),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_texts_get_the_same_scores_with_and_without_reuse(
    model: LanguageModel, without_masks: LanguageModel, asked: list[tuple[str, list[str]]]
) -> None:
    made = [AnswerPrompt(question, tuple(answers)) for question, answers in asked]
    shared, whole = (ModelScorer(one, batch_tokens=64) for one in (model, without_masks))
    assert near(scored(shared, made), scored(whole, made))


def test_answers_that_share_a_context_need_fewer_tokens(model: LanguageModel) -> None:
    scorer = ModelScorer(model)
    answers = tuple(f"about {n}" for n in range(8))
    question = "how long is it?" * 5
    alone = [AnswerPrompt(question, (answer,)) for answer in answers]
    assert scorer.tokens([AnswerPrompt(question, answers)]) * 4 < scorer.tokens(alone)


def test_score_keys_differ_by_weights_contexts_and_answers(model: LanguageModel) -> None:
    same = tiny_mistral(1, initializer_range=0.4)
    other = tiny_mistral(2, initializer_range=0.4)
    scorers = [ModelScorer(one) for one in (model, same, other)]
    first, again, others = (scorer.key(ASKED[0]) for scorer in scorers)
    assert first == again
    assert len({first, others, *map(scorers[0].key, ASKED[1:4])}) == 5


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        (AnswerPrompt("a", ()), "has no answers"),
        (AnswerPrompt("a", ("",)), "no text"),
        (AnswerPrompt("a", (" \n",)), "no text"),
        (AnswerPrompt("long " * 4000, ("x",)), "Show fewer demonstrations"),
    ],
    ids=["no answer", "empty", "blank", "too long"],
)
def test_scorer_refuses_empty_answers_and_too_long_prompts(
    model: LanguageModel, asked: AnswerPrompt, word: str
) -> None:
    scorer = ModelScorer(model)
    with pytest.raises(InputError, match=word):
        list(scorer.score([asked]))
    with pytest.raises(InputError, match=word):
        scorer.tokens([asked])
