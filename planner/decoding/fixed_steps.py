"""Decoding steps with fixed tensor shapes, which a GPU replays as CUDA graphs.

A step of a 7B model reads its weights in some 4 ms on a large GPU, but to launch its kernels one by
one from Python takes several times as long. So the number of new tokens is rounded up to one of a
few widths, and the number of attended columns to a window; each such shape is recorded once as a
CUDA graph. Other devices, as in tests, use the same shapes without recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.decoding.kv_cache import GROWTH, KVCache, attention_window
from casewright.planner.decoding.limits import DecodingLimits
from casewright.planner.decoding.steps import on_host, positions_in, read

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Widths to which the number of new tokens of a step is rounded up.
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class FixedSteps:
    """Reads tokens in steps of fixed shape, as ``steps.read`` does."""

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
        import torch

        most = WIDTHS[-1]
        end = cache.length + len(tokens) + most
        sliding = attention_window(self._model)
        if not cache.length or (sliding is not None and end > sliding):
            # The first states determine the cache's shape; a sliding window needs another mask.
            return read(self._model, cache, tokens, limits, positions)
        cache.reserve(end)
        if self._recorded_for != (id(cache), cache.generation):
            self._steps.clear()
            self._recorded_for = (id(cache), cache.generation)
        parts: list[Any] = []
        for start in range(0, len(tokens), most):
            limits.check_time()
            chunk = tokens[start : start + most]
            width = next(width for width in WIDTHS if width >= len(chunk))
            window = min(-(-(cache.length + width) // GROWTH) * GROWTH, cache.capacity)
            step = self._steps.get((width, window))
            if step is None:
                step = self._steps[width, window] = _FixedStep(self._model, cache, width, window)
            logits = step.run(chunk, cache.length)
            # Indexing makes a copy, since the next step of this shape overwrites the logits.
            parts.append(logits[positions_in(positions, start, most)])
            cache.set_length(cache.length + len(chunk))
        return on_host(torch.cat(parts))


class _FixedStep:
    """Step of one width over one window of a cache's columns.

    The input is copied into fixed tensors: the tokens, padded on the right, and the first column.
    Padding writes columns after the last token, to which no token attends and which the next step
    overwrites. Logits are computed after every token: the cost is small, and a draft needs
    different ones in each step.
    """

    def __init__(self, model: LanguageModel, cache: KVCache, width: int, window: int) -> None:
        import torch

        self._model = model
        self._cache = cache
        self._window = window
        self._tokens = torch.zeros((1, width), dtype=torch.long, device=model.device)
        self._start = torch.zeros((), dtype=torch.long, device=model.device)
        self._offsets = torch.arange(width, device=model.device)
        self._columns = torch.arange(window, device=model.device)
        self._logits: Any = None
        self._graph: Any = None
        self._recordable = model.device.type == "cuda"

    def run(self, tokens: Sequence[int], start: int) -> Any:
        """Return the logits after each token, padding included, ``(width, vocabulary)``."""
        import torch

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
        import torch

        slots = self._start + self._offsets
        self._cache.slots, self._cache.window = slots, self._window
        try:
            with torch.no_grad():
                return self._model.network(
                    input_ids=self._tokens,
                    attention_mask=(self._columns <= slots[:, None])[None, None],
                    position_ids=slots[None],
                    past_key_values=self._cache,
                    use_cache=True,
                ).logits[0]
        finally:
            self._cache.slots = None

    def _record(self) -> None:
        import torch

        # Libraries select their kernels in the first runs, which must not be recorded.
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
            # Some networks copy a number from the GPU, which cannot be recorded.
            self._recordable = False
        else:
            self._graph = graph
