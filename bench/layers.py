"""A sampling profiler that shows in which layers (packages or libraries) a program spends time."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from types import FrameType

INTERVAL_SECONDS = 0.002
#: Layers by a part of the paths of their files.
LAYER_BY_PATH = {
    "/onnxruntime/": "ONNX Runtime",
    "/qdrant": "Qdrant",
    **dict.fromkeys(("/langgraph/", "/langchain_core/", "/langsmith/"), "LangGraph and LangChain"),
    **{
        f"/casewright/{package}/": f"casewright.{package}"
        for package in ("domains", "graph", "planner", "serve", "stores", "tools")
    },
}
#: A thread waits if its innermost frame is in one of these files.
_WAIT_FILES = ("threading.py", "selectors.py", "queue.py", "futures/thread.py", "tools/deadline.py")


class LayerSampler:
    """A context manager that samples the stacks of all other threads, and counts them by layer.

    A sample counts for the innermost layer of ``LAYER_BY_PATH`` on the stack, so NumPy's time
    counts for the layer that called NumPy. A thread that waits is not counted, unless it waits for
    the interpreter's lock (GIL). ``counts`` is the number of samples by layer.
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
        while not self._ended.wait(INTERVAL_SECONDS):
            for thread, frame in sys._current_frames().items():
                if thread != threading.get_ident() and (layer := _layer_of(frame)):
                    self.counts[layer] += 1


def _layer_of(frame: FrameType | None) -> str | None:
    """Return the innermost layer on a frame's stack, or "other"; ``None`` if its thread waits."""
    if frame is not None and frame.f_code.co_filename.endswith(_WAIT_FILES):
        return None
    while frame is not None:
        path = frame.f_code.co_filename
        for part, layer in LAYER_BY_PATH.items():
            if part in path:
                return layer
        frame = frame.f_back
    return "other"
