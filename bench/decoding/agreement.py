"""Whether the decoder writes what masked greedy decoding writes, where nothing guides the model.

Both choose the likeliest token that the grammar admits. They part where the grammar forces a text:
the decoder writes it in tokens of its own, without asking the model, which may have cut it another
way. From there on the model has read other tokens, and may choose otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from casewright.bench.decoding.generate import Generation
from casewright.bench.decoding.turns import slow_progress
from casewright.planner import AnnotatedQuery, render_prompt
from casewright.planner.decoding import Decoder

if TYPE_CHECKING:
    from casewright.planner import PlanRequest
    from casewright.planner.grammar import PlanGrammar, PlanMatcher
    from casewright.planner.language_model import LanguageModel
    from casewright.tools import Toolbox

#: Steps of a plan: random weights would not end it earlier.
STEPS = 2


@dataclass(frozen=True, slots=True)
class Agreement:
    """How plans of the decoder and of masked greedy decoding compare.

    Attributes:
        plans: How many were compared.
        same_tokens: Those that are alike token by token.
        same_text: Those that are the same plan.
        explained: Those whose first other token stands in a text that the grammar forced, cut
            another way.
        unexplained: Those that differ elsewhere.
    """

    plans: int
    same_tokens: int
    same_text: int
    explained: int
    unexplained: int


def compare_greedy(
    model: LanguageModel,
    grammar: PlanGrammar,
    toolbox: Toolbox,
    queries: Sequence[AnnotatedQuery],
) -> Agreement:
    """Plan for each query by the decoder and by masked ``generate``, both of them greedy.

    Both are given the key/value states of the prompt's head.

    Args:
        model: Best in float32: rounded numbers are equal more often.
        grammar: Of its plans.
        toolbox: The tools.
        queries: What is asked.
    """
    generation, decoder = Generation(model), Decoder(model)
    states = None
    own_text, ends = [], []
    with slow_progress("Decoding greedily", len(queries)) as advance:
        for query in queries:
            request = replace(query.record.request(toolbox), max_steps=STEPS)
            prompt = model.encode(render_prompt(request))
            if states is None:
                states = generation.head_states(prompt.head)
            own = decoder.write(prompt, grammar.plan(request)).tokens
            other = generation.masked(prompt, grammar.plan(request), deepcopy(states))
            own_text.append(model.decode(own) == model.decode(other))
            ends.append(first_difference(model, grammar, request, own, other))
            advance(1)
    return Agreement(
        plans=len(queries),
        same_tokens=ends.count("none"),
        same_text=sum(own_text),
        explained=ends.count("forced"),
        unexplained=ends.count("chosen"),
    )


def first_difference(
    model: LanguageModel,
    grammar: PlanGrammar,
    request: PlanRequest,
    own: Sequence[int],
    other: Sequence[int],
) -> str:
    """Say where a plan of the decoder first differs from another one of the same request.

    Args:
        model: Whose tokens.
        grammar: Of its plans.
        request: What both plan for.
        own: The decoder's tokens.
        other: The other plan's.

    Returns:
        ``none``; ``forced``, where the decoder wrote a text that nothing else could stand for and
        the other token is a piece of that text, or begins with its rest; else ``chosen``.
    """
    pairs = zip(own, other, strict=False)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    if same == len(own) == len(other):
        return "none"
    if same == min(len(own), len(other)):
        return "chosen"
    rest = _forced_from(grammar.plan(request), own, same)
    forced = model.grammar_tokenizer.decode_bytes(list(rest))
    piece = model.grammar_tokenizer.decode_bytes([other[same]])
    alike = bool(forced) and (forced.startswith(piece) or piece.startswith(forced))
    return "forced" if alike else "chosen"


def _forced_from(matcher: PlanMatcher, tokens: Sequence[int], place: int) -> Sequence[int]:
    """Return what of the tokens, from a place on, was written in one go without a choice."""
    at = 0
    while True:
        at += len(matcher.forced())
        if at > place:
            return tokens[place:at]
        if at == place:
            return ()
        matcher.consume(tokens[at])
        at += 1
