"""Opening the networks that read pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.stores.encoders.onnx_session import inference_session

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def open_network(file: Path, domain: str) -> tuple[InferenceSession, Mapping[str, str]]:
    """Return a network's session, on one thread, with the metadata of its file.

    Args:
        file: The ONNX file.
        domain: The domain whose training writes it.

    Raises:
        InputError: There is no such file.
    """
    if not file.is_file():
        raise InputError(f"The network {file} is not there. Train it: casewright finetune {domain}")
    session = inference_session(file, threads=1)
    return session, session.get_modelmeta().custom_metadata_map
