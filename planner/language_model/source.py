"""Where a model's files are: in a folder, in one that names another, or at Hugging Face."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright.errors import InputError, told
from casewright.planner.language_model.smollm2 import NAME as SMOLLM2
from casewright.planner.language_model.smollm2 import smollm2_folder

CONFIG = "config.json"
ADAPTER = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
#: What is fetched of a model beside its weights: data, no code.
TEXTS = ("*.json", "*.jinja", "tokenizer.model")


@dataclass(frozen=True, slots=True)
class Source:
    """Folders with a model's files.

    Attributes:
        base: The model.
        adapter: The adapter on top of it, if any.
    """

    base: Path
    adapter: Path | None = None

    @property
    def tokenizer(self) -> Path:
        """The folder with the tokenizer: an adapter's own comes first, it was trained with that."""
        if self.adapter is not None and (self.adapter / "tokenizer_config.json").is_file():
            return self.adapter
        return self.base

    def identity(self) -> str:
        """Return what tells the model from others: its files' paths, sizes and times.

        Raises:
            OSError: A file is gone.
        """
        folders = [folder for folder in (self.base, self.adapter) if folder is not None]
        files = sorted(
            file.resolve()
            for folder in folders
            for pattern in ("*.safetensors", CONFIG, ADAPTER)
            for file in folder.glob(pattern)
        )
        told = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        return json.dumps(told)


def find_source(name: str | Path, adapter: str | Path | None) -> Source:
    """Return the folders of a model and of its adapter; what is not here is fetched.

    Raises:
        InputError: There is no such model, or it is none.
    """
    folder = _folder(name, (CONFIG, ADAPTER))
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
        return Source(_base(folder), folder)
    own = None if adapter is None else _folder(adapter, (ADAPTER,))
    return Source(folder, own)


def read_json(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file.

    Raises:
        InputError: It cannot be read, or holds something else.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {told(error)}. Copy it anew.") from error
    if not isinstance(found, dict):
        raise InputError(f"{file} holds no JSON object. Copy it anew.")
    return found


def _base(adapter: Path) -> Path:
    """Return the folder of the model that an adapter names."""
    named = read_json(adapter / ADAPTER).get("base_model_name_or_path")
    if not isinstance(named, str) or not named:
        raise InputError(f"The adapter {str(adapter)!r} names no model. Give the model beside it.")
    # Beside the adapter first: what the working directory holds depends on who starts it.
    beside = adapter / named
    try:
        base = _folder(beside if beside.is_dir() else named, (CONFIG,))
    except InputError as error:
        raise InputError(
            f"The adapter {str(adapter)!r} is for the model {named!r}. {error} "
            "Or give the model's place beside the adapter."
        ) from error
    return base


def _folder(name: str | Path, wanted: tuple[str, ...]) -> Path:
    """Return the folder of this name, of the packaged base, or of Hugging Face's model."""
    if not str(name).strip():
        raise InputError("The language model's name is empty. Give a folder or a model's name.")
    if str(name) == SMOLLM2:
        return smollm2_folder()
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if folder.exists() or _is_path(name):
            raise InputError(
                f"There is no folder {str(name)!r}. Give a model's folder, or its name."
            )
        folder = _fetched(str(name))
    if not any((folder / file).is_file() for file in wanted):
        raise InputError(
            f"{str(name)!r} holds no {' or '.join(wanted)}. Give a folder as save_pretrained "
            "writes it."
        )
    return folder


def _is_path(name: str | Path) -> bool:
    text = str(name)
    return isinstance(name, Path) or text.startswith((".", "/", "~")) or text.count("/") > 1


def _fetched(name: str) -> Path:
    """Return the folder of a model of Hugging Face, fetched unless it is here already."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, allow_patterns=list(TEXTS), ignore_patterns=["*/*"]))
        weights = _weights(folder)
        return Path(snapshot_download(name, allow_patterns=weights))
    except Exception as error:
        raise InputError(
            f"There is no folder {name!r}, and no model of that name could be had from Hugging "
            f"Face: {told(error).rstrip('.')}. Check the name, or the connection; for a model "
            "behind a licence, run: hf auth login"
        ) from error


def _weights(folder: Path) -> list[str]:
    """Return the names of the files with weights that a fetched model has, as safetensors."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return sorted(set(read_json(index).get("weight_map", {}).values()))
    return ["model.safetensors", ADAPTER_WEIGHTS]
