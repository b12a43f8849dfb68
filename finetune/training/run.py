"""One training: its recipe, its data, its output folder, its checkpoints."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright import __version__
from casewright.errors import InputError
from casewright.finetune.examples.training_set import TrainingSet, manifest_hash
from casewright.finetune.recipe.training_section import LoraSection, ModelSection, TrainingSection
from casewright.finetune.training.base import WarmStart, sha256
from casewright.finetune.training.log import LOG
from casewright.finetune.training.placement import rank
from casewright.planner.language_model.card import read_card
from casewright.planner.prompt import prompt_hash
from casewright.stores.whole_file import write_whole

#: In a checkpoint's folder, written last: its other files with their hashes.
WHOLE = "casewright-checkpoint.json"
#: Beside the checkpoints: the fingerprint of their training.
RUN = "run.json"
_FOLDER = re.compile(r"checkpoint-(\d+)")


def seal(checkpoint: Path) -> None:
    """Declare a checkpoint whole, once all its files are written."""
    files = sorted(file for file in checkpoint.rglob("*") if file.is_file() and file.name != WHOLE)
    hashes = {str(file.relative_to(checkpoint)): sha256(file) for file in files}
    write_whole(checkpoint / WHOLE, json.dumps(hashes, indent=1))


def last_whole(folder: Path) -> tuple[Path | None, list[Path]]:
    """Return the last whole checkpoint, and the damaged ones after it."""
    damaged: list[Path] = []
    for checkpoint in sorted(checkpoints_of(folder), key=steps_of, reverse=True):
        with suppress(OSError, ValueError, AttributeError):
            hashes = json.loads((checkpoint / WHOLE).read_text(encoding="utf-8"))
            if hashes and all(sha256(checkpoint / n) == h for n, h in hashes.items()):
                return checkpoint, damaged
        damaged.append(checkpoint)
    return None, damaged


def steps_of(checkpoint: Path) -> int:
    """Return the number of steps before a checkpoint."""
    return int(checkpoint.name.partition("-")[2])


def checkpoints_of(folder: Path) -> list[Path]:
    """Return all checkpoints in a folder, whole or not."""
    folders = folder.iterdir() if folder.is_dir() else ()
    return [path for path in folders if path.is_dir() and _FOLDER.fullmatch(path.name)]


def write_run(folder: Path, run: Mapping[str, Any]) -> None:
    """Write the fingerprint of the training whose checkpoints a folder will hold."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / RUN, json.dumps(run, ensure_ascii=False, indent=1))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


def check_writable(folder: Path) -> None:
    """Raise ``InputError`` if a folder cannot be written to, nor made; make nothing."""
    parent = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not parent.is_dir():
        raise InputError(f"--output {folder}: {parent} is a file. Give a folder.")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(
            f"--output {folder} cannot be written: you may not write to {parent}. "
            "Give a folder that you may write to."
        )


CHECKPOINTS, BASE = "checkpoints", "base"
#: Keys of a card: the SHA-256 of the weights that the training started from, and the card of the
#: base, or of the adapter that was started from.
FROM, TRAINED_BEFORE = "from", "trained_before"


@dataclass(frozen=True, slots=True)
class Run:
    """A training: a recipe's sections, the data, the output folder, an adapter to start from."""

    model: ModelSection
    lora: LoraSection
    training: TrainingSection
    data: TrainingSet
    output: Path
    start: WarmStart | None = None

    @property
    def checkpoints(self) -> Path:
        """The folder for checkpoints; it exists while the training is not finished."""
        return self.output / CHECKPOINTS

    @property
    def new_base(self) -> Path:
        """The folder for a new base."""
        return self.output / BASE

    @property
    def base_name(self) -> str:
        """The base's name, without the path of a folder on this machine."""
        base = Path(self.model.base).expanduser()
        return base.name if base.is_absolute() else self.model.base

    @property
    def _sections(self) -> dict[str, Any]:
        sections = {"model": self.model, "lora": self.lora, "training": self.training}
        return {n: own.model_dump(mode="json", exclude_none=True) for n, own in sections.items()}

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The settings that a resumed training shares with the one before."""
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
            base_card: The base's own, where it was trained here before: this model has learned
                from that data too. The card of the adapter to start from already includes it.
        """
        earlier = base_card if self.start is None else self.start.card
        names = ("base", "data", "recipe", "metrics", TRAINED_BEFORE, FROM)
        sections = self._sections
        return {
            "casewright": __version__,
            "kind": "adapter",
            "base": self.base_name,
            "prompt_hash": prompt_hash(),
            "data": {
                "manifest_hash": manifest_hash(self.data.manifest),
                "manifest": dict(self.data.manifest),
            },
            **(
                {TRAINED_BEFORE: {n: earlier[n] for n in names if n in earlier}}
                if earlier is not None
                else {}
            ),
            **({FROM: self.start.sha256} if self.start else {}),
            "recipe": {**sections, "model": {**sections["model"], "base": self.base_name}},
            "metrics": dict(metrics),
        }

    def finished(self, *, resume: bool) -> dict[str, Any] | None:
        """Return this training's card if the output folder holds it finished.

        Raises:
            InputError: The folder is none, is not empty and is not to be resumed, or holds
                another training.
        """
        # Other processes expect the files that the first one has just written.
        if rank():
            return read_card(self.output) if resume else None
        check_writable(self.output)
        names = {file.name for file in self.output.iterdir()} if self.output.is_dir() else set()
        if not names:
            return None
        card, folder = read_card(self.output), self.checkpoints
        held = {file.name for file in folder.iterdir()} if folder.is_dir() else {""}
        # A training that was killed at once has not yet written its fingerprint.
        begun = RUN in held or (names == {CHECKPOINTS} and held <= {f"{RUN}.new"})
        if card is None and not begun:
            raise InputError(
                f"--output {self.output} is not empty, and holds no training: there is "
                f"{sorted(names)[0]!r} in it. Give an empty or a new folder."
            )
        if begun and names <= {CHECKPOINTS, BASE, LOG} and not checkpoints_of(self.checkpoints):
            # Left by a training that did not get to its first checkpoint.
            return None
        if not resume:
            raise InputError(
                f"--output {self.output} is not empty. Give another folder, or --resume to go on "
                "with the training in it."
            )
        if card is None:
            self._check_resumable()
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

    def _check_resumable(self) -> None:
        """Raise ``InputError`` if the checkpoints are of another training."""
        file = self.checkpoints / RUN
        try:
            before = dict(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"{file} cannot be read, so that the training of the checkpoints beside it is "
                "unknown. Train into another folder."
            ) from error
        # Plain JSON, as in the file.
        now = json.loads(json.dumps(self.fingerprint))
        for name in sorted(now.keys() | before.keys()):
            if now.get(name) != before.get(name):
                raise InputError(
                    f"{str(self.output)!r} holds the checkpoints of another training: {name} was "
                    f"{_short(before.get(name))} and is {_short(now.get(name))}. Resume with the "
                    "recipe and data that it was started with, or train into another folder."
                )
