"""A training's recipe, data, output folder and checkpoints."""

from __future__ import annotations

import json
import os
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

#: The name of the file that is written last into a checkpoint: the hashes of the other files.
HASHES = "casewright-checkpoint.json"
#: The name of the file beside the checkpoints that holds ``Run.fingerprint``.
RUN = "run.json"
#: The names of the folders of checkpoints and of a new base.
CHECKPOINTS, BASE = "checkpoints", "base"
#: Key of a card: the SHA-256 of the start adapter's weights.
FROM = "from"
#: Key of a card: a part of the card of the start adapter, or else of the base.
TRAINED_BEFORE = "trained_before"


def write_hashes(checkpoint: Path) -> None:
    """Write the hashes of a checkpoint's files; call it when all files are complete."""
    files = sorted(file for file in checkpoint.rglob("*") if file.is_file() and file.name != HASHES)
    hashes = {str(file.relative_to(checkpoint)): sha256(file) for file in files}
    write_whole(checkpoint / HASHES, json.dumps(hashes, indent=1))


def last_complete(folder: Path) -> tuple[Path | None, list[Path]]:
    """Return the last checkpoint that matches its hashes, and the damaged checkpoints after it."""
    damaged: list[Path] = []
    for checkpoint in sorted(checkpoints_of(folder), key=steps_of, reverse=True):
        with suppress(OSError, ValueError, AttributeError):
            hashes = json.loads((checkpoint / HASHES).read_text(encoding="utf-8"))
            if hashes and all(sha256(checkpoint / name) == sha for name, sha in hashes.items()):
                return checkpoint, damaged
        damaged.append(checkpoint)
    return None, damaged


def steps_of(checkpoint: Path) -> int:
    """Return the number of steps after which a checkpoint was written."""
    return int(checkpoint.name.partition("-")[2])


def checkpoints_of(folder: Path) -> list[Path]:
    """Return all checkpoints in a folder, complete or not."""
    return [p for p in folder.glob("checkpoint-*/") if p.name.partition("-")[2].isdecimal()]


def check_writable(folder: Path) -> None:
    """Raise ``InputError`` if a folder can be neither written to nor created; create nothing."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise InputError(f"--output {folder}: {existing} is a file. Give a folder.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(
            f"--output {folder} cannot be written: you may not write to {existing}. "
            "Give a folder that you may write to."
        )


@dataclass(frozen=True, slots=True)
class Run:
    """A training: its recipe's sections, data, output folder, and the adapter to start from."""

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
    def base_name(self) -> str:
        """The base's name: of an absolute path only the folder's name, else ``model.base``."""
        base = Path(self.model.base).expanduser()
        return base.name if base.is_absolute() else self.model.base

    @property
    def _sections(self) -> dict[str, Any]:
        sections = {"model": self.model, "lora": self.lora, "training": self.training}
        return {n: s.model_dump(mode="json", exclude_none=True) for n, s in sections.items()}

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The settings and the hashes of data and prompt, which a resumed training must share."""
        settings = {
            f"{section}.{name}": value
            for section, fields in self._sections.items()
            for name, value in fields.items()
        }
        if self.start is not None:
            settings[FROM] = self.start.sha256
        return {**settings, "data": manifest_hash(self.data.manifest), "prompt": prompt_hash()}

    def card(
        self, metrics: Mapping[str, Any], base_card: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return the finished model's card.

        It includes a part of the start adapter's card. Without a start adapter, it includes a part
        of ``base_card``, which is ``None`` for a base that Casewright did not train.
        """
        earlier_card = (base_card if self.start is None else self.start.card) or {}
        names = ("base", "data", "recipe", "metrics", TRAINED_BEFORE, FROM)
        trained_before = {n: earlier_card[n] for n in names if n in earlier_card}
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
            **({TRAINED_BEFORE: trained_before} if trained_before else {}),
            **({FROM: self.start.sha256} if self.start else {}),
            "recipe": {**sections, "model": {**sections["model"], "base": self.base_name}},
            "metrics": dict(metrics),
        }

    def finished_card(self, *, resume: bool) -> dict[str, Any] | None:
        """Return the card in the output folder if this training is finished, else ``None``.

        ``InputError`` if the folder is a file or not writable, if it has files although ``resume``
        is false, or if its files are not of this training.
        """
        # Only the main process checks: other processes may already see the files that it writes.
        if rank():
            return read_card(self.output) if resume else None
        check_writable(self.output)
        names = {file.name for file in self.output.glob("*")}
        if not names:
            return None
        card = read_card(self.output)
        inner_names = {file.name for file in self.checkpoints.glob("*")}
        # A training that was killed early may have no file ``RUN``, or an unfinished one.
        has_run = RUN in inner_names
        has_training = has_run or (names == {CHECKPOINTS} and inner_names <= {f"{RUN}.new"})
        if card is None and not has_training:
            raise InputError(
                f"--output {self.output} is not empty, and holds no training: there is "
                f"{sorted(names)[0]!r} in it. Give an empty or a new folder."
            )
        is_unfinished = has_training and names <= {CHECKPOINTS, BASE, LOG}
        if is_unfinished and not checkpoints_of(self.checkpoints):
            # The training was killed before its first checkpoint.
            return None
        if not resume:
            raise InputError(
                f"--output {self.output} is not empty. Give another folder, or --resume to go on "
                "with the training in it."
            )
        if card is None:
            self._check_resumable()
            return None
        expected = self.card(metrics={}, base_card=None)
        if any(card.get(name) != expected.get(name) for name in ("recipe", "data", FROM)):
            raise InputError(
                f"--output {self.output} holds a finished training with another recipe, other "
                "data or another start. Give another folder."
            )
        return card

    def _check_resumable(self) -> None:
        """Raise ``InputError`` if the checkpoints are of another training."""
        file = self.checkpoints / RUN
        try:
            saved = dict(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"{file} cannot be read, so it is unknown which training wrote the checkpoints "
                "beside it. Train into another folder."
            ) from error
        current = self.fingerprint
        for name in sorted(current.keys() | saved.keys()):
            values = saved.get(name), current.get(name)
            old, new = (json.dumps(value, ensure_ascii=False) for value in values)
            if old != new:
                raise InputError(
                    f"{str(self.output)!r} holds the checkpoints of another training: {name} was "
                    f"{old:.60} and is {new:.60}. Resume with the recipe and data that it was "
                    "started with, or train into another folder."
                )
