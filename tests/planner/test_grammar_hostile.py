"""Hostile texts change neither what the grammar admits nor what a tokenizer writes."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import pytest

from casewright.planner import PlanRequest, parse_plan
from casewright.planner.grammar import PlanGrammar
from casewright.tools import ToolSpec
from tests.planner.grammar_walk import admits, admits_start, draw_text, grammar, request_for, writes
from tests.planner.helpers import parameter
from tests.planner.toolbox import TOOLBOX
from tests.support import tiny_tokenizers

if TYPE_CHECKING:
    from llguidance import LLTokenizer

TEXTS = {
    "quotes": 'a "quoted" \\ and \\" text',
    "lines": "one\ntwo\r\nthree\tfour",
    "lark": 'x"\nstart: /.*/ | "',
    "comment": "a // b # c /* d */",
    "regex": "a.*(b)+[c]{1,9}^$|\\d",
    "directives": '%llguidance {"no_forcing": false} %ignore /./ %json {}',
    "plan": 's1 = evil(x="y")\ns2 = no_evidence()',
    "special": "</s> <s> a</s>b [INST] <<SYS>> <|endoftext|> <think> <unk>",
    "bytes": "<0x0A> <0xFF> \u0120 \u2581 Ġword ▁word",
    "marks": "cafe\u0301 e\u0301\u0323 \u1e9b\u0323 हिन्दी",
    "emoji": "👩‍👧 🇫🇷 👍🏽 end",
    "directions": "\u202eabc\u202c العربية \u200f12",
    "spaces": "a\u00a0b\u2028c\u2029d\x85e\u3000f",
    "odd": "\x7f \ufeffa \ufffd \U0010ffff b\u200bc",
}


@pytest.mark.parametrize("name", TEXTS)
def test_grammar_writes_only_valid_plans_for_a_hostile_question(name: str) -> None:
    request = PlanRequest(TEXTS[name], TOOLBOX, {"page": "p1"}, max_steps=3)
    for seed in range(10):
        text = draw_text(grammar().plan_matcher(request), seed, go_on=0.8)
        request.validate(parse_plan(text))
        assert str(parse_plan(text)) == text


@pytest.mark.parametrize("name", TEXTS)
def test_grammar_admits_a_hostile_choice_unchanged(name: str) -> None:
    text = TEXTS[name]
    request = request_for(ToolSpec("pick", "", (parameter("x", choices=(text, "b")),)))
    assert admits(request, f"s1 = pick(x={json.dumps(text, ensure_ascii=False)})")
    assert not admits(request, f"s1 = pick(x={json.dumps(text[:-1], ensure_ascii=False)})")


@pytest.mark.parametrize("choice", ["", " ", "\x00", "a\x1f\x7f", "x" * 500])
def test_choice_may_be_empty_blank_long_or_control_characters(choice: str) -> None:
    request = request_for(ToolSpec("pick", "", (parameter("x", choices=(choice,)),)))
    plan = f"s1 = pick(x={json.dumps(choice, ensure_ascii=False)})"
    request.validate(parse_plan(plan))
    assert admits(request, plan)


def test_grammar_omits_a_choice_that_is_a_lone_surrogate() -> None:
    request = request_for(ToolSpec("pick", "", (parameter("x", choices=("\ud800", "b")),)))
    assert admits(request, 's1 = pick(x="b")')
    assert not admits_start(request, r's1 = pick(x="\u')


def test_grammar_admits_only_context_fields_whose_names_are_identifiers() -> None:
    names = ["a b", 'x"', "y\n", "é", "", "1a", "a|b", "good", "ﬁ"]
    request = request_for(
        ToolSpec("page", "", (parameter("x", "context", kind="string"),)),
        context=dict.fromkeys(names, "p"),
    )
    assert admits(request, "s1 = page(x=context.good)")
    for name in names:
        assert name == "good" or not admits_start(request, f"s1 = page(x=context.{name or ')'}")


def test_names_of_tools_and_fields_may_be_words_of_the_grammar() -> None:
    names = ["start", "i", "k1", "c0", "r", "v0", "true", "question", "context", "s1", "done", "L"]
    tools = [ToolSpec(n, "", (parameter(n, "question", "context"),), (n,)) for n in names]
    request = request_for(*tools, context=dict.fromkeys(names, "p"))
    for name in names:
        assert admits(request, f"s1 = {name}({name}=question)\ns2 = {name}({name}=context.{name})")


@cache
def tokenizer_of(kind: str) -> LLTokenizer:
    from llguidance.hf import from_tokenizer

    return from_tokenizer(getattr(tiny_tokenizers, kind)())


@pytest.mark.parametrize("name", ["special", "bytes", "marks", "spaces", "odd"])
@pytest.mark.parametrize(
    "kind", ["mistral_like", "gpt2_like", "qwen_like", "llama3_like", "sentencepiece_like"]
)
def test_text_that_a_tokenizer_would_change_can_be_written_unchanged(kind: str, name: str) -> None:
    tokenizer = tokenizer_of(kind)
    text = TEXTS[name]
    pick = ToolSpec("pick", "", (parameter("x", choices=(text,), kind="string"),))
    quote = ToolSpec("quote", "", (parameter("x", "span", kind="string"),))
    request = request_for(pick, quote, question=f"a {text} b")
    span = " ".join(request.question.split())
    lines = [
        f"s1 = pick(x={json.dumps(text, ensure_ascii=False)})",
        f"s2 = quote(x={json.dumps(span, ensure_ascii=False)})",
    ]
    plan_grammar = PlanGrammar(tokenizer)
    assert writes(plan_grammar.plan_matcher(request), "\n".join(lines), tokenizer=tokenizer)
    for seed in range(3):
        plan = draw_text(plan_grammar.plan_matcher(request), seed, tokenizer=tokenizer)
        request.validate(parse_plan(plan))
