"""A training set, in memory and as a folder of two JSON Lines files and a manifest."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample
from casewright.planner.prompt_hash import prompt_hash
from casewright.stores.case import check_text

FORMAT = 1
MANIFEST, TRAIN, VALIDATION = "manifest.json", "train.jsonl", "validation.jsonl"
_OWN = frozenset({MANIFEST, TRAIN, VALIDATION})
_ANEW = "Make the set anew: casewright finetune data"


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Examples to train with and to validate with.

    Attributes:
        train: In the order in which they are written.
        validation: Of other queries than those trained on; may be empty.
        manifest: What the set was made of, and what is in it; JSON-plain.
    """

    train: tuple[TrainingExample, ...]
    validation: tuple[TrainingExample, ...]
    manifest: Mapping[str, Any]

    @classmethod
    def of(
        cls, train: Iterable[TrainingExample], validation: Iterable[TrainingExample] = ()
    ) -> TrainingSet:
        """Return a set of some examples; its manifest describes the files alone."""
        parts = {TRAIN: tuple(train), VALIDATION: tuple(validation)}
        files = {name: file_entry(part) for name, part in parts.items()}
        manifest = {"format": FORMAT, "prompt_hash": prompt_hash(), "files": files}
        return cls(parts[TRAIN], parts[VALIDATION], manifest)

    @property
    def examples(self) -> tuple[TrainingExample, ...]:
        """The examples of both sides."""
        return self.train + self.validation


def check_target(folder: Path, *, force: bool = False) -> None:
    """Check that a set may be written to a folder, before long work; make nothing.

    A folder that is absent or empty may be; one that holds a set and nothing else, by ``force``.

    Raises:
        InputError: It may not be.
    """
    there = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    if not there.is_dir():
        raise InputError(f"{folder} cannot be written: {there} is a file. Give another folder.")
    # A set is written beside its folder, then renamed.
    location = folder.absolute().parent if there == folder.absolute() else there
    if not os.access(location, os.W_OK | os.X_OK):
        raise InputError(f"{folder} cannot be written: you may not write to {location}.")
    held = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    if held and (MANIFEST not in held or not held <= _OWN):
        stranger = sorted(held - _OWN or held)[0]
        raise InputError(
            f"{folder} is not empty: it holds {stranger}, which is no part of a training set. "
            "Give an empty or a new folder."
        )
    if held and not force:
        raise InputError(
            f"{folder} holds a training set already. Give another folder, or --force to replace it."
        )


def write_training_set(made: TrainingSet, folder: Path, *, force: bool = False) -> None:
    """Write a set whole or not at all: beside its folder first, then in its place.

    Args:
        folder: Absent or empty; by ``force`` it may also hold a set, which is replaced.

    Raises:
        InputError: The folder may not be written, or holds something else.
    """
    check_target(folder, force=force)
    beside = folder.absolute().parent
    try:
        beside.mkdir(parents=True, exist_ok=True)
        path = Path(mkdtemp(prefix=f".{folder.name}-", dir=beside))
        try:
            # What mkdtemp makes is for its owner alone; what is made in it is not.
            new, old = path / "new", path / "old"
            new.mkdir()
            for name, examples in ((TRAIN, made.train), (VALIDATION, made.validation)):
                with (new / name).open("w", encoding="utf-8", newline="\n") as file:
                    file.writelines(_lines(examples))
            (new / MANIFEST).write_text(manifest_text(made.manifest), encoding="utf-8")
            if folder.exists():
                folder.replace(old)
            try:
                new.replace(folder)
            except OSError:
                if old.exists():
                    old.replace(folder)
                raise
        finally:
            shutil.rmtree(path, ignore_errors=True)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error.strerror}. Give a folder that you may write to."
        ) from error


def read_training_set(folder: Path) -> TrainingSet:
    """Read a set, and check that it is the one that was written.

    Raises:
        InputError: It is none, a file is not the one that the manifest knows, or it was made with
            another form of the planner's prompt; names the file and what to do.
    """
    manifest = _read_manifest(folder)
    try:
        if manifest["prompt_hash"] != prompt_hash():
            raise InputError(
                f"{folder / MANIFEST}: the set was made with another form of the planner's prompt "
                f"({manifest['prompt_hash']}; this version's is {prompt_hash()}). {_ANEW}."
            )
        known = {name: manifest["files"][name]["sha256"] for name in (TRAIN, VALIDATION)}
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / MANIFEST} lacks {error}. {_ANEW}.") from error
    train, validation = (_read_examples(folder / name, own) for name, own in known.items())
    return TrainingSet(train, validation, manifest)


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """Return the manifest as it is written."""
    return json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"


def manifest_hash(manifest: Mapping[str, Any]) -> str:
    """Return a hash of the manifest, and so of all that is in the set: 16 hexadecimal digits."""
    return hashlib.sha256(manifest_text(manifest).encode()).hexdigest()[:16]


def file_entry(examples: Iterable[TrainingExample]) -> dict[str, Any]:
    """Return what a manifest says of the file of these examples: its rows and its SHA-256.

    Raises:
        InputError: An example has text that no file can hold; names the example.
    """
    digest, rows = hashlib.sha256(), 0
    for line in _lines(examples):
        digest.update(line.encode())
        rows += 1
    return {"rows": rows, "sha256": digest.hexdigest()}


def _lines(examples: Iterable[TrainingExample]) -> Iterator[str]:
    for example in examples:
        line = json.dumps(example.to_row(), ensure_ascii=False)
        try:
            check_text(line)
        except InputError as error:
            # A tool's description, for one, which is in the prompts of many.
            raise InputError(f"Example {example.id!a}, from {example.source!a}: {error}") from error
        yield line + "\n"


def _read_manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{folder} holds no training set: {MANIFEST} cannot be read ({error}). Give a folder "
            "that casewright finetune data wrote."
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{file} is no manifest of format {FORMAT}. {_ANEW}.")
    return manifest


def _read_examples(file: Path, digest: str) -> tuple[TrainingExample, ...]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}. {_ANEW}.") from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise InputError(
            f"{file} is not the file that was written: its SHA-256 is not the manifest's. {_ANEW}."
        )
    return tuple(
        TrainingExample.from_row(json.loads(line)) for line in data.decode().split("\n") if line
    )
