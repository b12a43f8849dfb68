"""Plans by a language model under a grammar, one or many at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from casewright.errors import CasewrightError, DecodingError, GrammarError
from casewright.planner.decoding.batch import write_together
from casewright.planner.decoding.choice import Choose, greedy
from casewright.planner.decoding.conversation import Conversation, Read
from casewright.planner.decoding.extent import layers, window
from casewright.planner.decoding.fixed_steps import FixedSteps
from casewright.planner.decoding.heads import Heads
from casewright.planner.decoding.limits import Limits
from casewright.planner.decoding.room import Room, States
from casewright.planner.decoding.steps import read
from casewright.planner.decoding.turn import turn
from casewright.planner.decoding.written import Written
from casewright.planner.model_limits import HEAD_BYTES

if TYPE_CHECKING:
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.language_model import LanguageModel, PromptTokens

#: Columns that steps of fixed form begin with.
FIXED_COLUMNS = 2048


class Decoder:
    """Writes plans with one model; threads take turns.

    Args:
        model: The language model.
        head_bytes: Memory for the key/value states of prompt heads, those used last.
        static: Whether steps have a fixed form, recorded as CUDA graphs on such a device; by
            default they do there.
    """

    def __init__(
        self, model: LanguageModel, *, head_bytes: int = HEAD_BYTES, static: bool | None = None
    ) -> None:
        self._model = model
        self._heads: Heads[States] = Heads(head_bytes)
        self._lock = threading.Lock()
        self._read: Read = partial(read, model)
        self._room = Room(layers(model))
        self._in_room: States | None = None
        if static if static is not None else model.device.type == "cuda":
            self._read = FixedSteps(model)
            # A recorded step is bound to the tensors that it was recorded with.
            self._room = Room(layers(model), least=FIXED_COLUMNS)

    @property
    def heads(self) -> Heads[States]:
        """The heads that are kept."""
        return self._heads

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
        with self.conversation(prompt.head, limits) as conversation:
            conversation.feed(prompt.tail)
            return conversation.write(matcher, limits=limits, choose=choose)

    def write_many(
        self,
        prompts: Sequence[PromptTokens],
        matchers: Sequence[Matcher],
        *,
        limits: Limits | None = None,
        choose: Choose = greedy,
    ) -> list[Written | CasewrightError]:
        """Write a plan for each of several prompts that have one head, in steps that they share.

        Returns:
            For each, what was written, or the ``DecodingError`` or ``GrammarError`` that ended it.

        Raises:
            ValueError: The prompts have several heads.
        """
        if len({prompt.head for prompt in prompts}) > 1:
            raise ValueError("The prompts have several heads; decode those of each together.")
        limits = limits or Limits()
        if not prompts:
            return []
        if self._beyond_window(prompts, limits):
            return [
                self._alone(prompt, matcher, limits, choose)
                for prompt, matcher in zip(prompts, matchers, strict=True)
            ]
        try:
            with turn(self._lock, limits):
                states, reused = self._head(prompts[0].head, limits)
                room = Room(layers(self._model))
                room.load(states, len(prompts))
                tails = [prompt.tail for prompt in prompts]
                return write_together(
                    self._model, room, tails, matchers, limits, choose, head_reused=reused
                )
        except DecodingError as error:
            return [error] * len(prompts)

    def _beyond_window(self, prompts: Sequence[PromptTokens], limits: Limits) -> bool:
        """Say whether attention may not reach back to the beginning.

        A window is counted in columns, and in a batch some of those hold nothing.
        """
        size = window(self._model)
        longest = max(len(prompt.head) + len(prompt.tail) for prompt in prompts)
        return size is not None and longest + limits.tokens > size

    def _alone(
        self, prompt: PromptTokens, matcher: Matcher, limits: Limits, choose: Choose
    ) -> Written | CasewrightError:
        try:
            return self.write(prompt, matcher, limits=limits, choose=choose)
        except (DecodingError, GrammarError) as error:
            return error

    @contextmanager
    def conversation(
        self, head: Sequence[int], limits: Limits | None = None
    ) -> Iterator[Conversation]:
        """Begin a sequence with a head; while it is open, nothing else is written.

        Raises:
            DecodingError: The deadline was over before the head was read.
        """
        limits = limits or Limits()
        with turn(self._lock, limits):
            states, reused = self._head(tuple(head), limits)
            if self._in_room is states:
                self._room.set_length(states.length)
            else:
                self._in_room = None
                self._room.load(states)
                self._in_room = states
            yield Conversation(self._model, self._room, self._read, head_reused=reused)

    def _head(self, tokens: tuple[int, ...], limits: Limits) -> tuple[States, bool]:
        def made(tokens: tuple[int, ...]) -> States:
            room = Room(layers(self._model))
            read(self._model, room, tokens, limits)
            return room.states()

        return self._heads.get(tokens, made)
