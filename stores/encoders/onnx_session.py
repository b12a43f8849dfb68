"""Opening an ONNX file for inference beside other work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def inference_session(file: Path, threads: int = 0) -> InferenceSession:
    """Open a model on the CPU; its threads sleep as soon as they have nothing to compute.

    By default those of ONNX Runtime first spin for some milliseconds in wait of the next model run,
    which takes a core from whoever else computes: the event loop, a store's search, a client.

    Args:
        file: The model.
        threads: How many compute; 0 for one a core.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
