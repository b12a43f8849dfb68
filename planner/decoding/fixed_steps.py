"""Decoding steps with fixed tensor shapes, which a GPU replays as CUDA graphs.

A step of a 7B model reads its weights in some 4 ms on a large GPU, but to launch its kernels one by
one from Python takes several times as long. So a step pads its new tokens to one of a few widths,
and attends to a multiple of ``BLOCK`` columns. Each such shape is recorded once as a CUDA graph.
Other devices use the same shapes without recording, which lets tests run on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from casewright.planner.decoding.kv_cache import BLOCK, KVCache, sliding_window_size
from casewright.planner.decoding.limits import DecodingLimits
from casewright.planner.decoding.steps import forward, positions_within, read, to_numpy
from casewright.planner.language_model import LanguageModel

#: Widths to which the number of new tokens of a step is rounded up.
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class FixedSteps:
    """Replacement for ``steps.read`` with steps of fixed shape."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._steps: dict[tuple[int, int], _FixedStep] = {}
        self._recorded_for: tuple[int, int] = (0, 0)

    def __call__(
        self,
        cache: KVCache,
        tokens: Sequence[int],
        limits: DecodingLimits,
        positions: Sequence[int],
    ) -> NDArray[np.float32]:
        """Read the tokens after the cache's content; return logits as ``steps.read`` does."""
        max_width = WIDTHS[-1]
        # The last step's padding is written too.
        end = cache.length + len(tokens) + max_width
        sliding_window = sliding_window_size(self._model)
        if not cache.length or (sliding_window is not None and end > sliding_window):
            # The first states determine the cache's shape; a sliding window needs another mask.
            return read(self._model, cache, tokens, limits, positions)
        cache.reserve(end)
        if self._recorded_for != (id(cache), cache.allocations):
            self._steps.clear()
            self._recorded_for = (id(cache), cache.allocations)
        logit_parts: list[Any] = []
        for start in range(0, len(tokens), max_width):
            limits.check_time()
            chunk = tokens[start : start + max_width]
            width = next(width for width in WIDTHS if width >= len(chunk))
            attended = min(-(-(cache.length + width) // BLOCK) * BLOCK, cache.capacity)
            if (width, attended) not in self._steps:
                self._steps[width, attended] = _FixedStep(self._model, cache, width, attended)
            logits = self._steps[width, attended].run(chunk, cache.length)
            # Indexing makes a copy, since the next step of this shape overwrites the logits.
            logit_parts.append(logits[positions_within(positions, start, max_width)])
            cache.set_length(cache.length + len(chunk))
        return to_numpy(torch.cat(logit_parts))


class _FixedStep:
    """Step with a fixed width and a fixed number of attended columns.

    Fixed tensors hold the input: the tokens, padded on the right, and the first column to write. No
    token attends to the padding's columns, and the next step overwrites them. Logits are computed
    after every token, since that costs little and each draft needs others.
    """

    def __init__(self, model: LanguageModel, cache: KVCache, width: int, attended: int) -> None:
        self._model = model
        self._cache = cache
        self._attended = attended
        self._tokens = torch.zeros((1, width), dtype=torch.long, device=model.device)
        self._start = torch.zeros((), dtype=torch.long, device=model.device)
        self._offsets = torch.arange(width, device=model.device)
        self._attended_columns = torch.arange(attended, device=model.device)
        self._logits: Any = None
        self._graph: Any = None
        self._recordable = model.device.type == "cuda"

    def run(self, tokens: Sequence[int], start: int) -> Any:
        """Return the logits after each token, padding included, ``(width, vocabulary)``."""
        padded = [*tokens, *[0] * (self._tokens.shape[1] - len(tokens))]
        self._tokens.copy_(torch.tensor([padded]))
        self._start.fill_(start)
        if self._graph is None and self._recordable:
            self._record()
        if self._graph is None:
            return self._forward()
        self._graph.replay()
        return self._logits

    def _forward(self) -> Any:
        new_columns = self._start + self._offsets
        self._cache.write_columns, self._cache.attended = new_columns, self._attended
        try:
            mask = (self._attended_columns <= new_columns[:, None])[None, None]
            return forward(
                self._model, self._cache, self._tokens, new_columns[None], attention_mask=mask
            )[0]
        finally:
            self._cache.write_columns = None

    def _record(self) -> None:
        # Libraries choose their kernels during the first runs, which must not be recorded.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self._forward()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._logits = self._forward()
        except RuntimeError:
            # Some networks copy a number from the GPU to the CPU, which a graph cannot.
            self._recordable = False
        else:
            self._graph = graph
