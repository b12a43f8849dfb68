"""One training: what is trained, on what, and into which folder."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright import __version__
from casewright.errors import InputError
from casewright.finetune.examples.training_set import TrainingSet, manifest_hash
from casewright.finetune.recipe.training_section import LoraSection, ModelSection, TrainingSection
from casewright.finetune.training.base import WarmStart
from casewright.finetune.training.log import LOG
from casewright.finetune.training.placement import rank
from casewright.planner.language_model.card import read_card
from casewright.planner.prompt_hash import prompt_hash
from casewright.stores.whole_file import write_whole

#: In a checkpoint's folder, written last: its other files with their hashes.
WHOLE = "casewright-checkpoint.json"
#: Beside the checkpoints: what is trained, on what.
RUN = "run.json"
_FOLDER = re.compile(r"checkpoint-(\d+)")


def seal(checkpoint: Path) -> None:
    """Declare a checkpoint whole, once all its files are written."""
    files = sorted(file for file in checkpoint.rglob("*") if file.is_file() and file.name != WHOLE)
    hashes = {str(file.relative_to(checkpoint)): _hash(file) for file in files}
    write_whole(checkpoint / WHOLE, json.dumps(hashes, indent=1))


def last_whole(folder: Path) -> tuple[Path | None, list[Path]]:
    """Return the last checkpoint that is whole, and those after it that are not."""
    damaged: list[Path] = []
    for checkpoint in sorted(checkpoints_of(folder), key=steps_of, reverse=True):
        if _is_whole(checkpoint):
            return checkpoint, damaged
        damaged.append(checkpoint)
    return None, damaged


def steps_of(checkpoint: Path) -> int:
    """Return after how many steps a checkpoint was written."""
    return int(checkpoint.name.partition("-")[2])


def checkpoints_of(folder: Path) -> list[Path]:
    """Return all checkpoints in a folder, whole or not."""
    folders = folder.iterdir() if folder.is_dir() else ()
    return [path for path in folders if path.is_dir() and _FOLDER.fullmatch(path.name)]


def check_run(folder: Path, run: Mapping[str, Any]) -> None:
    """Compare what is to be trained with what the checkpoints in a folder are of.

    Raises:
        InputError: They are of another training; the first difference is named.
    """
    file = folder / RUN
    if not file.is_file():
        return
    try:
        before = dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{file} cannot be read, so that nothing says what the checkpoints beside it are of. "
            "Train into another folder."
        ) from error
    # As JSON has it, since that is what is compared with.
    now = json.loads(json.dumps(run))
    for name in sorted(now.keys() | before.keys()):
        if now.get(name) != before.get(name):
            raise InputError(
                f"{str(folder.parent)!r} holds the checkpoints of another training: {name} was "
                f"{_short(before.get(name))} and is {_short(now.get(name))}. Resume with the "
                "recipe and data that it was started with, or train into another folder."
            )


def is_begun(folder: Path) -> bool:
    """Return whether a training has begun to keep its checkpoints in a folder."""
    return (folder / RUN).is_file()


def write_run(folder: Path, run: Mapping[str, Any]) -> None:
    """Write the fingerprint of the training whose checkpoints a folder will hold."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / RUN, json.dumps(run, ensure_ascii=False, indent=1))


def _is_whole(checkpoint: Path) -> bool:
    try:
        hashes = json.loads((checkpoint / WHOLE).read_text(encoding="utf-8"))
        return bool(hashes) and all(_hash(checkpoint / n) == h for n, h in hashes.items())
    except (OSError, ValueError, AttributeError):
        return False


def _hash(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


def check_writable(folder: Path) -> None:
    """Check that a folder may be written to, or may be made; make nothing.

    Raises:
        InputError: It is a file or below one, or may not be written to.
    """
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"--output {folder}: {there} is a file. Give a folder.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            f"--output {folder} cannot be written: {there} is closed to you. "
            "Give a folder that you may write to."
        )


CHECKPOINTS, BASE = "checkpoints", "base"
#: Keys of a card: the SHA-256 of the weights that the training started from, and the card of the
#: base, or of the adapter that was started from.
FROM, TRAINED_BEFORE = "from", "trained_before"


@dataclass(frozen=True, slots=True)
class Run:
    """A training.

    Attributes:
        output: Where to.
        start: The adapter whose weights it starts from, if any.
    """

    model: ModelSection
    lora: LoraSection
    training: TrainingSection
    data: TrainingSet
    output: Path
    start: WarmStart | None = None

    @property
    def checkpoints(self) -> Path:
        """The folder for checkpoints; it is there while the training is not finished."""
        return self.output / CHECKPOINTS

    @property
    def new_base(self) -> Path:
        """The folder for a new base."""
        return self.output / BASE

    @property
    def base_told(self) -> str:
        """The base's name; where a folder lies is this machine's."""
        base = Path(self.model.base).expanduser()
        return base.name if base.is_absolute() else self.model.base

    @property
    def recipe(self) -> dict[str, Any]:
        """The sections, JSON-plain, as the card tells them."""
        return {**self._sections, "model": {**self._sections["model"], "base": self.base_told}}

    @property
    def _sections(self) -> dict[str, Any]:
        sections = {"model": self.model, "lora": self.lora, "training": self.training}
        return {n: own.model_dump(mode="json", exclude_none=True) for n, own in sections.items()}

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The settings that a resumed training has in common with the one before."""
        settings = {
            f"{section}.{name}": value
            for section, fields in self._sections.items()
            for name, value in fields.items()
        }
        if self.start is not None:
            settings["from"] = self.start.sha256
        return {**settings, "data": manifest_hash(self.data.manifest), "prompt": prompt_hash()}

    def card(
        self, metrics: Mapping[str, Any], base_card: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return the finished model's card.

        Args:
            base_card: The base's own, where it was trained here before: what was learned then is
                in this model too. The card of the adapter that it started from holds it already.
        """
        own = base_card if self.start is None else self.start.card
        kept = ("base", "data", "recipe", "metrics", TRAINED_BEFORE, FROM)
        before = {} if own is None else {TRAINED_BEFORE: {n: own[n] for n in kept if n in own}}
        return {
            "casewright": __version__,
            "kind": "adapter",
            "base": self.base_told,
            "prompt_hash": prompt_hash(),
            "data": {
                "manifest_hash": manifest_hash(self.data.manifest),
                "manifest": dict(self.data.manifest),
            },
            **before,
            **({FROM: self.start.sha256} if self.start else {}),
            "recipe": self.recipe,
            "metrics": dict(metrics),
        }

    def finished(self, *, resume: bool) -> dict[str, Any] | None:
        """Look at the output folder; return the card of this training where it is finished.

        Raises:
            InputError: The folder is none, is not empty and is not to be resumed, or holds
                another training.
        """
        # What the first process has just written is no surprise to the others.
        if rank():
            return read_card(self.output) if resume else None
        check_writable(self.output)
        held = {file.name for file in self.output.iterdir()} if self.output.is_dir() else set()
        if not held:
            return None
        card, begun = read_card(self.output), is_begun(self.checkpoints)
        if card is None and not begun:
            raise InputError(
                f"--output {self.output} is not empty, and holds no training: there is "
                f"{sorted(held)[0]!r} in it. Give an empty or a new folder."
            )
        if begun and held <= {CHECKPOINTS, BASE, LOG} and not checkpoints_of(self.checkpoints):
            # Left by a training that did not get to its first checkpoint.
            return None
        if not resume:
            raise InputError(
                f"--output {self.output} is not empty. Give another folder, or --resume to go on "
                "with the training in it."
            )
        if card is None:
            check_run(self.checkpoints, self.fingerprint)
            return None
        facts = card.get("data")
        data = facts.get("manifest_hash") if isinstance(facts, dict) else None
        mine = self.card({}, None)
        if (card.get("recipe"), data, card.get(FROM)) != (
            *(mine["recipe"], mine["data"]["manifest_hash"], mine.get(FROM)),
        ):
            raise InputError(
                f"--output {self.output} holds a finished training with another recipe, other "
                "data or another start. Give another folder."
            )
        return card
