"""A training set in memory, and its folder of two JSON Lines files and a manifest."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample
from casewright.planner.prompt import prompt_hash
from casewright.stores.case import check_text

#: The number of the manifest's format.
FORMAT = 1
#: The names of the files in a training set's folder.
MANIFEST, TRAIN, VALIDATION = "manifest.json", "train.jsonl", "validation.jsonl"
_FILES = {MANIFEST, TRAIN, VALIDATION}
_ADVICE = "Make the set again: casewright finetune data"


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Training and validation examples, in the order of the files' lines, and a manifest."""

    train: tuple[TrainingExample, ...]
    validation: tuple[TrainingExample, ...]
    manifest: Mapping[str, Any]

    @classmethod
    def of(
        cls, train: Iterable[TrainingExample], validation: Iterable[TrainingExample] = ()
    ) -> TrainingSet:
        """Return a set of these examples; its manifest describes only the files."""
        splits = {TRAIN: tuple(train), VALIDATION: tuple(validation)}
        files = {name: file_entry(split) for name, split in splits.items()}
        manifest = {"format": FORMAT, "prompt_hash": prompt_hash(), "files": files}
        return cls(splits[TRAIN], splits[VALIDATION], manifest)

    @property
    def examples(self) -> tuple[TrainingExample, ...]:
        """The examples of both splits."""
        return self.train + self.validation


def check_target(folder: Path, *, force: bool = False) -> None:
    """Raise ``InputError`` if a set cannot be written to a folder.

    The folder must be missing or empty; with ``force`` it may hold a set, but nothing else.
    """
    existing = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    if not existing.is_dir():
        raise InputError(f"{folder} cannot be written: {existing} is a file. Give another folder.")
    # A set is first written to a temporary folder in ``parent``.
    parent = folder.absolute().parent if existing == folder.absolute() else existing
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{folder} cannot be written: you may not write to {parent}.")
    names = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    if names and (MANIFEST not in names or not names <= _FILES):
        foreign = min(names - _FILES or names)
        raise InputError(
            f"{folder} is not empty: it holds {foreign}, and not just a complete training set. "
            "Give an empty or a new folder."
        )
    if names and not force:
        raise InputError(
            f"{folder} holds a training set already. Give another folder, or --force to replace it."
        )


def write_training_set(new_set: TrainingSet, folder: Path, *, force: bool = False) -> None:
    """Write a set completely or not at all, to a folder that ``check_target`` allows."""
    check_target(folder, force=force)
    parent = folder.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(
            prefix=f".{folder.name}-", dir=parent, ignore_cleanup_errors=True
        ) as temporary:
            # A subfolder becomes the set's folder, since no other user may read the temporary one.
            new_folder, old_folder = Path(temporary, "new"), Path(temporary, "old")
            new_folder.mkdir()
            for name, examples in ((TRAIN, new_set.train), (VALIDATION, new_set.validation)):
                with (new_folder / name).open("w", encoding="utf-8", newline="\n") as file:
                    file.writelines(_json_lines(examples))
            (new_folder / MANIFEST).write_text(manifest_text(new_set.manifest), encoding="utf-8")
            if folder.exists():
                folder.replace(old_folder)
            try:
                new_folder.replace(folder)
            except OSError:
                if old_folder.exists():
                    old_folder.replace(folder)
                raise
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error.strerror}. Give a folder that you may write to."
        ) from error


def read_training_set(folder: Path) -> TrainingSet:
    """Return the training set that a folder holds.

    Raises ``InputError`` if the folder holds no set, a file's hash differs from the manifest's, or
    the set was made with another template of the planner's prompt; the message names the file.
    """
    file = folder / MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{folder} holds no training set: {MANIFEST} cannot be read ({error}). Give a folder "
            "that casewright finetune data wrote."
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{file} is no manifest of format {FORMAT}. {_ADVICE}.")
    try:
        if manifest["prompt_hash"] != prompt_hash():
            raise InputError(
                f"{file}: the set was made with another template of the planner's "
                f"prompt ({manifest['prompt_hash']}; this version's is {prompt_hash()}). {_ADVICE}."
            )
        hashes = {name: manifest["files"][name]["sha256"] for name in (TRAIN, VALIDATION)}
    except (KeyError, TypeError) as error:
        raise InputError(f"{file} lacks {error}. {_ADVICE}.") from error
    train, validation = (_read_examples(folder / name, sha) for name, sha in hashes.items())
    return TrainingSet(train, validation, manifest)


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """Return the text of the manifest's file."""
    return json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"


def manifest_hash(manifest: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits of a hash of the manifest, and so of the whole set."""
    return hashlib.sha256(manifest_text(manifest).encode()).hexdigest()[:16]


def file_entry(examples: Iterable[TrainingExample]) -> dict[str, Any]:
    """Return the manifest's entry for a file of these examples: number of rows and SHA-256."""
    digest, rows = hashlib.sha256(), 0
    for line in _json_lines(examples):
        digest.update(line.encode())
        rows += 1
    return {"rows": rows, "sha256": digest.hexdigest()}


def _json_lines(examples: Iterable[TrainingExample]) -> Iterator[str]:
    for example in examples:
        line = json.dumps(example.to_row(), ensure_ascii=False)
        try:
            check_text(line)
        except InputError as error:
            raise InputError(f"Example {example.id!a}, from {example.source!a}: {error}") from error
        yield line + "\n"


def _read_examples(file: Path, expected_hash: str) -> tuple[TrainingExample, ...]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}. {_ADVICE}.") from error
    if hashlib.sha256(data).hexdigest() != expected_hash:
        raise InputError(
            f"{file} is not the file that was written: its SHA-256 is not the manifest's. "
            f"{_ADVICE}."
        )
    lines = data.decode().split("\n")
    return tuple(TrainingExample.from_row(json.loads(line)) for line in lines if line)
