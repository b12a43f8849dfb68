"""The output of a training: ``log.jsonl`` and a bar; the libraries are silent."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.stores.progress import progress_bar

if TYPE_CHECKING:
    from transformers import TrainerCallback


_LIBRARIES = ("transformers", "trl", "peft", "accelerate", "torch.distributed")


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Keep warnings, logs and bars of the training libraries off the terminal."""
    # Importing them sets their loggers' levels.
    library: Any = import_module("transformers.utils.logging")
    data: Any = import_module("datasets")
    import_module("trl")
    loggers = {logging.getLogger(name): logging.getLogger(name).level for name in _LIBRARIES}
    bars = library.is_progress_bar_enabled(), not data.utils.are_progress_bars_disabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.disable_progress_bar()
        data.disable_progress_bars()
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in loggers.items():
                logger.setLevel(level)
            if bars[0]:
                library.enable_progress_bar()
            if bars[1]:
                data.enable_progress_bars()


LOG = "log.jsonl"
#: transformers' and TRL's names of the logged figures, and ours.
_FIELDS = {
    "loss": "loss",
    "eval_loss": "validation_loss",
    "learning_rate": "learning_rate",
    "grad_norm": "gradient_norm",
    "mean_token_accuracy": "token_accuracy",
}
_MEND = "Lower training.learning_rate or training.max_grad_norm, and train into another folder."


class TrainingLog:
    """The file ``log.jsonl``: a JSON object a line, each with its step.

    Args:
        steps: Lines of later steps are removed first: they are of a run that was killed after its
            last checkpoint. 0 empties the file.

    Attributes:
        before: The validation loss before the first step, where the file already has it.
    """

    def __init__(self, file: Path, steps: int) -> None:
        self._file = file
        self.before: float | None = None
        lines = []
        if steps and file.is_file():
            for line in file.read_text(encoding="utf-8").splitlines():
                # The last line of a killed run may be half a line.
                try:
                    facts = json.loads(line)
                    if facts["step"] > steps:
                        continue
                    if facts["step"] == 0:
                        self.before = facts["validation_loss"]
                    lines.append(line)
                except (ValueError, KeyError, TypeError):
                    continue
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def add(self, step: int, figures: Mapping[str, Any]) -> None:
        """Add a line of the figures that are logged."""
        facts = {own: figures[name] for name, own in _FIELDS.items() if name in figures}
        if facts:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, **facts}) + "\n")


def telling_callback(
    log: TrainingLog | None, *, show: bool | None, minutes: float | None = None
) -> TrainerCallback:
    """Return a callback that advances a bar, writes the log, and stops a bad or late training.

    Args:
        log: ``None`` in all processes but the first.
        show: Of ``progress_bar``; without a log nothing is shown.
        minutes: The training ends, as if it was finished, after the first step that ends so long
            after this call.
    """
    from transformers import TrainerCallback

    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes

    class Callback(TrainerCallback):
        def __init__(self) -> None:
            self._open = ExitStack()
            self._advance: Callable[[int], None] = lambda count: None

        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            bar = progress_bar("Training", state.max_steps, show=show if log else False)
            self._advance = self._open.enter_context(bar)
            self._advance(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            self._advance(1)
            if time.monotonic() >= deadline:
                control.should_training_stop = True

        def on_log(
            self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any
        ) -> None:
            figures = logs or {}
            if log is not None:
                log.add(state.global_step, figures)
            for name in ("loss", "grad_norm", "train_loss"):
                value = figures.get(name)
                if value is not None and not math.isfinite(value):
                    raise InputError(
                        f"The training went astray: {name} is {value} at step "
                        f"{state.global_step}. Nothing was saved. {_MEND}"
                    )

        def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            self._open.close()

    return Callback()


def check_learned(before: float | None, after: float | None, vocabulary: int) -> None:
    """Raise ``InputError`` if the validation loss rose above that of a guess, or is not finite.

    Losses are in nats a token, ``None`` where they were not measured; a uniform guess among the
    vocabulary has its logarithm.
    """
    guess = max(before or 0.0, math.log(vocabulary))
    if after is not None and not (math.isfinite(after) and after <= guess):
        raise InputError(
            f"The training went astray: the validation loss was {before or math.nan:.4g} before "
            f"and is {after:.4g} after it, more than a guess has. Nothing was saved. {_MEND}"
        )
