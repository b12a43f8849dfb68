"""One training: what is trained, on what, and into which folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright import __version__
from casewright.errors import InputError
from casewright.finetune.examples.training_set import TrainingSet, manifest_hash
from casewright.finetune.recipe.training_section import LoraSection, ModelSection, TrainingSection
from casewright.finetune.training.checkpoints import check_run, checkpoints_of, is_begun
from casewright.finetune.training.log import LOG
from casewright.finetune.training.model_card import TRAINED_BEFORE
from casewright.finetune.training.output_folder import check_writable
from casewright.finetune.training.ranks import rank
from casewright.planner.language_model.card import read_card
from casewright.planner.prompt_hash import prompt_hash

CHECKPOINTS, BASE = "checkpoints", "base"


@dataclass(frozen=True, slots=True)
class Run:
    """A training.

    Attributes:
        model: What it starts from.
        lora: What of it is trained.
        training: How.
        data: On what.
        output: Where to.
    """

    model: ModelSection
    lora: LoraSection
    training: TrainingSection
    data: TrainingSet
    output: Path

    @property
    def whole(self) -> bool:
        """Whether all weights are trained."""
        return self.lora.method == "full"

    @property
    def checkpoints(self) -> Path:
        """The folder for checkpoints; it is there while the training is not finished."""
        return self.output / CHECKPOINTS

    @property
    def new_base(self) -> Path:
        """The folder for a new base: an adapter needs it for ever, a whole model does not."""
        return (self.checkpoints if self.whole else self.output) / BASE

    @property
    def recipe(self) -> dict[str, Any]:
        """The sections, JSON-plain, as the card tells them."""
        return {**self._sections, "model": {**self._sections["model"], "base": self._base_told}}

    @property
    def _sections(self) -> dict[str, Any]:
        return {
            "model": self.model.model_dump(mode="json", exclude_none=True),
            "lora": self.lora.model_dump(mode="json", exclude_none=True),
            "training": self.training.model_dump(mode="json", exclude_none=True),
        }

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What a resumed training has in common with the one before."""
        settings = {
            f"{section}.{name}": value
            for section, fields in self._sections.items()
            for name, value in fields.items()
        }
        return {**settings, "data": manifest_hash(self.data.manifest), "prompt": prompt_hash()}

    @property
    def _base_told(self) -> str:
        # Where a folder lies is this machine's.
        base = Path(self.model.base).expanduser()
        return base.name if base.is_absolute() else self.model.base

    def card(
        self, metrics: Mapping[str, Any], base_card: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return the finished model's card.

        Args:
            metrics: Figures of the training.
            base_card: The base's own, where it was trained here before: what was learned then is
                in this model too.
        """
        own = base_card or {}
        before = {name: own[name] for name in ("base", "data", TRAINED_BEFORE) if name in own}
        return {
            "casewright": __version__,
            "kind": "model" if self.whole else "adapter",
            "base": self._base_told,
            "prompt_hash": prompt_hash(),
            "data": {
                "manifest_hash": manifest_hash(self.data.manifest),
                "manifest": dict(self.data.manifest),
            },
            **({TRAINED_BEFORE: before} if base_card else {}),
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
        told = card.get("data")
        data = told.get("manifest_hash") if isinstance(told, dict) else None
        if card.get("recipe") != self.recipe or data != manifest_hash(self.data.manifest):
            raise InputError(
                f"--output {self.output} holds a finished training with another recipe or other "
                "data. Give another folder."
            )
        return card
