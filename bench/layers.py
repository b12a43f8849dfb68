"""A sampler of threads' stacks: in which layers (packages) a program spends its time."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from types import FrameType

#: Seconds between samples.
INTERVAL = 0.002
#: Parts of a file's path, and the layer that they name.
LAYERS = {
    "/onnxruntime/": "ONNX Runtime",
    "/qdrant": "Qdrant",
    **dict.fromkeys(("/langgraph/", "/langchain_core/", "/langsmith/"), "LangGraph and LangChain"),
    **{
        f"/casewright/{room}/": f"casewright.{room}"
        for room in ("domains", "graph", "planner", "serve", "stores", "tools")
    },
}
#: Files whose frames are innermost while a thread waits.
_WAITING = ("threading.py", "selectors.py", "queue.py", "futures/thread.py", "tools/deadline.py")


class LayerSampler:
    """Counts the samples of the other threads' stacks by layer, during a ``with`` block.

    A sample counts for the layer of the innermost frame that belongs to one of ``LAYERS``: NumPy's
    time counts for its caller. Threads that wait do not count, but a thread that waits for the
    interpreter's lock (GIL) does. ``counts`` has the number of samples by layer.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> LayerSampler:
        """Start sampling."""
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop sampling."""
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(INTERVAL):
            for thread, frame in sys._current_frames().items():
                if thread != threading.get_ident() and (layer := _layer_of(frame)):
                    self.counts[layer] += 1


def _layer_of(frame: FrameType | None) -> str | None:
    """Return the layer of a stack, "other" without one; ``None`` if its thread waits."""
    if frame is not None and frame.f_code.co_filename.endswith(_WAITING):
        return None
    while frame is not None:
        path = frame.f_code.co_filename
        for part, layer in LAYERS.items():
            if part in path:
                return layer
        frame = frame.f_back
    return "other"
