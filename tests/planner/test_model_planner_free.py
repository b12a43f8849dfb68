"""A local model without its grammar: it writes what it likes, and what is no plan is told."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

from casewright.errors import GrammarError
from casewright.planner import ModelPlanner, PlanRequest, parse_plan, render_prompt
from casewright.planner.decoding import Decoder, DecodingLimits, greedy
from casewright.planner.decoding.free_matcher import FreeMatcher, text_tokens
from casewright.planner.language_model import LanguageModel
from casewright.planner.request import MAX_WRITTEN_CHARACTERS
from tests.planner.helpers import SHOP
from tests.planner.wanting import model_writing
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


def asked(question: str = QUESTIONS[0]) -> PlanRequest:
    return PlanRequest(question, SHOP, {"product_id": "p1"}, max_steps=3)


def generated(model: LanguageModel, request: PlanRequest) -> list[int]:
    """Return what transformers' own greedy decoding writes."""
    prompt = model.encode(render_prompt(request))
    read = torch.tensor([[*prompt.head, *prompt.tail]])
    kept = set(text_tokens(model).tolist())
    network: Any = model.network
    made = network.generate(
        input_ids=read,
        attention_mask=torch.ones_like(read),
        do_sample=False,
        max_new_tokens=TOKENS,
        eos_token_id=list(model.ends),
        pad_token_id=model.ends[0],
        suppress_tokens=[id_ for id_ in range(512) if id_ not in kept],
    )
    new: list[int] = made[0, read.shape[1] :].tolist()
    return [token for token in new if token not in model.ends]


def writing(text: str, *, ends: bool = True) -> LanguageModel:
    return model_writing(text, asked(), ends=ends)


def test_without_a_grammar_it_writes_what_transformers_own_greedy_decoding_writes(
    mistral: LanguageModel,
) -> None:
    decoder = Decoder(mistral)
    for question in QUESTIONS:
        request, matcher = asked(question), FreeMatcher(text_tokens(mistral))
        prompt = mistral.encode(render_prompt(request))
        own: list[int] = []

        def until_enough(logits: Any, matcher: Any, own: list[int] = own) -> int:
            # A limit would raise where transformers' stops.
            if len(own) == TOKENS:
                return mistral.ends[0]
            own.append(greedy(logits, matcher))
            return own[-1]

        made = decoder.write(prompt, matcher, choose=until_enough)
        assert list(made.tokens) == generated(mistral, request)
        assert matcher.tokens == list(made.tokens)
        assert made.forced == 0
        assert len(made.tokens) > 10


def test_what_is_no_plan_is_kept_word_for_word_and_the_fallback_answers(
    mistral: LanguageModel,
) -> None:
    planner = ModelPlanner(mistral, constrained=False, tokens=TOKENS)
    result = planner.plan(asked())
    assert planner.name == f"model:{mistral.name}, grammar off"
    assert result.fallback.startswith(f"{planner.name}: ")
    assert (result.planner, result.attempts) == ("fallback", 2)
    asked().validate(result.plan)
    assert result.written
    # The token that passed the limit is told as well.
    assert result.written.startswith(mistral.decode(generated(mistral, asked())))


def test_a_model_that_loops_ends_by_the_limit_with_what_it_wrote() -> None:
    looping = writing("s1 = find(query=question)!", ends=False)
    result = ModelPlanner(looping, constrained=False, tokens=50).plan(asked())
    assert "The plan was not finished within 50 tokens" in result.fallback
    assert result.written.startswith("s1 = find(query=question)!!!!!")
    assert len(looping.encode_plan(result.written)) == 51


def test_of_a_long_text_so_many_characters_are_kept() -> None:
    looping = writing("question", ends=False)
    result = ModelPlanner(looping, constrained=False, tokens=520).plan(asked())
    assert len(result.written) == MAX_WRITTEN_CHARACTERS


def test_a_deadline_ends_it_too() -> None:
    started = time.perf_counter()
    looping = writing("question", ends=False)
    planner = ModelPlanner(looping, constrained=False, tokens=3000, seconds=0.5)
    result = planner.plan(asked())
    assert time.perf_counter() - started < 10
    assert "The plan was not finished in time" in result.fallback
    assert result.written


@pytest.mark.parametrize(
    "text",
    ["s1 = find(query=question)", "The plan is:\n\ns1 = find(query=question)\n\nThat is all."],
    ids=["alone", "amid other lines"],
)
def test_a_valid_plan_is_the_models_own(text: str) -> None:
    result = ModelPlanner(writing(text), constrained=False).plan(asked())
    assert (result.fallback, result.written) == ("", "")
    assert result.planner.endswith(", grammar off")
    assert result.plan == parse_plan("s1 = find(query=question)")
    assert result.tokens["forced"] == 0
    assert result.tokens["output"] + 1 == result.tokens["model_steps"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s1 = teleport(query=question)", "teleport"),
        ('s1 = fact(item_id="p7", query=question)', "item_id"),
        ("", "no step"),
        ("I would look for lamps.", "s1"),
    ],
    ids=["a tool that is not there", "an invented id", "nothing", "prose"],
)
def test_an_invalid_plan_is_told_with_the_rule_that_it_breaks(text: str, why: str) -> None:
    result = ModelPlanner(writing(text), constrained=False).plan(asked())
    assert why in result.fallback
    assert result.written == text
    assert str(result.plan) == "s1 = find(query=question)"
    assert result.tokens["output"] == len(writing(text).encode_plan(text))


def test_plans_for_many_are_those_of_each_alone(mistral: LanguageModel) -> None:
    planner = ModelPlanner(mistral, constrained=False, tokens=TOKENS, batch=2)
    requests = [asked(question) for question in QUESTIONS]
    together = planner.plan_many(requests)
    alone = [planner.plan(request) for request in requests]
    assert [one.written for one in together] == [one.written for one in alone]
    assert len({one.written for one in alone}) == len(QUESTIONS)


def test_only_tokens_of_text_and_ends_can_be_written(mistral: LanguageModel) -> None:
    allowed = text_tokens(mistral)
    assert set(mistral.ends) <= set(allowed.tolist())
    others = sorted(set(range(512)) - set(allowed.tolist()))
    assert mistral.tokenizer.bos_token_id in others
    matcher = FreeMatcher(allowed)
    for token in (others[0], others[-1], 10**6, -1):
        with pytest.raises(GrammarError, match="is not text"):
            matcher.consume(token)
    assert matcher.tokens == []


def test_a_limit_of_tokens_holds_for_each_text_of_a_batch(mistral: LanguageModel) -> None:
    decoder = Decoder(mistral)
    prompts = [mistral.encode(render_prompt(asked(question))) for question in QUESTIONS]
    matchers = [FreeMatcher(text_tokens(mistral)) for _ in QUESTIONS]
    made = decoder.write_many(prompts, matchers, limits=DecodingLimits(tokens=5))
    assert [len(matcher.tokens) for matcher in matchers] == [6] * len(QUESTIONS)
    assert all(isinstance(one, Exception) for one in made)
