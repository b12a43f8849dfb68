"""Exports a torch module to an ONNX file, without output on the terminal."""

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

#: Held while a model is loaded or exported: the import of transformers is not thread-safe, and
#: ``quiet`` replaces the streams of the process.
EXPORT_LOCK = threading.Lock()


def export_onnx(
    module: Any,
    example: Sequence[Any],
    target: Path,
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    dynamic: Mapping[str, Any],
) -> None:
    """Write a torch module, which must be in evaluation mode, as an ONNX file, atomically.

    ``example`` holds example inputs. ``inputs`` and ``outputs`` are the names to use in the file.
    ``dynamic`` maps an input's name to its variable axes, in the form of ``torch.export``.
    """
    import torch

    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, part_file = tempfile.mkstemp(dir=target.parent, suffix=".part")
    os.close(descriptor)
    try:
        names: Any = {"input_names": list(inputs), "output_names": list(outputs)}
        # A tuple in the order of the inputs: a mapping would need ``forward``'s parameter names.
        shapes = tuple(dynamic.get(name) for name in inputs)
        settings: Any = {"dynamo": True, "dynamic_shapes": shapes, "verbose": False}
        with quiet(), torch.no_grad():
            program = torch.onnx.export(module, tuple(example), **names, **settings)
            assert program is not None
            program.save(part_file, external_data=False)
        Path(part_file).replace(target)
    finally:
        Path(part_file).unlink(missing_ok=True)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the terminal output of the exporter and the weight loader in this thread."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    # The output of other threads still goes to stdout and stderr: it may be a command's result.
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


def write_metadata(target: Path, numbers: Mapping[str, float]) -> None:
    """Replace an ONNX file by one with numbers as metadata and without source paths, atomically."""
    import onnx

    model = onnx.load(str(target))
    onnx.helper.set_model_props(model, {name: repr(value) for name, value in numbers.items()})
    # The exporter records this machine's source file and line for each node.
    for node in model.graph.node:
        del node.metadata_props[:]
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(model.SerializeToString())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


class _Muted:
    """A stream that drops the output of the thread that created the stream."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._thread = stream, threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() == self._thread:
            return len(text)
        written: int = self._stream.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
