"""Writing under a grammar without a model: random allowed tokens, or those of a given text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from casewright.errors import GrammarError
from casewright.planner import PlanRequest
from casewright.planner.grammar import PlanGrammar, PlanMatcher
from casewright.tools import Toolbox, ToolSpec
from tests.support.tiny_mistral import byte_level_tokenizer

if TYPE_CHECKING:
    from llguidance import LLTokenizer

#: Ends of texts, lists and calls. They are drawn more often, to keep the texts short.
ENDS = (b'"', b")", b"]")
QUESTION = "Do you sell red wool socks?"


@cache
def byte_tokenizer() -> LLTokenizer:
    """Return a byte-level tokenizer."""
    from llguidance.hf import from_tokenizer

    return from_tokenizer(byte_level_tokenizer())


@cache
def grammar() -> PlanGrammar:
    return PlanGrammar(byte_tokenizer())


def request_for(*tools: ToolSpec, question: str = QUESTION, **more: Any) -> PlanRequest:
    return PlanRequest(question, Toolbox(tools), **more)


def draw_text(
    matcher: PlanMatcher, seed: int, *, go_on: float = 0.5, tokenizer: LLTokenizer | None = None
) -> str:
    """Return a text written by drawing among the allowed tokens.

    Args:
        matcher: Consumes the text.
        seed: Seed of the draws.
        go_on: Probability of another token where the text may end.
        tokenizer: The matcher's tokenizer; by default ``byte_tokenizer()``.
    """
    draw = random.Random(seed)
    tokenizer = tokenizer or byte_tokenizer()
    written: list[int] = []
    while True:
        written += matcher.consume_forced()
        if matcher.finished or (matcher.accepting and draw.random() > go_on):
            return tokenizer.decode_bytes(written).decode()
        # Grouped by first byte, as one tool's name may start with more tokens than another's.
        tokens_by_byte: dict[bytes, list[int]] = {}
        for token in matcher.allowed().tolist():
            if token not in tokenizer.eos_tokens:
                tokens_by_byte.setdefault(tokenizer.decode_bytes([token])[:1], []).append(token)
        if len(tokens_by_byte) > 1 and draw.random() < 0.7:
            # No_evidence has no arguments to test.
            tokens_by_byte.pop(b"n", None)
        ends = [byte for byte in ENDS if byte in tokens_by_byte]
        byte = draw.choice(ends if ends and draw.random() < 0.2 else sorted(tokens_by_byte))
        token = draw.choice(tokens_by_byte[byte])
        matcher.consume(token)
        written.append(token)


def writes(matcher: PlanMatcher, text: str, *, tokenizer: LLTokenizer | None = None) -> bool:
    """Return whether forced tokens and the longest allowed ones write the text."""
    tokenizer = tokenizer or byte_tokenizer()
    rest = text.encode()
    while True:
        forced = tokenizer.decode_bytes(matcher.consume_forced())
        if not rest.startswith(forced):
            return False
        rest = rest.removeprefix(forced)
        if not rest:
            return matcher.accepting
        texts = {token: tokenizer.decode_bytes([token]) for token in matcher.allowed().tolist()}
        texts = {
            token: written
            for token, written in texts.items()
            if token not in tokenizer.eos_tokens and rest.startswith(written)
        }
        if not texts:
            return False
        token = max(texts, key=lambda token: len(texts[token]))
        matcher.consume(token)
        rest = rest.removeprefix(texts[token])


def consume(matcher: PlanMatcher, text: str) -> bool:
    """Consume the start of a plan; return whether the matcher allowed all of it."""
    try:
        for token in byte_tokenizer().greedy_tokenize(text):
            matcher.consume(token)
    except GrammarError:
        return False
    return True


def admits(request: PlanRequest, plan: str) -> bool:
    """Return whether the grammar admits the whole plan."""
    matcher = grammar().plan_matcher(request)
    return consume(matcher, plan) and matcher.accepting


def admits_start(request: PlanRequest, text: str) -> bool:
    """Return whether the grammar admits a plan that starts with the text."""
    return consume(grammar().plan_matcher(request), text)


def admits_step(request: PlanRequest, earlier: Sequence[str], line: str) -> bool:
    """Return whether the line may follow earlier steps that call these tools."""
    matcher = grammar().line_matcher(request, earlier)
    return consume(matcher, line) and matcher.accepting
