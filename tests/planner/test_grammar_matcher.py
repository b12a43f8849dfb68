"""The plan matcher: allowed, forced and refused tokens, the end of a plan, and single lines."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from casewright.errors import GrammarError, InputError
from casewright.planner import PlanRequest
from casewright.planner.grammar import PlanGrammar, PlanMatcher
from casewright.planner.grammar.matcher import compile_grammar
from casewright.tools import ToolSpec
from tests.planner.grammar_walk import (
    admits_step,
    byte_tokenizer,
    consume,
    draw_text,
    grammar,
    request_for,
    writes,
)
from tests.planner.helpers import SHOP, parameter
from tests.planner.toolbox import CONTEXT, TOOLBOX
from tests.support.tiny_mistral import byte_level_tokenizer

FIND = ToolSpec("find", "", (parameter("q", "literal", "question"),), ("item_id", "title"))
READ = ToolSpec("read", "", (parameter("item_id", "step"),), ("evidence",))
(END,) = byte_tokenizer().eos_tokens


def decode(tokens: list[int]) -> str:
    return byte_tokenizer().decode_bytes(tokens).decode()


def matcher_after(text: str, request: PlanRequest | None = None) -> PlanMatcher:
    matcher = grammar().plan_matcher(request or request_for(FIND, READ))
    assert consume(matcher, text)
    return matcher


def test_consume_forced_returns_the_only_possible_continuation() -> None:
    assert decode(matcher_after("").consume_forced()) == "s1 ="
    assert decode(matcher_after("s1 = f").consume_forced()).startswith("ind(q")
    matcher = matcher_after("s1 = find(q=question)\ns2 = read")
    assert decode(matcher.consume_forced()).startswith("(item_id=")
    assert not matcher.consume_forced()


def test_matcher_accepts_allowed_tokens_and_refuses_all_others() -> None:
    matcher = matcher_after("s1 = ")
    allowed = matcher.allowed().tolist()
    assert allowed == sorted(set(allowed))
    assert {decode([token])[0] for token in allowed} == {"f", "n"}
    for token in range(byte_tokenizer().vocab_size):
        if token not in allowed:
            with pytest.raises(GrammarError, match=f"Token {token} cannot come next"):
                matcher.consume(token)
    for token in (-1, byte_tokenizer().vocab_size, 10**9):
        with pytest.raises(GrammarError, match=f"There is no token {token}"):
            matcher.consume(token)
    assert matcher.allowed().tolist() == allowed
    for token in allowed:
        matcher_after("s1 = ").consume(token)


@pytest.mark.parametrize("size", [1, 100, byte_tokenizer().vocab_size, 5000])
def test_mask_of_allowed_tokens_has_the_requested_size(size: int) -> None:
    matcher = matcher_after("s1 = ")
    mask = matcher.mask(size)
    assert mask.shape == (size,)
    assert mask.dtype == np.bool_
    assert np.flatnonzero(mask).tolist() == [t for t in matcher.allowed().tolist() if t < size]


def test_a_plan_may_end_after_each_line_and_nowhere_else() -> None:
    plan = "s1 = find(q=question)\ns2 = no_evidence()"
    for size in range(len(plan) + 1):
        matcher = matcher_after(plan[:size])
        assert matcher.accepting == (plan[:size].endswith(")"))
        assert (END in matcher.allowed()) == matcher.accepting
        assert not matcher.finished


def test_matcher_is_finished_after_the_last_step_or_an_end_token() -> None:
    request = request_for(FIND, max_steps=1)
    matcher = matcher_after("s1 = find(q=question)", request)
    assert matcher.accepting
    assert matcher.finished
    assert matcher.consume_forced() == []
    after_end = matcher_after("s1 = find(q=question)")
    after_end.consume(END)
    assert after_end.finished


def test_plan_has_more_than_two_forced_tokens_per_chosen_token() -> None:
    request = PlanRequest("Do you sell red wool socks?", SHOP, {"product_id": "p1"})
    plan = "s1 = own(query=question)\ns2 = fact(item_id=s1.item_id, query=question)"
    matcher = grammar().plan_matcher(request)
    forced = chosen = 0
    text = ""
    while text != plan:
        tokens = matcher.consume_forced()
        forced += len(tokens)
        text += decode(tokens)
        assert plan.startswith(text)
        if text != plan:
            candidates = [t for t in matcher.allowed().tolist() if t != END]
            fitting = [t for t in candidates if plan.startswith(decode([t]), len(text))]
            token = max(fitting, key=lambda t: len(decode([t])))
            matcher.consume(token)
            chosen += 1
            text += decode([token])
    assert forced > 2 * chosen


def test_every_end_token_of_a_model_may_end_a_plan() -> None:
    from llguidance.hf import from_tokenizer

    two_ends = from_tokenizer(byte_level_tokenizer(), eos_token=[1, 2])
    matcher = PlanGrammar(two_ends).plan_matcher(request_for(max_steps=1))
    for token in two_ends.greedy_tokenize("s1 = no_evidence()"):
        assert not {1, 2} & set(matcher.allowed().tolist())
        matcher.consume(token)
    assert matcher.allowed().tolist() == [1, 2]
    assert matcher.finished


def test_line_matcher_admits_references_to_the_earlier_steps_only() -> None:
    request = request_for(FIND, READ)
    assert admits_step(request, [], "s1 = find(q=question)")
    assert not admits_step(request, [], "s1 = read(item_id=s1.title)")
    earlier = ["find", "read"]
    for line in ("s3 = read(item_id=s1.title)", "s3 = read(item_id=s2[3].evidence)", "done"):
        assert admits_step(request, earlier, line), line
    for line in (
        *("s3 = read(item_id=s2.title)", "s3 = read(item_id=s1.evidence)", "s2 = no_evidence()"),
        *("s3 = read(item_id=s3.evidence)", "s3 = find(q=question)\n", "done\n", "s3 = done"),
    ):
        assert not admits_step(request, earlier, line), line


def test_line_matcher_refuses_done_first_and_forces_it_after_max_steps() -> None:
    request = request_for(FIND, max_steps=2)
    assert not consume(grammar().line_matcher(request, []), "d")
    assert admits_step(request, ["find"], "done")
    last = grammar().line_matcher(request, ["find", "find"])
    assert decode(last.consume_forced()) == "done"
    assert last.finished


def test_line_matcher_refuses_earlier_steps_of_an_unknown_tool() -> None:
    with pytest.raises(InputError, match="calls gone, which is no tool of this request"):
        grammar().line_matcher(request_for(FIND), ["find", "gone"])


def test_grammar_that_cannot_be_compiled_raises_grammar_error() -> None:
    with pytest.raises(GrammarError, match="use another planner"):
        compile_grammar(byte_tokenizer(), "start: (")


def test_tokenizer_that_cannot_write_a_plan_raises_grammar_error() -> None:
    from llguidance import LLTokenizer
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    # Its vocabulary has no brackets.
    pieces = ["</s>", *"abcdefghijklmnopqrstuvwxyz0123456789_=", "Ġ"]
    bpe = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, []))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens(["</s>"])
    letters = LLTokenizer(bpe.to_str(), eos_token=0)
    matcher = PlanGrammar(letters).plan_matcher(request_for(FIND))
    with pytest.raises(GrammarError, match="every byte"):
        draw_text(matcher, 0, tokenizer=letters)


def test_grammar_gives_several_threads_the_same_plans_as_one() -> None:
    shared = PlanGrammar(byte_tokenizer(), cache_size=2)
    page = TOOLBOX.without("words", "many")  # Without spans, its grammar stays compiled.
    requests = [
        PlanRequest(f"Do you sell {word}?", toolbox, CONTEXT, max_steps=3)
        for word in ("socks", "tents")
        for toolbox in (TOOLBOX, SHOP, page)
    ]

    def draw_plans(number: int) -> list[str]:
        return [draw_text(shared.plan_matcher(requests[number % 6]), seed) for seed in range(3)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            concurrent = list(pool.map(draw_plans, range(24)))
    finally:
        sys.setswitchinterval(interval)
    assert concurrent == [draw_plans(number) for number in range(24)]


def test_drawn_plan_can_be_written_again_with_forced_tokens() -> None:
    request = PlanRequest('Do you sell "red" socks?', TOOLBOX, CONTEXT)
    for seed in range(20):
        plan = draw_text(grammar().plan_matcher(request), seed, go_on=0.8)
        assert writes(grammar().plan_matcher(request), plan)
