"""The output of a training: ``log.jsonl`` and a progress bar; the libraries print nothing."""

from __future__ import annotations

import json
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.stores.progress import progress_bar

if TYPE_CHECKING:
    from transformers import TrainerCallback

_LIBRARIES = ("transformers", "trl", "peft", "accelerate", "torch.distributed")
LOG = "log.jsonl"
#: The name of each logged figure in transformers and TRL, and its name in the log file.
_FIELDS = {
    "loss": "loss",
    "eval_loss": "validation_loss",
    "learning_rate": "learning_rate",
    "grad_norm": "gradient_norm",
    "mean_token_accuracy": "token_accuracy",
}
_ADVICE = "Lower training.learning_rate or training.max_grad_norm, and train into another folder."


@contextmanager
def silence() -> Iterator[None]:
    """Suppress the warnings, logs and progress bars of the training libraries in a block."""
    transformers: Any = import_module("transformers.utils.logging")
    datasets: Any = import_module("datasets.utils")
    # TRL is imported before the levels of loggers are saved, since its import sets them.
    import_module("trl")
    with warnings.catch_warnings(), ExitStack() as cleanup:
        warnings.simplefilter("ignore")
        for logger in map(logging.getLogger, _LIBRARIES):
            cleanup.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.ERROR)
        if transformers.is_progress_bar_enabled():
            cleanup.callback(transformers.enable_progress_bar)
        if not datasets.are_progress_bars_disabled():
            cleanup.callback(datasets.enable_progress_bars)
        transformers.disable_progress_bar()
        datasets.disable_progress_bars()
        yield


def write_log(file: Path, entries: Iterable[Mapping[str, Any]], mode: str = "a") -> None:
    """Write entries of a trainer's log history as JSON Lines, each with its step."""
    with file.open(mode, encoding="utf-8") as stream:
        for entry in entries:
            if figures := {field: entry[name] for name, field in _FIELDS.items() if name in entry}:
                stream.write(json.dumps({"step": entry["step"], **figures}) + "\n")


def reporting_callback(
    file: Path | None, *, show: bool | None, minutes: float | None = None
) -> TrainerCallback:
    """Return a callback that advances a bar, writes the log, and stops a training.

    The callback raises ``InputError`` if a loss or gradient is not finite. It stops the training
    after the first step that ends ``minutes`` or more after ``reporting_callback`` was called. Only
    the main process has a ``file`` and a bar; see ``progress_bar`` for ``show``.
    """
    from transformers import TrainerCallback

    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes

    class Callback(TrainerCallback):
        def __init__(self) -> None:
            self._bar = ExitStack()
            self._advance: Callable[[int], None] = lambda count: None

        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            bar = progress_bar("Training", state.max_steps, show=show if file else False)
            self._advance = self._bar.enter_context(bar)
            self._advance(state.global_step)
            if file is not None:
                # A resumed training repeats the steps after its checkpoint; drop their old entries.
                write_log(file, state.log_history, "w")

        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            self._advance(1)
            if time.monotonic() >= deadline:
                control.should_training_stop = True

        def on_log(self, args: Any, state: Any, control: Any, logs: Any, **others: Any) -> None:
            if file is not None:
                write_log(file, state.log_history[-1:])
            for name in ("loss", "grad_norm", "train_loss"):
                if not math.isfinite(value := logs.get(name, 0.0)):
                    raise InputError(
                        f"The training went astray: {name} is {value} at step "
                        f"{state.global_step}. Nothing was saved. {_ADVICE}"
                    )

        def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            self._bar.close()

    return Callback()


def check_learned(before: float | None, after: float | None, vocabulary: int) -> None:
    """Raise ``InputError`` if the loss ``after`` a training is above a limit, or is not finite.

    Validation losses are in nats a token; ``None`` means not measured. The limit is the higher of
    ``before`` and the loss of a uniform guess, which is the logarithm of ``vocabulary``.
    """
    limit = max(before or 0.0, math.log(vocabulary))
    if after is not None and not (math.isfinite(after) and after <= limit):
        raise InputError(
            f"The training went astray: the validation loss was {before or math.nan:.4g} before "
            f"and is {after:.4g} after it, more than a guess has. Nothing was saved. {_ADVICE}"
        )
