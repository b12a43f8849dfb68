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

#: Columns that the cache has at first where steps have a fixed shape.
FIXED_COLUMNS = 2048


class Decoder:
    """Writes plans with one model; threads take turns.

    Args:
        head_bytes: Memory for the key/value states of prompt heads; those used last are kept.
        static: Give steps a fixed shape, recorded as CUDA graphs on a GPU; by default, on a GPU.
        head_folder: Keeps the states of heads between processes, within ``HEAD_FILE_BYTES``; with
            ``None``, or for a model without an ``identity``, they are not kept.

    Attributes:
        prefixes: The heads that are kept in memory.
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
            # A recorded step is bound to the tensors that it was recorded with.
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

        With a draft, the model reads what the draft proposes in one step and keeps what it would
        have chosen itself, so the plan is the one that is written without, in fewer steps. In one
        step logits are summed in another order than in several: where two tokens are as likely to
        the last bits, the other one may be chosen. In float32 that is rare; in bfloat16 it is seen.

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
        limits: DecodingLimits | None = None,
        choose: Choose = greedy,
    ) -> list[Written | CasewrightError]:
        """Write a plan for each of several prompts that have one head, in shared steps.

        Returns:
            For each, what was written, or the ``DecodingError`` or ``GrammarError`` that ended it.

        Raises:
            ValueError: The prompts have several heads.
        """
        if len({prompt.head for prompt in prompts}) > 1:
            raise ValueError("The prompts have several heads; decode those of each together.")
        limits = limits or DecodingLimits()
        if not prompts:
            return []
        longest = max(len(prompt.head) + len(prompt.tail) for prompt in prompts)
        window = attention_window(self._model)
        # A window is counted in columns, and in a batch some of those are padding.
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
        """Begin a sequence with a head; while it is open, nothing else is written.

        Raises:
            DecodingError: The deadline passed before the head was read.
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
        """Return a head's states, and whether they were kept."""
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
