"""Inference without torch: dense layers as NumPy arrays, and ONNX sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores.encoders.onnx_graph import inference_session

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Floats = NDArray[np.float32]
#: A dense layer: weights (out, in) and biases (out).
Layer = tuple[Floats, Floats]
#: Number of elements of a latent vector (MCBR-RAG, sections 5.1 and 5.2).
LATENT_SIZE = 64


def forward(inputs: Floats, layers: Iterable[Layer]) -> Floats:
    """Return the outputs (n, out) of dense layers for inputs (n, in), with ReLU between them."""
    values = inputs
    for number, (weight, bias) in enumerate(layers):
        values = (np.maximum(values, 0) if number > 0 else values) @ weight.T + bias
    return np.asarray(values, dtype=np.float32)


def unit_rows(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return vectors (n, d) that are scaled to length 1; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12))


def write_arrays(file: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays to a NumPy archive; create the archive's folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as target:
        np.savez(target, **arrays)


def read_arrays(file: Path, content: str, domain: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a NumPy archive; ``InputError`` if the file is missing or damaged.

    The error names the expected ``content``, and the ``domain`` to train.
    """
    try:
        with np.load(file, allow_pickle=False) as archive:
            return dict(archive)
    except (OSError, ValueError, TypeError, EOFError, BadZipFile) as error:
        raise InputError(
            f"{file} is not a {content}. Train it: casewright finetune {domain}"
        ) from error


def other_network_error(file: Path, domain: str) -> InputError:
    """Return the error for an archive whose arrays have unexpected names or shapes."""
    return InputError(f"{file} belongs to another network. Train it: casewright finetune {domain}")


def open_network(file: Path, domain: str) -> tuple[InferenceSession, Mapping[str, str]]:
    """Return an ONNX session with one thread, and the file's metadata.

    Raise ``InputError`` if the file does not exist; the error names the ``domain`` to train.
    """
    if not file.is_file():
        raise InputError(
            f"The network {file} does not exist. Train it: casewright finetune {domain}"
        )
    session = inference_session(file, threads=1)
    return session, session.get_modelmeta().custom_metadata_map
