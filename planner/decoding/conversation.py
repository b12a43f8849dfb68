"""One sequence that a model reads and writes on: a prompt, a plan, and what may come after it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain, zip_longest
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from casewright.planner.decoding.choice import Choose, greedy
from casewright.planner.decoding.draft import Draft
from casewright.planner.decoding.limits import Limits
from casewright.planner.decoding.room import Room
from casewright.planner.decoding.writing import Writing
from casewright.planner.decoding.written import Written

if TYPE_CHECKING:
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.language_model import LanguageModel


class Read(Protocol):
    """Reads tokens behind what a room holds; see ``steps.read``."""

    def __call__(
        self,
        room: Room,
        tokens: Sequence[int],
        limits: Limits,
        places: Sequence[int] | None = None,
    ) -> NDArray[np.float32]:
        """Return the logits after the places."""


class Conversation:
    """A sequence whose key/value states stay while it goes on.

    Args:
        model: Writes.
        room: Holds the states of what was read.
        read: How tokens are read.
        head_reused: Whether the states of the head were there already.
    """

    def __init__(
        self, model: LanguageModel, room: Room, read: Read, *, head_reused: bool = False
    ) -> None:
        self._model = model
        self._room = room
        self._read = read
        self._head_reused = head_reused
        self._unread: list[int] = []

    @property
    def length(self) -> int:
        """Tokens of the sequence."""
        return self._room.length + len(self._unread)

    def feed(self, tokens: Sequence[int]) -> None:
        """Add tokens to the sequence; they are read when something is written next."""
        self._unread += tokens

    def write(
        self,
        matcher: Matcher,
        *,
        limits: Limits | None = None,
        choose: Choose = greedy,
        draft: str = "",
    ) -> Written:
        """Write until the matcher is at its end.

        Tokens that nothing else could stand for are read together with the next one that is
        chosen, or with the rest of the prompt: they take no step of their own. Nor do those of a
        draft that are chosen as it has them; see ``Decoder.write``.

        Raises:
            DecodingError: A limit was met first, or the sequence is longer than the model reads.
            GrammarError: The model's tokens cannot write what must come next.
        """
        limits = limits or Limits()
        writing = Writing(self._model, matcher, self.length, limits, choose)
        own, drafted = Draft(self._model, draft), 0
        self._unread += writing.begin()
        while not writing.ended:
            drafted += self._step(writing, writing.proposed(own), limits)
        return writing.written(head_reused=self._head_reused, drafted=drafted)

    def _step(self, writing: Writing, proposed: Sequence[list[int]], limits: Limits) -> int:
        """Read what is unread and what is proposed; write as far as they agree, and a choice more.

        Returns:
            How many choices were written beside the first.
        """
        # Where each choice is made: after what is unread, and after each part of the draft.
        ends = list(accumulate(map(len, proposed), initial=len(self._unread)))
        tokens = [*self._unread, *chain.from_iterable(proposed)]
        start = self._room.length
        logits = self._read(self._room, tokens, limits, [end - 1 for end in ends])
        more = 0
        for row, part in zip_longest(logits, proposed):
            self._unread = writing.go_on(row)
            if writing.ended or self._unread != part:
                break
            more += 1
        # What was proposed and not written is forgotten.
        self._room.set_length(start + ends[more])
        return more
