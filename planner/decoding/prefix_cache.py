"""Prefix cache: key/value states of prompt prefixes (``Prompt.head``), in memory and files.

The prefix is most of a prompt, and the same in every process. Processes share files of the prefix's
states, so that a new process need not compute them. A file's name is a digest of everything on
which the states in the file depend.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from casewright.planner.decoding.kv_cache import States, count_layers
from casewright.planner.decoding.steps import CHUNK_TOKENS
from casewright.planner.language_model import LanguageModel

#: Version of the file format.
FORMAT_VERSION = 1


class PrefixCache:
    """States of the most recently used prefixes in memory, together at most ``max_bytes``.

    Callers must not change the returned states. A prefix with more than ``max_bytes`` of states is
    not cached.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        # In order of use; the most recently used prefix is the last.
        self._states_by_prefix: dict[tuple[int, ...], States] = {}

    @property
    def bytes(self) -> int:
        """Size of all cached states in bytes."""
        return sum(states.bytes for states in self._states_by_prefix.values())

    def __len__(self) -> int:
        return len(self._states_by_prefix)

    def get(self, tokens: tuple[int, ...]) -> States | None:
        """Return the states of a prefix if they are cached."""
        if (states := self._states_by_prefix.pop(tokens, None)) is not None:
            self._states_by_prefix[tokens] = states
        return states

    def put(self, tokens: tuple[int, ...], states: States) -> None:
        """Cache the states of a prefix; drop the least recently used prefixes if necessary."""
        if states.bytes <= self._max_bytes:
            self._states_by_prefix[tokens] = states
            while self.bytes > self._max_bytes:
                del self._states_by_prefix[next(iter(self._states_by_prefix))]


@dataclass(frozen=True, slots=True)
class PrefixFiles:
    """Files of the prefixes of one model; other models and processes may use the same folder.

    A damaged or unreadable file is ignored and written anew. If the folder is not writable,
    nothing is cached.

    Attributes:
        folder: The folder; it is created if it is missing.
        model: The model; its ``identity`` must be a text that changes with the weights.
        max_bytes: Maximum size of the folder's files; the least recently used files are removed.
    """

    folder: Path
    model: LanguageModel
    max_bytes: int

    def load(self, tokens: tuple[int, ...]) -> States | None:
        """Return the states of a prefix on the model's device; ``None`` without a valid file."""
        file = self._file(tokens)
        try:
            with safe_open(file, "pt") as content:
                metadata = content.metadata() or {}
                names = _tensor_names(count_layers(self.model))
                tensors = [content.get_tensor(name) for name in names]
            if metadata != self._metadata(tokens, tensors):
                return None
            os.utime(file)  # marks the file as recently used
        except (OSError, SafetensorError, RuntimeError):
            return None
        # Keys and values alternate, as in ``_tensor_names``.
        on_device = [tensor.to(self.model.device) for tensor in tensors]
        return States(tuple(zip(on_device[::2], on_device[1::2], strict=True)), len(tokens))

    def save(self, tokens: tuple[int, ...], states: States) -> None:
        """Write the states of a prefix, and remove the least recently used files if necessary."""
        if states.bytes > self.max_bytes:
            return
        tensors = [tensor.cpu().contiguous() for pair in states.layers for tensor in pair]
        named_tensors = dict(zip(_tensor_names(len(states.layers)), tensors, strict=True))
        with suppress(OSError, SafetensorError):
            self.folder.mkdir(parents=True, exist_ok=True)
            content = save(named_tensors, self._metadata(tokens, tensors))
            _write_atomically(self._file(tokens), content)
            self._remove_least_recent()

    def _file(self, tokens: tuple[int, ...]) -> Path:
        return self.folder / f"{self._digest(tokens)}.safetensors"

    def _digest(self, tokens: tuple[int, ...]) -> str:
        model = self.model
        # These settings change the rounding of the states.
        numerics = [CHUNK_TOKENS, str(model.network.dtype), model.device.type]
        numerics += [torch.__version__, transformers.__version__]
        text = json.dumps([FORMAT_VERSION, model.identity, *numerics, tokens])
        return hashlib.sha256(text.encode()).hexdigest()

    def _metadata(self, tokens: tuple[int, ...], tensors: list[Tensor]) -> dict[str, str]:
        # Without the checksum, a flipped bit on the disk would change plans unnoticed.
        checksum = 0
        for tensor in tensors:
            checksum = zlib.crc32(tensor.view(torch.uint8).numpy().data, checksum)
        return {"digest": self._digest(tokens), "crc32": str(checksum)}

    def _remove_least_recent(self) -> None:
        # Processes that were killed leave .part files.
        files = [f for f in self.folder.iterdir() if f.suffix in (".safetensors", ".part")]
        by_age = sorted((file.stat().st_mtime, file.stat().st_size, file) for file in files)
        excess_bytes = sum(size for _, size, _ in by_age) - self.max_bytes
        for _, size, file in by_age:
            if excess_bytes <= 0:
                break
            file.unlink(missing_ok=True)
            excess_bytes -= size


def _tensor_names(layer_count: int) -> list[str]:
    return [f"{layer}.{kind}" for layer in range(layer_count) for kind in ("keys", "values")]


def _write_atomically(file: Path, content: bytes) -> None:
    handle, part_file = tempfile.mkstemp(suffix=".part", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(part_file).replace(file)
    finally:
        Path(part_file).unlink(missing_ok=True)
