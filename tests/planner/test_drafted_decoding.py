"""Decoding with a draft writes the same tokens as without one, in fewer steps."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.planner import (
    ModelPlanner,
    Plan,
    PlanRequest,
    PlanResult,
    parse_plan,
    render_prompt,
)
from casewright.planner.decoding import Choose, Decoder, DecodingLimits, Written, greedy
from casewright.planner.decoding.draft import continuation
from casewright.planner.decoding.free_matcher import FreeMatcher, text_and_end_tokens
from casewright.planner.grammar import PlanGrammar
from casewright.planner.language_model import LanguageModel
from tests.planner.fixed_text_model import model_writing
from tests.planner.helpers import SHOP
from tests.support.examples import at_most
from tests.support.tiny_mistral import tiny_mistral

QUESTIONS = (
    "Where is the blue tent that I ordered?",
    "Is my phone waterproof, and what do buyers say of its battery?",
    "Käse für 3 Euro?",
)
#: Length of a text without a grammar, which has no other end.
TOKENS = 25
PLAN = 's1 = own(query="blue tent")\ns2 = fact(item_id=s1.item_id, query=question)'
LINES = (
    's1 = find(query="tent")',
    "s2 = desk(query=question)",
    "s3 = no_evidence()",
    "\n",
    "s1 = ",
)


class FixedPlanner:
    """Returns the same plan for every request, or fails."""

    name = "fixed"

    def __init__(self, plan: Plan | None) -> None:
        self.draft = plan

    def plan(self, request: PlanRequest) -> PlanResult:
        if self.draft is None:
            raise RuntimeError("It has none.")
        return PlanResult(self.draft, self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return self.plan(request)


@cache
def mistral() -> LanguageModel:
    return tiny_mistral(3, initializer_range=0.3)


@cache
def decoder() -> Decoder:
    return Decoder(mistral())


def request(question: str = QUESTIONS[0]) -> PlanRequest:
    return PlanRequest(question, SHOP, {"item_id": "P1"}, max_steps=3)


def limited_choice() -> Choose:
    """Return a greedy choice that ends a text after ``TOKENS`` tokens."""
    tokens: list[int] = []

    def choose(logits: Any, matcher: Any) -> int:
        tokens.append(greedy(logits, matcher) if len(tokens) < TOKENS else mistral().ends[0])
        return tokens[-1]

    return choose


def write_with_draft(question: str, draft: str, *, grammar: bool) -> Written:
    model = mistral()
    prompt = model.encode(render_prompt(request(question)))
    if grammar:
        matcher = PlanGrammar(model.grammar_tokenizer).plan_matcher(request(question))
        return decoder().write(prompt, matcher, draft=draft)
    free = FreeMatcher(text_and_end_tokens(model))
    return decoder().write(prompt, free, choose=limited_choice(), draft=draft)


@cache
def write_without_draft(question: str, grammar: bool) -> tuple[Written, str]:
    """Return the tokens written without a draft, and their text."""
    result = write_with_draft(question, "", grammar=grammar)
    return result, mistral().decode(result.tokens)


@st.composite
def drafts(draw: st.DrawFn, right: str) -> str:
    """Draw a draft: right, half right, too long, of another plan, of no plan, or empty."""
    start = draw(st.integers(0, len(right)))
    end = draw(st.integers(start, len(right)))
    other = draw(st.text(max_size=12) | st.lists(st.sampled_from(LINES), max_size=4).map("\n".join))
    parts = {"before": right[:start], "other": other, "after": right[end:], "again": right}
    return "".join(
        draw(
            st.lists(st.sampled_from(sorted(parts)), max_size=4).map(
                lambda names: [parts[name] for name in names]
            )
        )
    )


@settings(max_examples=at_most(50), deadline=None)
@given(st.data(), st.sampled_from(QUESTIONS), st.booleans())
def test_any_draft_leaves_the_written_plan_unchanged(
    data: st.DataObject, question: str, grammar: bool
) -> None:
    undrafted, text = write_without_draft(question, grammar)
    result = write_with_draft(question, data.draw(drafts(text)), grammar=grammar)
    assert result.tokens == undrafted.tokens
    assert result.forced == undrafted.forced
    assert result.model_steps + result.drafted == undrafted.model_steps


@pytest.mark.parametrize("grammar", [True, False], ids=["grammar", "no grammar"])
def test_correct_draft_needs_at_most_two_model_steps(grammar: bool) -> None:
    model = model_writing(PLAN, request())
    results = {
        draft: ModelPlanner(
            model, constrained=grammar, draft=FixedPlanner(parse_plan(PLAN)) if draft else None
        ).plan(request())
        for draft in (True, False)
    }
    assert all(str(result.plan) == PLAN and not result.fallback for result in results.values())
    assert results[True].tokens["model_steps"] <= 2
    assert results[False].tokens["model_steps"] > 8
    steps = results[True].tokens["model_steps"] + results[True].tokens["drafted"]
    assert steps == results[False].tokens["model_steps"]


@pytest.mark.parametrize(
    "draft",
    [
        's1 = own(query="tent")\ns2 = fact(item_id=s1.item_id, query=question)',
        's1 = find(query="blue tent")\ns2 = fact(item_id=s1.item_id, query=question)',
        f"{PLAN}\ns3 = desk(query=question)",
    ],
    ids=["another value", "another tool", "a step more"],
)
def test_draft_continues_after_a_part_that_the_model_wrote_differently(draft: str) -> None:
    model = model_writing(PLAN, request())
    result = ModelPlanner(model, draft=FixedPlanner(parse_plan(draft))).plan(request())
    undrafted = ModelPlanner(model).plan(request())
    assert result.plan == undrafted.plan == parse_plan(PLAN)
    assert result.tokens["model_steps"] <= undrafted.tokens["model_steps"] / 2


@pytest.mark.parametrize(
    "plan",
    [None, parse_plan("s1 = teleport(query=question)"), parse_plan('s1 = own(query="red lamp")')],
    ids=["it fails", "an unknown tool", "no span of the question"],
)
def test_failed_or_invalid_plan_is_not_used_as_a_draft(plan: Plan | None) -> None:
    model = model_writing(PLAN, request())
    result = ModelPlanner(model, draft=FixedPlanner(plan)).plan(request())
    assert (str(result.plan), result.fallback, result.tokens["drafted"]) == (PLAN, "", 0)


def test_draft_does_not_exceed_the_limit_of_tokens() -> None:
    model = model_writing(PLAN, request())
    length = len(model.encode_plan(PLAN))
    for tokens in (5, length - 1, length):
        result = ModelPlanner(model, tokens=tokens, draft=FixedPlanner(parse_plan(PLAN))).plan(
            request()
        )
        assert bool(result.fallback) == (tokens < length)


def test_draft_continues_after_the_longest_end_of_the_text_it_contains() -> None:
    draft = 'a = f(x="one")\nb = g(x="two")'
    assert continuation(draft, "") == draft
    assert continuation(draft, "a = f") == draft[5:]
    assert continuation(draft, 'a = h(x="three")\nb = ') == 'g(x="two")'
    assert continuation(draft, 'b = g(x="') == 'two")'
    # After a difference the draft continues line by line.
    assert continuation(draft, 'c = f(x="one') == '")'
    assert continuation(draft, 'c = f(x="one")') == draft[len('a = f(x="one")') :]
    assert continuation(draft, "nothing of it") == ""
    assert continuation("", "a") == continuation("", "") == ""


def test_plan_of_exactly_the_token_limit_is_written_with_a_draft() -> None:
    undrafted, text = write_without_draft(QUESTIONS[0], True)
    model = mistral()
    prompt = model.encode(render_prompt(request()))
    matcher = PlanGrammar(model.grammar_tokenizer).plan_matcher(request())
    limits = DecodingLimits(tokens=len(undrafted.tokens))
    assert decoder().write(prompt, matcher, limits=limits, draft=text).tokens == undrafted.tokens
