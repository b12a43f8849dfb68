"""Opening an ONNX file for inference beside other work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def inference_session(
    model: Path | bytes, threads: int = 0, weights: Mapping[str, NDArray[Any]] | None = None
) -> InferenceSession:
    """Open a model on the CPU; its threads sleep as soon as they have nothing to compute.

    By default those of ONNX Runtime first spin for some milliseconds in wait of the next model run,
    which takes a core from whoever else computes: the event loop, a store's search, a client.

    Args:
        model: The file, or what it would hold.
        threads: How many compute; 0 for one a core.
        weights: Those that the model says are in other files, by name. They are not copied: keep
            them as long as the session.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if weights:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
