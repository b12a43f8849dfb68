"""The log and the progress bar of a training, its time limit, and checks of its losses."""

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

_LOGGERS = ("transformers", "trl", "peft", "accelerate", "torch.distributed")
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
    """In a block, suppress the warnings, logs and progress bars of the training libraries."""
    transformers_bars: Any = import_module("transformers.utils.logging")
    datasets_bars: Any = import_module("datasets.utils")
    # TRL is imported before the levels of loggers are saved, since its import sets them.
    import_module("trl")
    with warnings.catch_warnings(), ExitStack() as cleanup:
        warnings.simplefilter("ignore")
        for logger in map(logging.getLogger, _LOGGERS):
            cleanup.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.ERROR)
        if transformers_bars.is_progress_bar_enabled():
            cleanup.callback(transformers_bars.enable_progress_bar)
        if not datasets_bars.are_progress_bars_disabled():
            cleanup.callback(datasets_bars.enable_progress_bars)
        transformers_bars.disable_progress_bar()
        datasets_bars.disable_progress_bars()
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

    The callback raises ``InputError`` if a loss or gradient is not finite. When ``minutes`` have
    passed since this call, the training stops at the end of the current step. Only the main
    process gives a ``file``; the others show no bar. See ``progress_bar`` for ``show``.
    """
    from transformers import TrainerCallback

    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes

    class Callback(TrainerCallback):
        def __init__(self) -> None:
            self._cleanup = ExitStack()
            self._advance: Callable[[int], None] = lambda count: None

        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            bar = progress_bar("Training", state.max_steps, show=show if file else False)
            self._advance = self._cleanup.enter_context(bar)
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
            self._cleanup.close()

    return Callback()


def check_learned(before: float | None, after: float | None, vocabulary: int) -> None:
    """Raise ``InputError`` if the loss ``after`` a training is above a limit, or is not finite.

    The validation losses ``before`` and ``after`` are in nats a token, or ``None`` if not measured.
    The limit is the higher of ``before`` and the loss of a uniform guess, ``log(vocabulary)``.
    """
    limit = max(before or 0.0, math.log(vocabulary))
    if after is not None and not (math.isfinite(after) and after <= limit):
        raise InputError(
            f"The training went astray: the validation loss was {before or math.nan:.4g} before it "
            f"and is {after:.4g} now, which is worse than a guess. Nothing was saved. {_ADVICE}"
        )
