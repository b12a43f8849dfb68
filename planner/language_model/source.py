"""Finds the folders of a model's files; downloads them from Hugging Face if they are not local."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright.errors import InputError, one_line
from casewright.planner.language_model.smollm2 import NAME as SMOLLM2
from casewright.planner.language_model.smollm2 import smollm2_folder

# Names of the files of a model and of an adapter.
CONFIG = "config.json"
ADAPTER = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
#: Patterns of the files that are downloaded with a model's weights; none is code.
TEXT_FILES = ["*.json", "*.jinja", "tokenizer.model"]


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Folders of a model and, if there is one, of its adapter."""

    base: Path
    adapter: Path | None = None

    @property
    def tokenizer(self) -> Path:
        """Folder of the tokenizer: the adapter's if it has a tokenizer, else the base model's."""
        if self.adapter is not None and (self.adapter / "tokenizer_config.json").is_file():
            return self.adapter
        return self.base

    def identity(self) -> str:
        """Return the files' paths, sizes and times as text; raise ``OSError`` if a file is gone."""
        folders = [folder for folder in (self.base, self.adapter) if folder is not None]
        files = sorted(
            file.resolve()
            for folder in folders
            for pattern in ("*.safetensors", CONFIG, ADAPTER)
            for file in folder.glob(pattern)
        )
        return json.dumps(
            [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        )


def find_source(name: str | Path, adapter: str | Path | None) -> ModelSource:
    """Return the folders of a model and of its adapter; download folders that are not local.

    Raises:
        InputError: A folder or model does not exist, or is not a model or adapter.
    """
    folder = _find_folder(name, (CONFIG, ADAPTER))
    if (folder / ADAPTER).is_file():
        if (folder / CONFIG).is_file():
            raise InputError(
                f"{str(name)!r} holds both a model ({CONFIG}) and an adapter ({ADAPTER}). "
                "Move the adapter's files to a folder of their own."
            )
        if adapter is not None:
            raise InputError(
                f"{str(name)!r} is an adapter itself. Give the model that {str(adapter)!r} is for."
            )
        return ModelSource(_base_folder(folder), folder)
    return ModelSource(folder, None if adapter is None else _find_folder(adapter, (ADAPTER,)))


def read_json(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file; raise ``InputError`` if no object can be read."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {one_line(error)}. Copy it anew.") from error
    if not isinstance(content, dict):
        raise InputError(f"{file} holds no JSON object. Copy it anew.")
    return content


def _base_folder(adapter: Path) -> Path:
    name = read_json(adapter / ADAPTER).get("base_model_name_or_path")
    if not isinstance(name, str) or not name:
        raise InputError(f"The adapter {str(adapter)!r} names no model. Give its base model too.")
    # The path relative to the adapter is tried first: the working directory is the caller's.
    relative = adapter / name
    try:
        return _find_folder(relative if relative.is_dir() else name, (CONFIG,))
    except InputError as error:
        raise InputError(
            f"The adapter {str(adapter)!r} is for the model {name!r}. {error} "
            "Or give the folders of both."
        ) from error


def _find_folder(name: str | Path, markers: tuple[str, ...]) -> Path:
    """Return a model's folder: a local one, or that of SmolLM2 or of a Hugging Face model.

    Raise ``InputError`` if the folder does not exist or contains none of the marker files.
    """
    text = str(name)
    if not text.strip():
        raise InputError("The language model's name is empty. Give a folder or a model's name.")
    if text == SMOLLM2:
        return smollm2_folder()
    folder = Path(name).expanduser()
    if not folder.is_dir():
        is_path = isinstance(name, Path) or text.startswith((".", "/", "~")) or text.count("/") > 1
        if folder.exists() or is_path:
            raise InputError(f"There is no folder {text!r}. Give a model's folder, or its name.")
        folder = _download(text)
    if not any((folder / file).is_file() for file in markers):
        raise InputError(
            f"{text!r} holds no {' or '.join(markers)}. Give a folder as save_pretrained writes it."
        )
    return folder


def _download(name: str) -> Path:
    """Return the folder of a Hugging Face model; download the model if it is not cached."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, allow_patterns=TEXT_FILES, ignore_patterns=["*/*"]))
        return Path(snapshot_download(name, allow_patterns=_weight_files(folder)))
    except Exception as error:
        raise InputError(
            f"There is no folder {name!r}, and the model could not be fetched from Hugging Face: "
            f"{one_line(error).rstrip('.')}. Check name and connection; for a gated model, run: "
            "hf auth login"
        ) from error


def _weight_files(folder: Path) -> list[str]:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return sorted(set(read_json(index).get("weight_map", {}).values()))
    return ["model.safetensors", ADAPTER_WEIGHTS]
