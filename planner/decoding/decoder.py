"""Constrained decoding of one plan or of a batch of plans."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import CasewrightError, DecodingError, GrammarError
from casewright.planner.decoding.batch import write_together
from casewright.planner.decoding.conversation import Conversation, Read
from casewright.planner.decoding.fixed_steps import FixedSteps
from casewright.planner.decoding.kv_cache import KVCache, States, attention_window, layer_count
from casewright.planner.decoding.limits import DecodingLimits
from casewright.planner.decoding.matcher import Choose, Matcher, greedy
from casewright.planner.decoding.prefix_cache import PrefixCache, PrefixFiles
from casewright.planner.decoding.steps import read
from casewright.planner.decoding.writing import Written
from casewright.planner.model_limits import HEAD_BYTES, HEAD_FILE_BYTES

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel, PromptTokens

#: Initial number of cache columns for steps of fixed shape.
FIXED_COLUMNS = 2048


class Decoder:
    """Writes plans with a model. Thread-safe; one thread at a time decodes.

    Args:
        head_bytes: Memory for the key/value states of prompt prefixes, the most recently used.
        static: Use steps of fixed shape, on a GPU as CUDA graphs; by default only on a GPU.
        head_folder: Folder in which processes share the states of prefixes, up to
            ``HEAD_FILE_BYTES``; not used if it is ``None`` or the model has no ``identity``.

    Attributes:
        prefixes: The prefixes in memory.
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
        self.prefixes = PrefixCache(head_bytes)
        self._files: PrefixFiles | None = None
        if head_folder is not None and model.identity is not None:
            self._files = PrefixFiles(head_folder, model, HEAD_FILE_BYTES)
        self._lock = threading.Lock()
        self._layers = layer_count(model)
        self._read: Read = partial(read, model)
        self._cache = KVCache(self._layers)
        self._loaded: States | None = None
        if static if static is not None else model.device.type == "cuda":
            self._read = FixedSteps(model)
            # A CUDA graph is bound to the tensors of its recording.
            self._cache = KVCache(self._layers, min_columns=FIXED_COLUMNS)

    def write(
        self,
        prompt: PromptTokens,
        matcher: Matcher,
        *,
        limits: DecodingLimits | None = None,
        choose: Choose = greedy,
        draft: str = "",
    ) -> Written:
        """Write one plan.

        With a draft (speculative decoding), the model reads the draft's tokens in one step and
        keeps those that it would choose itself, so the plan is the same, in fewer steps. Since the
        order of floating-point sums differs, another token may be chosen if two are almost equally
        probable: rarely in float32, sometimes in bfloat16.

        Raises:
            DecodingError: A limit was reached, or the prompt exceeds the model's context.
            GrammarError: The model's tokens cannot write the required text.
        """
        with self.conversation(prompt.head, limits) as conversation:
            conversation.feed(prompt.tail)
            return conversation.write(matcher, limits=limits, choose=choose, draft=draft)

    def write_many(
        self,
        prompts: Sequence[PromptTokens],
        matchers: Sequence[Matcher],
        *,
        limits: DecodingLimits | None = None,
        choose: Choose = greedy,
    ) -> list[Written | CasewrightError]:
        """Write a plan for each of several prompts with the same prefix, as a batch.

        Returns:
            For each prompt the plan, or the ``DecodingError`` or ``GrammarError`` that ended it.

        Raises:
            ValueError: The prompts have different prefixes.
        """
        if len({prompt.head for prompt in prompts}) > 1:
            raise ValueError("The prompts have different prefixes. Decode those of each together.")
        limits = limits or DecodingLimits()
        if not prompts:
            return []
        longest = max(len(prompt.head) + len(prompt.tail) for prompt in prompts)
        window = attention_window(self._model)
        # A sliding window counts columns, some of which are padding in a batch.
        if window is not None and longest + limits.tokens > window:
            return [
                self._write_one(prompt, matcher, limits, choose)
                for prompt, matcher in zip(prompts, matchers, strict=True)
            ]
        try:
            with limits.lock(self._lock):
                states, reused = self._head(prompts[0].head, limits)
                cache = KVCache(self._layers)
                cache.load(states, len(prompts))
                tails = [prompt.tail for prompt in prompts]
                return write_together(
                    self._model, cache, tails, matchers, limits, choose, head_reused=reused
                )
        except DecodingError as error:
            return [error] * len(prompts)

    def _write_one(
        self, prompt: PromptTokens, matcher: Matcher, limits: DecodingLimits, choose: Choose
    ) -> Written | CasewrightError:
        try:
            return self.write(prompt, matcher, limits=limits, choose=choose)
        except (DecodingError, GrammarError) as error:
            return error

    @contextmanager
    def conversation(
        self, head: Sequence[int], limits: DecodingLimits | None = None
    ) -> Iterator[Conversation]:
        """Start a conversation with a prefix; while it is open, the decoder writes nothing else.

        Raises:
            DecodingError: The deadline passed before the prefix was read.
        """
        limits = limits or DecodingLimits()
        with limits.lock(self._lock):
            states, reused = self._head(tuple(head), limits)
            if self._loaded is states:
                self._cache.set_length(states.length)
            else:
                self._loaded = None
                self._cache.load(states)
                self._loaded = states
            yield Conversation(self._model, self._cache, self._read, head_reused=reused)

    def _head(self, tokens: tuple[int, ...], limits: DecodingLimits) -> tuple[States, bool]:
        """Return a prefix's states, and True if they were cached."""
        if (states := self.prefixes.get(tokens)) is not None:
            return states, True
        states = None if self._files is None else self._files.load(tokens)
        reused = states is not None
        if states is None:
            cache = KVCache(self._layers)
            read(self._model, cache, tokens, limits, [len(tokens) - 1])
            states = cache.states()
            if self._files is not None:
                self._files.save(tokens, states)
        self.prefixes.put(tokens, states)
        return states, reused
