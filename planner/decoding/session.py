"""A token sequence that alternates between prompts and texts written by the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, zip_longest

from casewright.planner.decoding.kv_cache import KVCache
from casewright.planner.decoding.limits import DecodingLimits
from casewright.planner.decoding.matcher import Choose, Matcher, greedy
from casewright.planner.decoding.prefix_tree import PrefixTree, read_tree
from casewright.planner.decoding.steps import read
from casewright.planner.decoding.writing import PartialPlan, Written
from casewright.planner.language_model import LanguageModel


@dataclass(slots=True, eq=False)
class DecodingSession:
    """A token sequence whose key/value states stay cached while it grows."""

    _model: LanguageModel
    _cache: KVCache
    _prefix_cached: bool
    _unread: list[int] = field(default_factory=list)

    def feed(self, tokens: Sequence[int]) -> None:
        """Append tokens; the next ``write`` or ``read_tree`` reads them."""
        self._unread += tokens

    def read_tree(
        self, continuations: Sequence[Sequence[int]], limits: DecodingLimits
    ) -> PrefixTree:
        """Return a tree of alternative continuations, read in one call; append none of them.

        Raise ``DecodingError`` if the deadline has passed.
        """
        limits.check_time()
        start = self._cache.length
        tree = read_tree(self._model, self._cache, self._unread, continuations)
        # The unread tokens have been read. The last one is read again later, for the next logits.
        self._cache.set_length(start + len(self._unread) - 1)
        self._unread = self._unread[-1:]
        return tree

    def write(
        self,
        matcher: Matcher,
        *,
        limits: DecodingLimits | None = None,
        choose: Choose = greedy,
        draft: str = "",
    ) -> Written:
        """Write until the matcher is finished or the model chooses an end token.

        Forced tokens and accepted tokens of a draft take no forward pass of their own: the model
        reads them with other tokens. For ``draft`` see ``Decoder.write``.

        Raises:
            DecodingError: A limit was reached, or the sequence exceeds the model's context.
            GrammarError: The model's tokens cannot write the required text.
        """
        limits = limits or DecodingLimits()
        length = self._cache.length + len(self._unread)
        plan = PartialPlan(self._model, matcher, length, limits, choose)
        drafted_count = 0
        self._unread += plan.begin()
        while not plan.is_ended:
            drafted_count += self._step(plan, plan.proposals(draft), limits)
        return plan.written(prefix_cached=self._prefix_cached, drafted_count=drafted_count)

    def _step(
        self, plan: PartialPlan, proposals: Sequence[list[int]], limits: DecodingLimits
    ) -> int:
        """Read the unread tokens and the draft's proposals; append the model's choices to the plan.

        Stop after the first choice that differs from its proposal. Return the number of accepted
        proposals.
        """
        # Numbers of tokens before each choice. The model chooses after the unread tokens and after
        # each proposal, so there is one choice more than proposals.
        lengths = list(accumulate(map(len, proposals), initial=len(self._unread)))
        tokens = [*self._unread, *chain.from_iterable(proposals)]
        start = self._cache.length
        logits = read(self._model, self._cache, tokens, limits, [n - 1 for n in lengths])
        accepted_count = 0
        for row_logits, proposal in zip_longest(logits, proposals):
            self._unread = plan.extend(row_logits)
            if plan.is_ended or self._unread != proposal:
                break
            accepted_count += 1
        # The states of rejected proposals are dropped.
        self._cache.set_length(start + lengths[accepted_count])
        return accepted_count
