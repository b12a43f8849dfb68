"""One sequence that a model reads and writes on: a prompt, a plan, and what may come after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.planner.decoding.choice import Choose, greedy
from casewright.planner.decoding.limits import Limits
from casewright.planner.decoding.room import Room
from casewright.planner.decoding.writing import Writing
from casewright.planner.decoding.written import Written

if TYPE_CHECKING:
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.language_model import LanguageModel

#: Reads tokens behind what a room holds; see ``steps.read``.
Read = Callable[[Room, Sequence[int], Limits], NDArray[np.float32]]


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
        self, matcher: Matcher, *, limits: Limits | None = None, choose: Choose = greedy
    ) -> Written:
        """Write until the matcher is at its end.

        Tokens that nothing else could stand for are read together with the next one that is
        chosen, or with the rest of the prompt: they take no step of their own.

        Raises:
            DecodingError: A limit was met first, or the sequence is longer than the model reads.
            GrammarError: The model's tokens cannot write what must come next.
        """
        limits = limits or Limits()
        writing = Writing(self._model, matcher, self.length, limits, choose)
        self._unread += writing.begin()
        while not writing.ended:
            logits = self._read(self._room, self._unread, limits)
            self._unread = writing.go_on(logits)
        return writing.written(head_reused=self._head_reused)
