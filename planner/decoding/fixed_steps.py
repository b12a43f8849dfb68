"""Steps whose tensors have the same form every time, so that a GPU can replay them.

A step of a 7B model reads its weights in some 4 ms on a large GPU; to launch its kernels one by one
from Python takes several times that. So the number of new tokens is rounded up to one of a few
widths and the columns that are seen to a window, and each such form is recorded once as a CUDA
graph. Other devices run the same forms as they are, which is how they are tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.decoding.extent import window as sliding_window
from casewright.planner.decoding.limits import Limits
from casewright.planner.decoding.room import GROWTH, Room
from casewright.planner.decoding.steps import on_host, places_in, read

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: New tokens of a step, rounded up to one of these.
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class FixedSteps:
    """Reads tokens in steps of fixed form; see ``steps.read``.

    Args:
        model: Reads.
        widths: The numbers of new tokens that steps have, ascending.
    """

    def __init__(self, model: LanguageModel, widths: Sequence[int] = WIDTHS) -> None:
        self._model = model
        self._widths = tuple(widths)
        self._forms: dict[tuple[int, int], _Form] = {}
        self._of: tuple[int, int] = (0, 0)

    def __call__(
        self,
        room: Room,
        tokens: Sequence[int],
        limits: Limits,
        places: Sequence[int] | None = None,
    ) -> NDArray[np.float32]:
        """Read the tokens behind what the room holds; return logits as ``steps.read`` does."""
        import torch

        end = room.length + len(tokens) + self._widths[-1]
        sliding = sliding_window(self._model)
        if not room.length or (sliding is not None and end > sliding):
            # The first states give the room its form; a sliding window needs a mask of its own.
            return read(self._model, room, tokens, limits, places)
        room.reserve(end)
        if self._of != (id(room), room.generation):
            self._forms.clear()
            self._of = (id(room), room.generation)
        wanted = [len(tokens) - 1] if places is None else places
        found: list[Any] = []
        for start in range(0, len(tokens), self._widths[-1]):
            limits.check_time()
            chunk = tokens[start : start + self._widths[-1]]
            width = next(width for width in self._widths if width >= len(chunk))
            window = min(-(-(room.length + width) // GROWTH) * GROWTH, room.capacity)
            form = self._forms.get((width, window))
            if form is None:
                form = self._forms[width, window] = _Form(self._model, room, width, window)
            logits = form.run(chunk, room.length)
            # The next step of this form writes over them.
            found.append(logits[places_in(wanted, start, self._widths[-1])])
            room.set_length(room.length + len(chunk))
        return on_host(torch.cat(found))


class _Form:
    """A step of one width over one window of a room's columns.

    What is new in a step is copied into tensors that stay: the tokens, padded on the right, and
    where they begin. Padding writes columns behind the last token, which no token before them sees,
    and which the next step overwrites. Logits are computed after every token: beside the network's
    own work that is little, and which of them a draft needs differs from step to step.
    """

    def __init__(self, model: LanguageModel, room: Room, width: int, window: int) -> None:
        import torch

        self._model = model
        self._room = room
        self._window = window
        self._tokens = torch.zeros((1, width), dtype=torch.long, device=model.device)
        self._start = torch.zeros((), dtype=torch.long, device=model.device)
        self._offsets = torch.arange(width, device=model.device)
        self._columns = torch.arange(window, device=model.device)
        self._logits: Any = None
        self._graph: Any = None
        self._recordable = model.device.type == "cuda"

    def run(self, tokens: Sequence[int], start: int) -> Any:
        """Return the logits after each token and each padding, ``(width, vocabulary)``."""
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
        room = self._room
        room.slots, room.window = slots, self._window
        try:
            with torch.no_grad():
                return self._model.network(
                    input_ids=self._tokens,
                    attention_mask=(self._columns <= slots[:, None])[None, None],
                    position_ids=slots[None],
                    past_key_values=room,
                    use_cache=True,
                ).logits[0]
        finally:
            room.slots = None

    def _record(self) -> None:
        import torch

        # Libraries choose their kernels in the first runs, which must not be recorded.
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(2):
                self._forward()
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._logits = self._forward()
        except RuntimeError:
            # Some networks look at a number on the way, which cannot be recorded.
            self._recordable = False
        else:
            self._graph = graph
