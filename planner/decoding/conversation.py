"""A sequence that a model reads and extends: a prompt, a plan, and what may follow it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain, zip_longest
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from casewright.planner.decoding.kv_cache import KVCache
from casewright.planner.decoding.limits import DecodingLimits
from casewright.planner.decoding.matcher import Choose, Matcher, greedy
from casewright.planner.decoding.prefix_tree import log_probabilities
from casewright.planner.decoding.writing import PartialPlan, Written

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Reads tokens behind what a cache holds; returns the logits at positions. See ``steps.read``.
Read = Callable[[KVCache, Sequence[int], DecodingLimits, Sequence[int]], NDArray[np.float32]]


class Mark(NamedTuple):
    """A position in a sequence: the tokens that were read before it, and the one to read next."""

    length: int
    last: int


class Conversation:
    """A sequence whose key/value states stay while it is extended."""

    def __init__(
        self, model: LanguageModel, cache: KVCache, read: Read, *, head_reused: bool
    ) -> None:
        self._model = model
        self._cache = cache
        self._read = read
        self._head_reused = head_reused
        self._unread: list[int] = []

    def feed(self, tokens: Sequence[int]) -> None:
        """Add tokens to the sequence; they are read by the next ``write``."""
        self._unread += tokens

    def mark(self, limits: DecodingLimits) -> Mark:
        """Read what was fed, but for its last token, and return this position.

        Raises:
            DecodingError: The deadline passed.
        """
        *tokens, last = self._unread
        if tokens:
            self._read(self._cache, tokens, limits, [len(tokens) - 1])
        return self.back_to(Mark(self._cache.length, last))

    def back_to(self, mark: Mark) -> Mark:
        """Forget what follows a position."""
        self._cache.set_length(mark.length)
        self._unread = [mark.last]
        return mark

    def log_probabilities(
        self, mark: Mark, texts: Sequence[Sequence[int]], limits: DecodingLimits
    ) -> list[float]:
        """Return the model's log-probability of each text behind a position; no grammar counts.

        One call of the network reads them all, what they have in common once; see ``prefix_tree``.

        Raises:
            DecodingError: The deadline passed.
        """
        limits.check_time()
        self.back_to(mark)
        values = log_probabilities(self._model, self._cache, mark.last, texts)
        self.back_to(mark)
        return values

    def write(
        self,
        matcher: Matcher,
        *,
        limits: DecodingLimits | None = None,
        choose: Choose = greedy,
        draft: str = "",
    ) -> Written:
        """Write until the matcher is finished.

        Forced tokens are read together with the next one that is chosen, or with the rest of the
        prompt: they take no step of their own. Nor do tokens of a draft that are chosen as the
        draft has them; see ``Decoder.write``.

        Raises:
            DecodingError: A limit was met first, or the sequence is longer than the model reads.
            GrammarError: The model's tokens cannot write what must come next.
        """
        limits = limits or DecodingLimits()
        length = self._cache.length + len(self._unread)
        plan = PartialPlan(self._model, matcher, length, limits, choose)
        drafted = 0
        self._unread += plan.begin()
        while not plan.ended:
            drafted += self._step(plan, plan.proposals(draft), limits)
        return plan.written(head_reused=self._head_reused, drafted=drafted)

    def _step(
        self, plan: PartialPlan, proposals: Sequence[list[int]], limits: DecodingLimits
    ) -> int:
        """Read unread tokens and proposals; write while they agree, and one choice more.

        Returns:
            How many choices were written beside the first.
        """
        # Each choice is made after the unread tokens, and after each part of the draft.
        ends = list(accumulate(map(len, proposals), initial=len(self._unread)))
        tokens = [*self._unread, *chain.from_iterable(proposals)]
        start = self._cache.length
        logits = self._read(self._cache, tokens, limits, [end - 1 for end in ends])
        more = 0
        for row, part in zip_longest(logits, proposals):
            self._unread = plan.extend(row)
            if plan.ended or self._unread != part:
                break
            more += 1
        # Proposals that were not written are dropped.
        self._cache.set_length(start + ends[more])
        return more
