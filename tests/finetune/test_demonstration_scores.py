"""Batched log-probabilities of answers, compared with those of each prompt read alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.finetune.demonstrations import AnswerPrompt, Demonstration, ModelScorer
from casewright.planner.language_model import LanguageModel
from tests.finetune.scoring import answer_logprob, sum_logprobs
from tests.support.examples import at_most
from tests.support.tiny_mistral import tiny_mistral
from tests.support.tiny_tokenizers import gpt2_like, llama3_like, sentencepiece_like

PROMPTS = [
    AnswerPrompt("where is it?", ("here", "in the north", "s1 = late parcel, of the galaxy phone")),
    AnswerPrompt(
        "how heavy is the watch?",
        ("x", "7"),
        (Demonstration("what is it?", "a phone"), Demonstration("when?", "late, on 3 May")),
    ),
    AnswerPrompt("why?", ("because",), (Demonstration("who?", "nobody at all " * 8),)),
    AnswerPrompt("why?", ("é", "ﬁ 日本", "at the end", "here"), (Demonstration("a", "b"),)),
]
#: Largest allowed difference between batched and single scores in float32.
TOLERANCE = 2e-3


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return tiny_mistral(1, initializer_range=0.4)


def logprobs_of(scorer: ModelScorer, prompts: list[AnswerPrompt]) -> list[list[float]]:
    likelihoods = dict(scorer.score(prompts))
    assert sorted(likelihoods) == list(range(len(prompts)))
    return [[score.logprob for score in likelihoods[index]] for index in range(len(prompts))]


def near(scores: list[list[float]], expected: list[list[float]]) -> bool:
    pairs = zip(chain.from_iterable(scores), chain.from_iterable(expected), strict=True)
    return all(abs(a - b) < TOLERANCE for a, b in pairs)


@pytest.mark.parametrize("batch_tokens", [1, 150, 4096])
def test_batched_scores_equal_those_of_reading_each_prompt_alone(
    model: LanguageModel, batch_tokens: int
) -> None:
    scorer = ModelScorer(model, batch_tokens=batch_tokens)
    expected = [[answer_logprob(model, p, answer) for answer in p.answers] for p in PROMPTS]
    values = [number for row in expected for number in row]
    assert max(values) - min(values) > 50, "the model gives all answers the same score"
    assert near(logprobs_of(scorer, PROMPTS), expected)


def test_scores_with_a_sliding_window_equal_those_without_reuse() -> None:
    narrow = tiny_mistral(2, sliding_window=24, initializer_range=0.4)
    expected = [[answer_logprob(narrow, p, answer) for answer in p.answers] for p in PROMPTS]
    assert near(logprobs_of(ModelScorer(narrow), PROMPTS), expected)
    full = tiny_mistral(2, sliding_window=None, initializer_range=0.4)
    assert not near(logprobs_of(ModelScorer(full), PROMPTS), expected), "the window hides nothing"


@pytest.fixture(scope="module")
def without_masks() -> LanguageModel:
    """Return an equal model that refuses masks of four dimensions, so it reads prompts singly."""
    model = tiny_mistral(1, initializer_range=0.4)
    forward = model.network.forward

    def forward_without_masks(**inputs: Any) -> Any:
        mask = inputs.get("attention_mask")
        if mask is not None and mask.dim() == 4:
            raise ValueError("Only masks of two dimensions.")
        return forward(**inputs)

    model.network.forward = forward_without_masks
    return model


def test_network_without_custom_masks_gives_the_same_scores(
    model: LanguageModel, without_masks: LanguageModel
) -> None:
    expected = logprobs_of(ModelScorer(model), PROMPTS)
    assert near(logprobs_of(ModelScorer(without_masks), PROMPTS), expected)


@pytest.mark.parametrize(
    ("tokenizer", "begins"),
    [(gpt2_like, False), (llama3_like, True), (sentencepiece_like, True)],
    ids=["gpt2", "llama3", "sentencepiece"],
)
def test_scores_use_the_tokens_of_the_whole_text_with_every_tokenizer(
    tokenizer: Callable[[], Any], *, begins: bool
) -> None:
    built = tokenizer()
    network = tiny_mistral(3, vocab=max(512, len(built)), initializer_range=0.4).network
    model = LanguageModel("other", network, built)
    expected = [
        [answer_logprob(model, p, a, begins=begins) for a in p.answers] for p in PROMPTS[:3]
    ]
    assert near(logprobs_of(ModelScorer(model), PROMPTS[:3]), expected)


def test_special_token_in_an_answer_is_scored_as_text(model: LanguageModel) -> None:
    end_token = model.tokenizer.eos_token_id
    (likelihoods,) = dict(ModelScorer(model).score([AnswerPrompt("a", ("</s>",))])).values()
    ids = [model.tokenizer.bos_token_id, *model.tokenizer("Q: a\nA:")["input_ids"]]
    as_end = sum_logprobs(model, [*ids, end_token], len(ids))
    assert likelihoods[0].tokens > 1
    assert abs(likelihoods[0].logprob - as_end) > 0.1


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
    model: LanguageModel, without_masks: LanguageModel, pairs: list[tuple[str, list[str]]]
) -> None:
    prompts = [AnswerPrompt(question, tuple(answers)) for question, answers in pairs]
    shared, separate = (ModelScorer(network, batch_tokens=64) for network in (model, without_masks))
    assert near(logprobs_of(shared, prompts), logprobs_of(separate, prompts))


def test_answers_that_share_a_context_need_fewer_tokens(model: LanguageModel) -> None:
    scorer = ModelScorer(model)
    answers = tuple(f"about {n}" for n in range(8))
    question = "how long is it?" * 5
    separate = [AnswerPrompt(question, (answer,)) for answer in answers]
    assert scorer.tokens([AnswerPrompt(question, answers)]) * 4 < scorer.tokens(separate)


def test_score_keys_differ_by_weights_contexts_and_answers(model: LanguageModel) -> None:
    equal_model = tiny_mistral(1, initializer_range=0.4)
    other = tiny_mistral(2, initializer_range=0.4)
    scorers = [ModelScorer(network) for network in (model, equal_model, other)]
    first_key, same_key, other_key = (scorer.key(PROMPTS[0]) for scorer in scorers)
    assert first_key == same_key
    assert len({first_key, other_key, *map(scorers[0].key, PROMPTS[1:4])}) == 5


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (AnswerPrompt("a", ()), "has no answers"),
        (AnswerPrompt("a", ("",)), "no text"),
        (AnswerPrompt("a", (" \n",)), "no text"),
        (AnswerPrompt("long " * 4000, ("x",)), "Show fewer demonstrations"),
    ],
    ids=["no answer", "empty", "blank", "too long"],
)
def test_scorer_refuses_empty_answers_and_too_long_prompts(
    model: LanguageModel, prompt: AnswerPrompt, message: str
) -> None:
    scorer = ModelScorer(model)
    with pytest.raises(InputError, match=message):
        list(scorer.score([prompt]))
    with pytest.raises(InputError, match=message):
        scorer.tokens([prompt])
