"""A local model without the grammar: an invalid plan is reported and replaced by a fallback."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

from casewright.errors import GrammarError
from casewright.planner import ModelPlanner, PlanRequest, parse_plan, render_prompt
from casewright.planner.decoding import Decoder, DecodingLimits, greedy
from casewright.planner.decoding.free_matcher import FreeMatcher, text_and_end_tokens
from casewright.planner.language_model import LanguageModel
from casewright.planner.request import MAX_WRITTEN_CHARACTERS
from tests.planner.fixed_text_model import model_writing
from tests.planner.helpers import SHOP
from tests.support.tiny_mistral import tiny_mistral

QUESTIONS = (
    "How heavy is the wool tent that I bought?",
    "Do you sell lamps?",
    "Can I return opened boxes, and is this one waterproof?",
)
TOKENS = 40


@pytest.fixture(scope="module")
def mistral() -> LanguageModel:
    return tiny_mistral(3, initializer_range=0.3)


def plan_request(question: str = QUESTIONS[0]) -> PlanRequest:
    return PlanRequest(question, SHOP, {"product_id": "p1"}, max_steps=3)


def transformers_tokens(model: LanguageModel, request: PlanRequest) -> list[int]:
    """Return the tokens that transformers' own greedy decoding writes."""
    prompt = model.encode(render_prompt(request))
    input_ids = torch.tensor([[*prompt.head, *prompt.tail]])
    text_ids = set(text_and_end_tokens(model).tolist())
    network: Any = model.network
    sequences = network.generate(
        input_ids=input_ids,
        attention_mask=torch.ones_like(input_ids),
        do_sample=False,
        max_new_tokens=TOKENS,
        eos_token_id=list(model.ends),
        pad_token_id=model.ends[0],
        suppress_tokens=[id_ for id_ in range(512) if id_ not in text_ids],
    )
    new_tokens: list[int] = sequences[0, input_ids.shape[1] :].tolist()
    return [token for token in new_tokens if token not in model.ends]


def fixed_text_model(text: str, *, ends: bool = True) -> LanguageModel:
    return model_writing(text, plan_request(), ends=ends)


def test_decoder_without_a_grammar_equals_greedy_decoding_of_transformers(
    mistral: LanguageModel,
) -> None:
    decoder = Decoder(mistral)
    for question in QUESTIONS:
        request, matcher = plan_request(question), FreeMatcher(text_and_end_tokens(mistral))
        prompt = mistral.encode(render_prompt(request))
        tokens: list[int] = []

        def until_enough(logits: Any, matcher: Any, tokens: list[int] = tokens) -> int:
            # A limit raises an error where transformers stops.
            if len(tokens) == TOKENS:
                return mistral.ends[0]
            tokens.append(greedy(logits, matcher))
            return tokens[-1]

        written = decoder.write(prompt, matcher, choose=until_enough)
        assert list(written.tokens) == transformers_tokens(mistral, request)
        assert matcher.tokens == list(written.tokens)
        assert written.forced == 0
        assert len(written.tokens) > 10


def test_text_that_is_no_plan_is_kept_beside_the_fallback_plan(
    mistral: LanguageModel,
) -> None:
    planner = ModelPlanner(mistral, constrained=False, tokens=TOKENS)
    result = planner.plan(plan_request())
    assert planner.name == f"model:{mistral.name}, grammar off"
    assert result.fallback.startswith(f"{planner.name}: ")
    assert (result.planner, result.attempts) == ("fallback", 2)
    plan_request().validate(result.plan)
    assert result.written
    # The text includes the token beyond the limit.
    assert result.written.startswith(mistral.decode(transformers_tokens(mistral, plan_request())))


def test_looping_model_stops_at_the_token_limit_and_keeps_its_text() -> None:
    looping = fixed_text_model("s1 = find(query=question)!", ends=False)
    result = ModelPlanner(looping, constrained=False, tokens=50).plan(plan_request())
    assert "The plan was not finished within 50 tokens" in result.fallback
    assert result.written.startswith("s1 = find(query=question)!!!!!")
    assert len(looping.encode_plan(result.written)) == 51


def test_written_text_is_cut_to_the_maximum_of_characters() -> None:
    looping = fixed_text_model("question", ends=False)
    result = ModelPlanner(looping, constrained=False, tokens=520).plan(plan_request())
    assert len(result.written) == MAX_WRITTEN_CHARACTERS


def test_looping_model_stops_at_the_deadline_and_keeps_its_text() -> None:
    started = time.perf_counter()
    looping = fixed_text_model("question", ends=False)
    planner = ModelPlanner(looping, constrained=False, tokens=3000, seconds=0.5)
    result = planner.plan(plan_request())
    assert time.perf_counter() - started < 10
    assert "The plan was not finished in time" in result.fallback
    assert result.written


@pytest.mark.parametrize(
    "text",
    ["s1 = find(query=question)", "The plan is:\n\ns1 = find(query=question)\n\nThat is all."],
    ids=["alone", "amid other lines"],
)
def test_valid_plan_without_a_grammar_is_returned_without_fallback(text: str) -> None:
    result = ModelPlanner(fixed_text_model(text), constrained=False).plan(plan_request())
    assert (result.fallback, result.written) == ("", "")
    assert result.planner.endswith(", grammar off")
    assert result.plan == parse_plan("s1 = find(query=question)")
    assert result.tokens["forced"] == 0
    assert result.tokens["output"] + 1 == result.tokens["model_steps"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("s1 = teleport(query=question)", "teleport"),
        ('s1 = fact(item_id="p7", query=question)', "item_id"),
        ("", "no step"),
        ("I would look for lamps.", "s1"),
    ],
    ids=["a tool that is not there", "an invented id", "nothing", "prose"],
)
def test_fallback_reason_names_the_rule_that_an_invalid_plan_breaks(text: str, rule: str) -> None:
    result = ModelPlanner(fixed_text_model(text), constrained=False).plan(plan_request())
    assert rule in result.fallback
    assert result.written == text
    assert str(result.plan) == "s1 = find(query=question)"
    assert result.tokens["output"] == len(fixed_text_model(text).encode_plan(text))


def test_plan_many_without_a_grammar_writes_the_same_as_plan(mistral: LanguageModel) -> None:
    planner = ModelPlanner(mistral, constrained=False, tokens=TOKENS, batch=2)
    requests = [plan_request(question) for question in QUESTIONS]
    batch = planner.plan_many(requests)
    single = [planner.plan(request) for request in requests]
    assert [result.written for result in batch] == [result.written for result in single]
    assert len({result.written for result in single}) == len(QUESTIONS)


def test_free_matcher_accepts_only_text_and_end_tokens(mistral: LanguageModel) -> None:
    allowed = text_and_end_tokens(mistral)
    assert set(mistral.ends) <= set(allowed.tolist())
    others = sorted(set(range(512)) - set(allowed.tolist()))
    assert mistral.tokenizer.bos_token_id in others
    matcher = FreeMatcher(allowed)
    for token in (others[0], others[-1], 10**6, -1):
        with pytest.raises(GrammarError, match="is not text"):
            matcher.consume(token)
    assert matcher.tokens == []


def test_token_limit_applies_to_each_text_of_a_batch(mistral: LanguageModel) -> None:
    decoder = Decoder(mistral)
    prompts = [mistral.encode(render_prompt(plan_request(question))) for question in QUESTIONS]
    matchers = [FreeMatcher(text_and_end_tokens(mistral)) for _ in QUESTIONS]
    outputs = decoder.write_many(prompts, matchers, limits=DecodingLimits(tokens=5))
    assert [len(matcher.tokens) for matcher in matchers] == [6] * len(QUESTIONS)
    assert all(isinstance(output, Exception) for output in outputs)
