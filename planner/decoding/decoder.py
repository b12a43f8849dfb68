"""Plans by a language model under a grammar, one or many at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import CasewrightError, DecodingError, GrammarError
from casewright.planner.decoding.batch import write_together
from casewright.planner.decoding.choice import Choose, greedy
from casewright.planner.decoding.conversation import Conversation, Read
from casewright.planner.decoding.extent import layers, window
from casewright.planner.decoding.fixed_steps import FixedSteps
from casewright.planner.decoding.head_files import HeadFiles
from casewright.planner.decoding.heads import Heads
from casewright.planner.decoding.limits import Limits
from casewright.planner.decoding.room import Room, States
from casewright.planner.decoding.steps import read
from casewright.planner.decoding.turn import turn
from casewright.planner.decoding.written import Written
from casewright.planner.model_limits import HEAD_BYTES, HEAD_FILE_BYTES

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
        head_folder: Where the states of heads are kept between processes, those used last within
            ``HEAD_FILE_BYTES``; ``None`` keeps none. Those of a model without an ``identity``,
            which was not loaded from files, never are.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        head_bytes: int = HEAD_BYTES,
        static: bool | None = None,
        head_folder: Path | None = None,
    ) -> None:
        self._model = model
        self._heads = Heads(head_bytes)
        self._files: HeadFiles | None = None
        if head_folder is not None and model.identity is not None:
            self._files = HeadFiles(head_folder, model, HEAD_FILE_BYTES)
        self._lock = threading.Lock()
        self._read: Read = partial(read, model)
        self._room = Room(layers(model))
        self._in_room: States | None = None
        if static if static is not None else model.device.type == "cuda":
            self._read = FixedSteps(model)
            # A recorded step is bound to the tensors that it was recorded with.
            self._room = Room(layers(model), least=FIXED_COLUMNS)

    @property
    def heads(self) -> Heads:
        """The heads that are kept."""
        return self._heads

    def write(
        self,
        prompt: PromptTokens,
        matcher: Matcher,
        *,
        limits: Limits | None = None,
        choose: Choose = greedy,
        draft: str = "",
    ) -> Written:
        """Write one plan.

        With a draft, the model reads what the draft proposes in one step and keeps what it would
        have chosen itself, so the plan is the one that is written without, in fewer steps. In one
        step logits are summed in another order than in several: where two tokens are as likely to
        the last bits, the other one may be chosen. In float32 that is rare; in bfloat16 it is seen.

        Args:
            prompt: What is read first.
            matcher: Of the plan; it is used up.
            limits: Bounds of the plan.
            choose: Picks a token.
            draft: A plan that may be the one that the model would write.

        Raises:
            DecodingError: A limit was met first, or the prompt is longer than the model reads.
            GrammarError: The model's tokens cannot write what must come next.
        """
        with self.conversation(prompt.head, limits) as conversation:
            conversation.feed(prompt.tail)
            return conversation.write(matcher, limits=limits, choose=choose, draft=draft)

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
        """Return a head's states, and whether they were there."""
        read_anew = False

        def made(tokens: tuple[int, ...]) -> States:
            nonlocal read_anew
            if self._files is not None and (found := self._files.load(tokens)) is not None:
                return found
            read_anew = True
            room = Room(layers(self._model))
            read(self._model, room, tokens, limits)
            states = room.states()
            if self._files is not None:
                self._files.save(tokens, states)
            return states

        states, _ = self._heads.get(tokens, made)
        return states, not read_anew
