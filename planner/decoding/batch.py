"""Batched decoding: plans for several questions in the same forward passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from casewright.errors import CasewrightError, DecodingError
from casewright.planner.decoding.kv_cache import KVCache
from casewright.planner.decoding.limits import DecodingLimits
from casewright.planner.decoding.matcher import Choose, Matcher
from casewright.planner.decoding.steps import CHUNK_TOKENS, forward, to_numpy
from casewright.planner.decoding.writing import PartialPlan, Written
from casewright.planner.language_model import LanguageModel


class _BatchRow:
    """Row of a batch: a plan, the tokens that the model must read next, and an error, if any."""

    def __init__(self, plan: PartialPlan, tail: Sequence[int]) -> None:
        self.plan = plan
        self.unread: list[int] = []
        self.error: CasewrightError | None = None
        self._set_unread(lambda: [*tail, *plan.begin()])

    @property
    def is_ended(self) -> bool:
        """True if the plan is complete or an error stopped it."""
        return self.plan.is_ended or self.error is not None

    def extend(self, logits: NDArray[np.float32]) -> None:
        self._set_unread(lambda: self.plan.extend(logits))

    def _set_unread(self, next_tokens: Callable[[], list[int]]) -> None:
        try:
            self.unread = next_tokens()
        except CasewrightError as error:
            self.error = error


def write_batch(
    model: LanguageModel,
    cache: KVCache,
    tails: Sequence[Sequence[int]],
    matchers: Sequence[Matcher],
    limits: DecodingLimits,
    choose: Choose,
    *,
    prefix_cached: bool,
) -> list[Written | CasewrightError]:
    """Write a plan after each tail (a prompt without the prefix); see ``Decoder.write_many``."""
    rows = [
        _BatchRow(PartialPlan(model, matcher, cache.length + len(tail), limits, choose), tail)
        for matcher, tail in zip(matchers, tails, strict=True)
    ]
    masked_cache = _MaskedCache(cache, len(rows))
    active = rows
    while unfinished := [row for row in active if not row.is_ended]:
        # Removing finished rows copies the others, so it waits until half of all rows are finished.
        if 2 * len(unfinished) <= len(active):
            masked_cache.keep([index for index, row in enumerate(active) if not row.is_ended])
            active = unfinished
        try:
            # A finished row reads a token too; its logits are ignored.
            tokens = [[0] if row.is_ended else row.unread for row in active]
            logits = masked_cache.read(model, tokens, limits)
        except DecodingError as error:
            for row in unfinished:
                row.error = error
            break
        for row, row_logits in zip(active, logits, strict=True):
            if not row.is_ended:
                row.extend(row_logits)
    return [row.error or row.plan.written(prefix_cached=prefix_cached) for row in rows]


class _MaskedCache:
    """A cache with a mask (rows, columns) that excludes padding.

    ``read`` adds one column for each token of the row with the most new tokens. Other rows are
    padded on the left, so that each row's last token is in the last column.
    """

    def __init__(self, cache: KVCache, row_count: int) -> None:
        self._cache = cache
        self._mask = np.ones((row_count, cache.length), bool)
        self._next_positions = np.full(row_count, cache.length)

    def read(
        self, model: LanguageModel, rows: Sequence[Sequence[int]], limits: DecodingLimits
    ) -> NDArray[np.float32]:
        """Read the rows' new tokens; return each row's last logits, ``(rows, vocabulary)``."""
        width = max(map(len, rows))
        ids = np.array([[*[0] * (width - len(row)), *row] for row in rows])
        is_token = np.arange(width) >= width - np.array([len(row) for row in rows])[:, None]
        positions = self._next_positions[:, None] + np.maximum(np.cumsum(is_token, axis=1) - 1, 0)
        self._next_positions = self._next_positions + is_token.sum(axis=1)
        logits: Any = None
        for start in range(0, width, CHUNK_TOKENS):
            limits.check_time()
            chunk = slice(start, start + CHUNK_TOKENS)
            self._mask = np.concatenate([self._mask, is_token[:, chunk]], axis=1)
            tokens, chunk_positions, mask = (
                torch.from_numpy(array).to(model.device)
                for array in (ids[:, chunk], positions[:, chunk], self._mask)
            )
            logits = forward(
                model, self._cache, tokens, chunk_positions, attention_mask=mask, logits_to_keep=1
            )
        return to_numpy(logits[:, -1])

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only the rows with these indices, in this order."""
        self._cache.keep(rows)
        self._mask = self._mask[list(rows)]
        self._next_positions = self._next_positions[list(rows)]
