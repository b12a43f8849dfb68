"""The key/value states of prompt heads, kept in files between processes.

A prompt's head is most of what a first plan reads: some thousand tokens that are the same in every
process. A file's name is a digest of all that its numbers depend on.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.planner.decoding.extent import layers
from casewright.planner.decoding.room import States
from casewright.planner.decoding.steps import CHUNK

if TYPE_CHECKING:
    from torch import Tensor

    from casewright.planner.language_model import LanguageModel

#: Changes where files are written otherwise.
FORMAT = 1


class HeadFiles:
    """Keeps heads of one model in a folder, which other models and processes may share.

    A file that is damaged, of another head, or cannot be read is passed over and written anew;
    where the folder cannot be written, nothing is kept.

    Args:
        folder: Is made where it is missing.
        model: Whose heads; its ``identity`` says which.
        most_bytes: What the folder's files may take; those used longest ago are removed.

    Raises:
        ValueError: The model has no identity: nothing tells its weights from others'.
    """

    def __init__(self, folder: Path, model: LanguageModel, most_bytes: int) -> None:
        if model.identity is None:
            raise ValueError("The model was not loaded from files, so its heads cannot be kept.")
        self._folder = folder
        self._model = model
        self._most = most_bytes

    def load(self, tokens: tuple[int, ...]) -> States | None:
        """Return the states of a head on the model's device, or ``None``."""
        from safetensors import SafetensorError, safe_open

        file = self._file(tokens)
        count = layers(self._model)
        try:
            with safe_open(file, "pt") as opened:
                told = opened.metadata() or {}
                found = [opened.get_tensor(name) for name in _names(count)]
            if told != self._told(tokens, found):
                return None
            os.utime(file)
        except (OSError, SafetensorError, RuntimeError):
            return None
        placed = [tensor.to(self._model.device) for tensor in found]
        return States(tuple(zip(placed[::2], placed[1::2], strict=True)), len(tokens))

    def save(self, tokens: tuple[int, ...], states: States) -> None:
        """Keep the states of a head, and remove files beyond the bound."""
        from safetensors import SafetensorError
        from safetensors.torch import save

        if states.bytes > self._most:
            return
        tensors = [tensor.cpu().contiguous() for pair in states.layers for tensor in pair]
        named = dict(zip(_names(len(states.layers)), tensors, strict=True))
        with suppress(OSError, SafetensorError):
            self._folder.mkdir(parents=True, exist_ok=True)
            _write(self._file(tokens), save(named, self._told(tokens, tensors)))
            self._bound()

    def _file(self, tokens: tuple[int, ...]) -> Path:
        return self._folder / f"{self._digest(tokens)}.safetensors"

    def _digest(self, tokens: tuple[int, ...]) -> str:
        import torch
        import transformers

        model = self._model
        form = [FORMAT, CHUNK, str(model.network.dtype), model.device.type]
        versions = [torch.__version__, transformers.__version__]
        whole = json.dumps([model.identity, *form, *versions, tokens])
        return hashlib.sha256(whole.encode()).hexdigest()

    def _told(self, tokens: tuple[int, ...], tensors: list[Tensor]) -> dict[str, str]:
        # A bit that the disk turned round would make plans that nobody could explain.
        return {"head": self._digest(tokens), "crc32": str(_checksum(tensors))}

    def _bound(self) -> None:
        """Remove the files used longest ago, and what a process that was killed left."""
        files = sorted((file.stat().st_mtime, file.stat().st_size, file) for file in self._listed())
        over = sum(size for _, size, _ in files) - self._most
        for _, size, file in files:
            if over <= 0:
                break
            file.unlink(missing_ok=True)
            over -= size

    def _listed(self) -> list[Path]:
        return [file for file in self._folder.iterdir() if file.suffix in (".safetensors", ".part")]


def _names(count: int) -> list[str]:
    return [f"{layer}.{part}" for layer in range(count) for part in ("keys", "values")]


def _checksum(tensors: list[Tensor]) -> int:
    import torch

    found = 0
    for tensor in tensors:
        found = zlib.crc32(tensor.contiguous().view(torch.uint8).numpy().data, found)
    return found


def _write(file: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    handle, part = tempfile.mkstemp(suffix=".part", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
        Path(part).replace(file)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
