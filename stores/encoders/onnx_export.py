"""Exporting a torch module to an ONNX file, once, without noise."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

#: Held while a model is loaded and exported: transformers cannot be imported by two threads at
#: once, and what ``quiet`` puts in place of the streams is the whole process's.
EXPORTING = threading.Lock()


def export_onnx(
    module: Any,
    example: Sequence[Any],
    target: Path,
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    dynamic: Mapping[str, Any],
) -> None:
    """Write a module as an ONNX file; a file of that name appears whole or not at all.

    Another process may export at the same time: each writes its own file, and the last one
    replaces whole files by whole files.

    Args:
        module: A ``torch.nn.Module`` in evaluation mode.
        example: Its inputs, as examples.
        target: The file; its folder is made.
        inputs: The inputs' names.
        outputs: The outputs' names.
        dynamic: For each input, which of its axes vary, as ``torch.export`` takes them.
    """
    import torch

    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, suffix=".part")
    os.close(handle)
    try:
        with quiet(), torch.no_grad():
            program = torch.onnx.export(
                module,
                tuple(example),
                dynamo=True,
                input_names=list(inputs),
                output_names=list(outputs),
                dynamic_shapes=dict(dynamic),
                verbose=False,
            )
            assert program is not None
            program.save(name, external_data=False)
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what exporter and weight loader print in this thread off the user's terminal."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    # They print progress to both streams; stdout is for results, which another thread may print
    # meanwhile.
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(_Muted(sys.stdout)),
        contextlib.redirect_stderr(_Muted(sys.stderr)),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(level)


def remember(target: Path, told: Mapping[str, float]) -> None:
    """Write numbers into a model file, which is replaced as a whole, and take notes of paths out.

    Args:
        target: The ONNX file.
        told: The numbers by name, to be read from the model's metadata.
    """
    import onnx

    model = onnx.load(str(target))
    onnx.helper.set_model_props(model, {name: repr(value) for name, value in told.items()})
    # The exporter notes, node by node, which lines of which files on this machine made it.
    for node in model.graph.node:
        del node.metadata_props[:]
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(model.SerializeToString())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


class _Muted:
    """A stream that drops what the thread that made it writes, and passes on all else."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() == self._thread:
            return len(text)
        written: int = self._stream.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
