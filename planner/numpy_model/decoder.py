"""Writes plans with a network that NumPy computes, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from casewright.errors import CasewrightError
from casewright.planner.decoding.choice import Choose, greedy
from casewright.planner.decoding.heads import Heads
from casewright.planner.decoding.limits import Limits
from casewright.planner.decoding.turn import turn
from casewright.planner.decoding.writing import Writing
from casewright.planner.decoding.written import Written
from casewright.planner.model_limits import HEAD_BYTES
from casewright.planner.numpy_model.states import NumpyStates

if TYPE_CHECKING:
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.language_model import PromptTokens
    from casewright.planner.numpy_model.model import NumpyModel

#: Tokens that are read in one call, so that a deadline is looked at in a long prompt too.
CHUNK = 512


class NumpyDecoder:
    """What ``Decoder`` is for a network of PyTorch; threads take turns.

    Args:
        model: The model.
        head_bytes: Memory for the key/value states of prompt heads, those used last.
    """

    def __init__(self, model: NumpyModel, *, head_bytes: int = HEAD_BYTES) -> None:
        self._model = model
        self._heads: Heads[NumpyStates] = Heads(head_bytes)
        self._lock = threading.Lock()
        self._pools = ThreadpoolController()

    def write(
        self,
        prompt: PromptTokens,
        matcher: Matcher,
        *,
        limits: Limits | None = None,
        choose: Choose = greedy,
    ) -> Written:
        """Write one plan.

        Raises:
            DecodingError: A limit was met first, or the prompt is longer than the model reads.
            GrammarError: The model's tokens cannot write what must come next.
        """
        limits = limits or Limits()
        # Matrices this small gain nothing by a second thread, and where another process has the
        # core, the first spins until it comes.
        with turn(self._lock, limits), self._pools.limit(limits=1, user_api="blas"):
            return self._write(prompt, matcher, limits, choose)

    def write_many(
        self,
        prompts: Sequence[PromptTokens],
        matchers: Sequence[Matcher],
        *,
        limits: Limits | None = None,
        choose: Choose = greedy,
    ) -> list[Written | CasewrightError]:
        """Write a plan for each prompt; for each, what was written, or the error that ended it."""
        made: list[Written | CasewrightError] = []
        for prompt, matcher in zip(prompts, matchers, strict=True):
            try:
                made.append(self.write(prompt, matcher, limits=limits, choose=choose))
            except CasewrightError as error:
                made.append(error)
        return made

    def _write(
        self, prompt: PromptTokens, matcher: Matcher, limits: Limits, choose: Choose
    ) -> Written:
        length = len(prompt.head) + len(prompt.tail)
        writing = Writing(self._model, matcher, length, limits, choose)
        unread = [*prompt.tail, *writing.begin()]

        def made(head: tuple[int, ...]) -> NumpyStates:
            states = self._model.network.states()
            if head:
                self._read(head, states, limits)
            return states

        kept, reused = self._heads.get(prompt.head, made)
        states = kept.copy()
        while not writing.ended:
            logits = self._read(unread, states, limits, matcher.allowed())
            unread = writing.go_on(logits)
        return writing.written(head_reused=reused)

    def _read(
        self,
        tokens: Sequence[int],
        states: NumpyStates,
        limits: Limits,
        asked: NDArray[np.intp] | None = None,
    ) -> NDArray[np.float32]:
        for start in range(0, len(tokens), CHUNK):
            limits.check_time()
            logits = self._model.network.read(tokens[start : start + CHUNK], states, asked)
        return logits
