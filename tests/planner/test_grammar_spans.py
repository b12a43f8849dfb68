"""The grammar admits as spans exactly the adjacent words of the question."""

from __future__ import annotations

import json
import random
import time

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from casewright.planner import PlanRequest, is_span, parse_plan
from casewright.tools import Toolbox, ToolSpec
from tests.planner.grammar_strategies import HOSTILE, QUESTIONS, is_askable
from tests.planner.grammar_walk import admits, admits_start, consume, draw_text, grammar
from tests.planner.helpers import parameter
from tests.support.examples import at_most

WORDS = ToolSpec("words", "", (parameter("x", "span", kind="string"),))
QUESTION = 'Do you  sell Wool-Blend socks (size 42), or the "Barber\'s\\Pride" trimmer?'


def span_request(question: str) -> PlanRequest:
    return PlanRequest(question, Toolbox([WORDS]))


def admits_span(span: str, question: str = QUESTION) -> bool:
    text = json.dumps(span, ensure_ascii=False)
    return admits(span_request(question), f"s1 = words(x={text})")


@pytest.mark.parametrize(
    "span",
    [
        *("Do", "you sell", "Wool-Blend socks", "Blend", "size 42", "42), or", "the", "s"),
        *('the "Barber', "Barber's\\Pride", 'Pride" trimmer', "trimmer", "socks (size 42), or the"),
    ],
)
def test_grammar_admits_a_span_of_adjacent_words_of_the_question(span: str) -> None:
    assert is_span(span, QUESTION)
    assert admits_span(span)


def test_grammar_refuses_an_empty_span() -> None:
    assert not admits_start(span_request(QUESTION), 's1 = words(x=""')
    assert not admits_span(" ")


@pytest.mark.parametrize("span", ["ock", "socks (siz", "ell", "arber", "4", "Woo", "lend socks"])
def test_grammar_refuses_a_span_that_cuts_a_word(span: str) -> None:
    assert not admits_span(span)


@pytest.mark.parametrize(
    "span", ["socks (", "(size 42", "trimmer?", "-Blend", '"Barber', "\\", ","]
)
def test_grammar_refuses_punctuation_at_the_ends_of_a_span(span: str) -> None:
    assert not admits_span(span)


@pytest.mark.parametrize(
    "span", ["Do sell", "you Wool", "socks you", "trimmer Do", "boots", "you sell "]
)
def test_grammar_refuses_a_span_of_words_that_are_not_adjacent(span: str) -> None:
    assert not admits_span(span)


def test_span_is_escaped_as_in_json() -> None:
    request = span_request('say "a\\b" and\tc\u2028d')
    assert admits(request, r's1 = words(x="say \"a\\b\" and c d")')
    for text in (r'"say "', r'"say \"a\b', r'"say \"a\\\\b', r'"and\tc"', r'"say \u0022a'):
        assert not admits_start(request, f"s1 = words(x={text}"), text


def test_span_keeps_the_letter_case_of_the_question() -> None:
    assert admits_span("Wool")
    assert not admits_span("wool")


def test_span_includes_the_combining_marks_of_its_words() -> None:
    question = "a cafe\u0301 table क्या हिन्दी किताबें"
    assert admits_span("cafe\u0301", question)
    assert admits_span("हिन्दी किताबें", question)
    assert not admits_span("cafe", question)
    assert not admits_span("हिन", question)


def test_span_does_not_end_at_or_cross_a_mark_without_a_letter() -> None:
    question = "a.\u0300b\u0300 c"
    assert admits_span("b\u0300 c", question)
    for span in ("a.\u0300", "a.\u0300b", "a.\u0300b\u0300", "\u0300b\u0300", "a."):
        assert not admits_span(span, question)


@pytest.mark.parametrize(
    "question", ["ŉa ǰb", "İstanbul İ", "ﬁne ΐ ΰ", "ᾳ \u0345 ᾳ", "Straße ẞ", "ΣΟΦΟΣ σοφος"]
)
def test_letters_with_a_longer_case_folding_do_not_shift_spans(question: str) -> None:
    for word in question.split():
        assert admits_span(word, question) == is_span(word, question)
    for seed in range(8):
        request = span_request(question)
        request.validate(parse_plan(draw_text(grammar().plan_matcher(request), seed, go_on=0.8)))


def test_spans_of_a_long_question_end_at_a_bound_between_words() -> None:
    request = span_request("first " + "longword" * 12 + " " + "longerword " * 400)
    assert admits(request, f's1 = words(x="first {"longword" * 12} longerword")')
    assert admits_start(request, f's1 = words(x="{"longerword " * 10}longerword')
    assert not admits_start(request, f's1 = words(x="{"longerword " * 10}longerword ')
    assert not admits_start(request, f's1 = words(x="first {"longword" * 12} longerword l')
    long_word = span_request("first " + "x" * 1990 + "lastword")
    assert admits(long_word, 's1 = words(x="first")')
    assert not admits_start(long_word, 's1 = words(x="x')
    many_words = span_request("one " + "two " * 255 + "three")
    assert admits(many_words, 's1 = words(x="one two")')
    assert not admits_start(many_words, 's1 = words(x="th')
    assert not admits_start(span_request("x" * 8000), "s1 = w")


def test_grammar_of_a_long_question_is_built_within_200_ms() -> None:
    request = span_request("a b, " * 1600)
    grammar().plan_matcher(request)
    started = time.thread_time()
    grammar().plan_matcher(request)
    assert time.thread_time() - started < 0.2


@settings(max_examples=at_most(60), deadline=None)
@given(QUESTIONS | st.text(HOSTILE, min_size=1, max_size=12).filter(is_askable), st.integers(0, 99))
@example("\u0301a b\u0301", 0)
@example("a.\u0300b\u0300 c", 1)
@example("ᾳ\u0345 \u0345ᾳ", 2)
def test_grammar_admits_exactly_the_spans_of_the_question(question: str, seed: int) -> None:
    request = span_request(question)
    if consume(grammar().plan_matcher(request), "s1 = w"):
        plan = draw_text(grammar().plan_matcher(request), seed, go_on=0.3)
        request.validate(parse_plan(plan))
        assert str(parse_plan(plan)) == plan
    plain = " ".join(question.split())
    indexes = range(len(plain))
    runs = [plain[start : end + 1] for start in indexes for end in indexes[start:]]
    draw = random.Random(seed)
    spans = [run for run in runs if run == run.strip() and is_span(run, question)]
    for run in draw.sample(runs, min(3, len(runs))):
        assert run in spans or not admits_span(run, question)
    if not regex.search(r"(?<![\w\p{M}])\p{M}", plain):
        for span in draw.sample(spans, min(3, len(spans))):
            # The grammar may admit only one of two occurrences that differ in case.
            if plain.casefold().count(span.casefold()) == 1:
                assert admits_span(span, question)
