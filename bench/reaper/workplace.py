"""A run's folder with a cache of training sets, trained planners and figures.

Each name ends in a hash of its settings: an interrupted run can be continued, and runs with other
settings do not overwrite anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright import __version__
from casewright.bench.reaper.rows import Training
from casewright.errors import InputError
from casewright.finetune.recipe.recipe import Recipe
from casewright.planner.prompt import prompt_hash
from casewright.stores import Encoder
from casewright.stores.whole_file import write_whole

SETS, PLANNERS, FIGURES = "sets", "planners", "figures"


@dataclass(frozen=True, slots=True)
class Trained:
    """The planner of a training: its folder, and the metrics of its card."""

    folder: Path
    metrics: Mapping[str, Any]


class Workplace:
    """The cache of a run; ``steps`` of each training replace the recipe's.

    Raises:
        InputError: The folder cannot be written.
    """

    def __init__(
        self, folder: Path, recipe: Recipe, encoder: Encoder, *, steps: int | None = None
    ) -> None:
        self._folder = folder.expanduser().absolute()
        self._recipe = recipe
        self._encoder = encoder
        update = {} if steps is None else {"steps": steps, "epochs": None}
        self.training = recipe.training.model_copy(update=update)
        try:
            for name in (SETS, PLANNERS, FIGURES):
                (self._folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"--work {folder} cannot be written: {error.strerror}. Give a folder that you may "
                "write to."
            ) from error

    def trained(self, training: Training) -> Trained:
        """Return a training's planner; train it, or continue its training, if necessary."""
        from casewright.finetune.training.train import train

        recipe = self._recipe
        identity = {
            **training.identity,
            "lora": recipe.lora.model_dump(mode="json"),
            "training": self.training.model_dump(mode="json"),
            "model": recipe.model.model_dump(mode="json"),
            "prompt": prompt_hash(),
        }
        output = self._folder / PLANNERS / f"{training.name}-{digest(identity)}"
        data = self._set(training)
        result = train(recipe.model, recipe.lora, self.training, data, output, resume=True)
        return Trained(result.folder, result.card["metrics"])

    def cached(
        self, name: str, identity: Mapping[str, Any], measure: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the cached figures, JSON-plain, of a key, or measure and cache them."""
        key = {**identity, "casewright": __version__, "prompt": prompt_hash()}
        file = self._folder / FIGURES / f"{name}-{digest(key)}.json"
        try:
            return dict(json.loads(file.read_text(encoding="utf-8"))["figures"])
        except (OSError, ValueError, KeyError, TypeError):
            # Missing or damaged.
            figures = measure()
        write_whole(file, json.dumps({"of": key, "figures": figures}, indent=1) + "\n")
        return figures

    def _set(self, training: Training) -> Path:
        from casewright.finetune.examples.make_training_set import make_training_set
        from casewright.finetune.examples.training_set import MANIFEST, write_training_set

        folder = self._folder / SETS / f"{training.name}-{digest(training.identity)}"
        if not (folder / MANIFEST).is_file():
            examples = make_training_set(training.data, training.ingredients, self._encoder)
            write_training_set(examples, folder)
        return folder


def digest(value: Any) -> str:
    """Return a hash of a JSON-plain value: 12 hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def fingerprint(folder: Path) -> str:
    """Return a hash of the names, sizes and times of a model's files."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return digest(
        [(str(f.relative_to(folder)), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    )
