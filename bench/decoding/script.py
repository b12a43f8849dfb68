"""Plans that are realistic although weights are random: the model computes, a script chooses.

Random weights write nonsense of any length. So a system writes an annotated query's own plan: at
each step the network's logits are computed, and the likeliest of the allowed tokens is looked for
as in greedy decoding; what is written is the longest allowed token that goes on with that plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.errors import GrammarError
from casewright.planner.decoding import Choose, greedy

if TYPE_CHECKING:
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.grammar import PlanMatcher
    from casewright.planner.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class Script:
    """How a model writes one text under a grammar.

    Attributes:
        tokens: The text's, without the one that ends it.
        choices: Those of them that are chosen, in order, with the one that ends the text where
            ending it is a choice.
    """

    tokens: tuple[int, ...]
    choices: tuple[int, ...]

    def choose(self) -> Choose:
        """Return what makes these choices, once, in the time that greedy decoding takes."""
        left: Iterator[int] = iter(self.choices)

        def follow(logits: NDArray[np.float32], matcher: Matcher) -> int:
            greedy(logits, matcher)
            return next(left)

        return follow


class ScriptWriter:
    """Finds how one model writes texts.

    Args:
        model: Whose tokens.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._ends = model.ends
        self._decode = model.grammar_tokenizer.decode_bytes
        # Several tokens may stand for the same bytes.
        self._tokens: dict[bytes, list[int]] = {}
        for token in sorted(model.tokenizer.get_vocab().values()):
            if token not in self._ends:
                self._tokens.setdefault(self._decode([token]), []).append(token)
        self._longest = max(map(len, self._tokens))

    def script(self, matcher: PlanMatcher, text: str, *, forced: bool = True) -> Script:
        """Find how a text is written.

        Args:
            matcher: Of the text's grammar; it is used up.
            text: What is to be written.
            forced: Whether tokens that nothing else could stand for are written without a choice.

        Raises:
            GrammarError: The grammar cannot write this text.
        """
        left = text.encode()
        tokens: list[int] = []
        choices: list[int] = []
        while True:
            new = matcher.forced() if forced else []
            if not left.startswith(written := self._decode(new)):
                raise GrammarError(f"The grammar writes {written[:40]!r}, not {left[:40]!r}.")
            tokens += new
            left = left[len(written) :]
            if matcher.finished or not left:
                break
            token = self._longest_start(matcher.allowed(), left)
            matcher.consume(token)
            choices.append(token)
            tokens.append(token)
            left = left[len(self._decode([token])) :]
        if left or not matcher.accepting:
            raise GrammarError(f"The grammar does not end a plan where {text[:40]!r} ends.")
        if not (forced and matcher.finished):
            choices.append(self._ends[0])
        return Script(tuple(tokens), tuple(choices))

    def _longest_start(self, allowed: NDArray[np.intp], text: bytes) -> int:
        """Return the longest of the allowed tokens that a text starts with."""
        for length in range(min(self._longest, len(text)), 0, -1):
            for token in self._tokens.get(text[:length], ()):
                # Ascending, as they come.
                place = int(np.searchsorted(allowed, token))
                if place < len(allowed) and allowed[place] == token:
                    return token
        raise GrammarError(f"The grammar cannot write {text[:40]!r}.")
