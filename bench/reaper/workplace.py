"""The folder of a run: bases, training sets, trained planners and figures, each made once.

Everything has a name of its own that ends in a hash of what it was made of. A run that was stopped
goes on where it was, and one with other settings leaves the others' work as it is.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from casewright import __version__
from casewright.bench.reaper.rows import Training
from casewright.errors import InputError
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.training_section import TrainingSection
from casewright.finetune.training.model_card import TRAINED_BEFORE
from casewright.planner.language_model.card import read_card
from casewright.planner.prompt_hash import prompt_hash
from casewright.stores import Encoder
from casewright.stores.whole_file import write_whole
from casewright.tools import NO_EVIDENCE, Toolbox

BASES, SETS, PLANNERS, FIGURES = "bases", "sets", "planners", "figures"


@dataclass(frozen=True, slots=True)
class Start:
    """What every row is trained from: a model's folder or name, and what tells its weights."""

    place: str
    identity: str


@dataclass(frozen=True, slots=True)
class Trained:
    """A planner that a row's training made: its folder, and what its card tells of the training."""

    folder: Path
    metrics: Mapping[str, Any]


class Workplace:
    """Makes what rows need, or finds it made.

    Args:
        folder: Where all of it is kept.
        recipe: How rows are trained; their data sections are their own.
        encoder: For training sets.
        steps: Of each training, instead of the recipe's.

    Raises:
        InputError: The folder cannot be written.
    """

    def __init__(
        self, folder: Path, recipe: Recipe, encoder: Encoder, *, steps: int | None = None
    ) -> None:
        self._folder = folder.expanduser().absolute()
        self._recipe = recipe
        self._encoder = encoder
        #: How rows are trained.
        self.training: TrainingSection = recipe.training
        if steps is not None:
            self.training = recipe.training.model_copy(update={"steps": steps, "epochs": None})
        try:
            for name in (BASES, SETS, PLANNERS, FIGURES):
                (self._folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"--work {folder} cannot be written: {error.strerror}. Give a folder that you may "
                "write to."
            ) from error

    def start(self, common: Training) -> Start:
        """Return what every row starts from: the recipe's base, or one new network for all.

        Args:
            common: Of queries that no row asks by: the tokenizer is trained on its set.
        """
        made = self._recipe.model.made
        if made is None:
            return Start(self._recipe.model.base, self._recipe.model.base)
        from casewright.finetune.examples.training_set import read_training_set
        from casewright.finetune.training.base import make_base
        from casewright.finetune.training.silence import silence

        seed = self.training.seed
        settings = made.model_dump(mode="json")
        name = f"base-{digest({'new': settings, 'seed': seed, **common.identity})}"
        folder = self._folder / BASES / name
        if not folder.is_dir():
            examples = read_training_set(self._set(common)).train
            new = Path(mkdtemp(prefix=f".{name}-", dir=folder.parent))
            try:
                with silence():
                    make_base(made, examples, seed, new / name)
                (new / name).replace(folder)
            finally:
                shutil.rmtree(new, ignore_errors=True)
        return Start(str(folder), name)

    def trained(self, training: Training, start: Start) -> Trained:
        """Train a row's planner, go on with its training, or find it trained."""
        from casewright.finetune.training.train import train

        identity = {
            **training.identity,
            "base": start.identity,
            "lora": self._recipe.lora.model_dump(mode="json"),
            "training": self.training.model_dump(mode="json"),
            "model": self._recipe.model.model_dump(mode="json"),
            "prompt": prompt_hash(),
        }
        result = train(
            self._recipe.model.based_on(start.place),
            self._recipe.lora,
            self.training,
            self._set(training),
            self._folder / PLANNERS / f"{training.name}-{digest(identity)}",
            resume=True,
        )
        return Trained(result.folder, result.card["metrics"])

    def kept(
        self, name: str, identity: Mapping[str, Any], make: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return figures, JSON-plain, that were measured before, or measure them and keep them.

        Args:
            name: Begins the file's name.
            identity: All that decides the figures.
            make: Measures.
        """
        told = {**identity, "casewright": __version__, "prompt": prompt_hash()}
        file = self._folder / FIGURES / f"{name}-{digest(told)}.json"
        if file.is_file():
            try:
                found = json.loads(file.read_text(encoding="utf-8"))["figures"]
                assert isinstance(found, dict)
                return found
            except (ValueError, KeyError, TypeError, AssertionError):
                # It was damaged; measuring again does no harm.
                pass
        made = make()
        write_whole(file, json.dumps({"of": told, "figures": made}, indent=1) + "\n")
        return made

    def _set(self, training: Training) -> Path:
        from casewright.finetune.examples.make_training_set import make_training_set
        from casewright.finetune.examples.training_set import MANIFEST, write_training_set

        folder = self._folder / SETS / f"{training.name}-{digest(training.identity)}"
        if not (folder / MANIFEST).is_file():
            made = make_training_set(training.data, training.given, self._encoder)
            write_training_set(made, folder)
        return folder


def given_start(folder: Path, toolbox: Toolbox) -> Start:
    """Return a model to start from, which was trained elsewhere.

    Its cards must not name a tool of the domain: what a row leaves out, the model would know
    already. A model without a card is taken as one that was trained on other things.

    Raises:
        InputError: It is no folder, or has learned to plan with these tools.
    """
    if not folder.is_dir():
        raise InputError(f"--start {folder} is no folder. Give a model's.")
    told: Any = read_card(folder)
    while isinstance(told, Mapping):
        data = told.get("data")
        manifest = data.get("manifest", {}) if isinstance(data, Mapping) else {}
        names = set(manifest.get("toolbox", {}).get("tools", ())) - {NO_EVIDENCE.name}
        if known := sorted(names & set(toolbox.names)):
            raise InputError(
                f"--start {folder} was trained to plan with {known[0]}, which is a tool of this "
                "domain: it knows what rows leave out. Give a model that was trained with other "
                "tools, or leave --start out."
            )
        told = told.get(TRAINED_BEFORE)
    place = folder.expanduser().absolute()
    return Start(str(place), f"start-{fingerprint(place)}")


def digest(value: Any) -> str:
    """Return a hash of a JSON-plain value: 12 hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def fingerprint(folder: Path) -> str:
    """Return what tells a model's files from others: their names, sizes and times."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    told = [(str(f.relative_to(folder)), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    return digest(told)
