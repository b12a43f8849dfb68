"""Writing under a grammar without a model: by drawing among the allowed tokens, or by a text."""

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

#: What ends texts, lists and calls: drawn more often, or all texts would be as long as they may.
ENDS = (b'"', b")", b"]")
QUESTION = "Do you sell red wool socks?"


@cache
def tokenizer() -> LLTokenizer:
    """Return a byte-level tokenizer."""
    from llguidance.hf import from_tokenizer

    return from_tokenizer(byte_level_tokenizer())


@cache
def grammar() -> PlanGrammar:
    return PlanGrammar(tokenizer())


def request_for(*tools: ToolSpec, question: str = QUESTION, **more: Any) -> PlanRequest:
    return PlanRequest(question, Toolbox(tools), **more)


def drawn(
    matcher: PlanMatcher, seed: int, *, on: float = 0.5, writes: LLTokenizer | None = None
) -> str:
    """Return a text written by drawing among the allowed tokens.

    Args:
        matcher: Is used up.
        seed: Draws the tokens.
        on: How likely it goes on where the text might end.
        writes: The matcher's tokenizer, where it is not ``tokenizer()``.
    """
    draw = random.Random(seed)
    tokens = writes or tokenizer()
    written: list[int] = []
    while True:
        written += matcher.consume_forced()
        if matcher.finished or (matcher.accepting and draw.random() > on):
            return tokens.decode_bytes(written).decode()
        # By their first bytes: there are more ways to cut the name of one tool than of another.
        ways: dict[bytes, list[int]] = {}
        for token in matcher.allowed().tolist():
            if token not in tokens.eos_tokens:
                ways.setdefault(tokens.decode_bytes([token])[:1], []).append(token)
        if len(ways) > 1 and draw.random() < 0.7:
            # No_evidence, which says little; other names are not missed.
            ways.pop(b"n", None)
        ends = [byte for byte in ENDS if byte in ways]
        byte = draw.choice(ends if ends and draw.random() < 0.2 else sorted(ways))
        token = draw.choice(ways[byte])
        matcher.consume(token)
        written.append(token)


def steered(matcher: PlanMatcher, text: str, *, writes: LLTokenizer | None = None) -> bool:
    """Return whether the text can be written, forced tokens taken and others chosen for it."""
    tokens = writes or tokenizer()
    rest = text.encode()
    while True:
        forced = tokens.decode_bytes(matcher.consume_forced())
        if not rest.startswith(forced):
            return False
        rest = rest.removeprefix(forced)
        if not rest:
            return matcher.accepting
        ways = {token: tokens.decode_bytes([token]) for token in matcher.allowed().tolist()}
        ways = {
            token: written
            for token, written in ways.items()
            if token not in tokens.eos_tokens and rest.startswith(written)
        }
        if not ways:
            return False
        token = max(ways, key=lambda way: len(ways[way]))
        matcher.consume(token)
        rest = rest.removeprefix(ways[token])


def follows(matcher: PlanMatcher, text: str) -> bool:
    """Return whether the matcher lets the text be written, as a start at least; consumes it."""
    try:
        for token in tokenizer().greedy_tokenize(text):
            matcher.consume(token)
    except GrammarError:
        return False
    return True


def admits(request: PlanRequest, plan: str) -> bool:
    """Return whether the whole plan may be written."""
    matcher = grammar().plan_matcher(request)
    return follows(matcher, plan) and matcher.accepting


def starts(request: PlanRequest, text: str) -> bool:
    """Return whether some plan starts with the text."""
    return follows(grammar().plan_matcher(request), text)


def admits_step(request: PlanRequest, earlier: Sequence[str], line: str) -> bool:
    """Return whether the line may be written after steps that call these tools."""
    matcher = grammar().line_matcher(request, earlier)
    return follows(matcher, line) and matcher.accepting
