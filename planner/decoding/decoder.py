"""Constrained decoding of one plan or of a batch of plans."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from casewright.errors import CasewrightError, DecodingError, GrammarError
from casewright.planner.decoding.batch import write_batch
from casewright.planner.decoding.kv_cache import KVCache, States, count_layers, sliding_window_size
from casewright.planner.decoding.limits import DecodingLimits
from casewright.planner.decoding.matcher import Choose, Matcher, greedy
from casewright.planner.decoding.prefix_cache import PrefixCache, PrefixFiles
from casewright.planner.decoding.session import DecodingSession
from casewright.planner.decoding.steps import read
from casewright.planner.decoding.writing import Written
from casewright.planner.language_model import LanguageModel, PromptTokens
from casewright.planner.model_limits import PREFIX_BYTES, PREFIX_FILE_BYTES


class Decoder:
    """Writes plans with a model. Thread-safe; threads decode one after another.

    Args:
        prefix_bytes: Memory for the key/value states of the most recently used prompt prefixes.
        prefix_folder: Folder of the files, up to ``PREFIX_FILE_BYTES``, by which processes share
            states. Without a folder, or for a model without ``identity``, there are no files.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        prefix_bytes: int = PREFIX_BYTES,
        prefix_folder: Path | None = None,
    ) -> None:
        self._model = model
        self.prefixes = PrefixCache(prefix_bytes)
        self._files: PrefixFiles | None = None
        if prefix_folder is not None and model.identity is not None:
            self._files = PrefixFiles(prefix_folder, model, PREFIX_FILE_BYTES)
        self._lock = threading.Lock()
        self._layer_count = count_layers(model)
        self._cache = KVCache(self._layer_count)
        self._loaded_prefix: States | None = None

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
        keeps the tokens that it would choose itself. The plan needs fewer steps and is the same as
        without a draft, unless two tokens are almost equally probable: then another order of the
        floating-point sums may change the choice, rarely in float32 and sometimes in bfloat16.

        Raises:
            DecodingError: A limit was reached, or the prompt exceeds the model's context.
            GrammarError: The model's tokens cannot write the required text.
        """
        with self.session(prompt.head, limits) as session:
            session.feed(prompt.tail)
            return session.write(matcher, limits=limits, choose=choose, draft=draft)

    def write_many(
        self,
        prompts: Sequence[PromptTokens],
        matchers: Sequence[Matcher],
        *,
        limits: DecodingLimits | None = None,
        choose: Choose = greedy,
    ) -> list[Written | CasewrightError]:
        """Write a plan for each of several prompts with the same prefix (``head``), as a batch.

        Returns:
            For each prompt the plan, or the ``DecodingError`` or ``GrammarError`` that stopped it.

        Raises:
            ValueError: The prompts have different prefixes.
        """
        if len({prompt.head for prompt in prompts}) > 1:
            raise ValueError("The prompts have different prefixes. Group them by prefix.")
        limits = limits or DecodingLimits()
        if not prompts:
            return []
        max_length = max(len(prompt.head) + len(prompt.tail) for prompt in prompts)
        sliding_window = sliding_window_size(self._model)
        # A sliding window would count padding as tokens, so the plans are written one by one.
        if sliding_window is not None and max_length + limits.tokens > sliding_window:
            results: list[Written | CasewrightError] = []
            for prompt, matcher in zip(prompts, matchers, strict=True):
                try:
                    results.append(self.write(prompt, matcher, limits=limits, choose=choose))
                except (DecodingError, GrammarError) as error:
                    results.append(error)
            return results
        try:
            with limits.lock(self._lock):
                states, is_cached = self._prefix_states(prompts[0].head, limits)
                cache = KVCache(self._layer_count)
                cache.load(states, len(prompts))
                tails = [prompt.tail for prompt in prompts]
                return write_batch(
                    self._model, cache, tails, matchers, limits, choose, prefix_cached=is_cached
                )
        except DecodingError as error:
            return [error] * len(prompts)

    @contextmanager
    def session(
        self, head: Sequence[int], limits: DecodingLimits | None = None
    ) -> Iterator[DecodingSession]:
        """Open a session that begins with a prefix; meanwhile the decoder writes nothing else.

        Raise ``DecodingError`` if the deadline passes before the prefix is read.
        """
        limits = limits or DecodingLimits()
        with limits.lock(self._lock):
            states, is_cached = self._prefix_states(tuple(head), limits)
            if self._loaded_prefix is not states:
                # While ``load`` runs, and if it fails, the cache has no complete prefix.
                self._loaded_prefix = None
                self._cache.load(states)
                self._loaded_prefix = states
            # Drop the tokens of the previous session.
            self._cache.set_length(states.length)
            yield DecodingSession(self._model, self._cache, is_cached)

    def _prefix_states(
        self, tokens: tuple[int, ...], limits: DecodingLimits
    ) -> tuple[States, bool]:
        """Return a prefix's states, and True if they were in memory or in a file."""
        if (states := self.prefixes.get(tokens)) is not None:
            return states, True
        states = None if self._files is None else self._files.load(tokens)
        is_cached = states is not None
        if states is None:
            cache = KVCache(self._layer_count)
            read(self._model, cache, tokens, limits, logits_after=[len(tokens) - 1])
            states = cache.states()
            if self._files is not None:
                self._files.save(tokens, states)
        self.prefixes.put(tokens, states)
        return states, is_cached
