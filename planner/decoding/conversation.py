"""A sequence that a model reads and extends: a prompt, a plan, and what may follow it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain, zip_longest
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.planner.decoding.kv_cache import KVCache
from casewright.planner.decoding.limits import DecodingLimits
from casewright.planner.decoding.matcher import Choose, Matcher, greedy
from casewright.planner.decoding.prefix_tree import PrefixTree, read_tree
from casewright.planner.decoding.writing import PartialPlan, Written

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Reads tokens behind what a cache holds; returns the logits at positions. See ``steps.read``.
Read = Callable[[KVCache, Sequence[int], DecodingLimits, Sequence[int]], NDArray[np.float32]]


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

    def read_tree(self, texts: Sequence[Sequence[int]], limits: DecodingLimits) -> PrefixTree:
        """Read texts that may follow, in one call of the network; none of them is added.

        Raises:
            DecodingError: The deadline passed.
        """
        limits.check_time()
        start = self._cache.length
        tree = read_tree(self._model, self._cache, self._unread, texts)
        *before, last = self._unread
        self._cache.set_length(start + len(before))
        self._unread = [last]
        return tree

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
