"""What a training tells while it runs: a line of ``log.jsonl`` now and then, and a bar."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.finetune.training.divergence import check_finite
from casewright.stores.progress import progress_bar

if TYPE_CHECKING:
    from transformers import TrainerCallback

LOG = "log.jsonl"
#: transformers' and TRL's names of what is kept, and ours.
_FIELDS = {
    "loss": "loss",
    "eval_loss": "validation_loss",
    "learning_rate": "learning_rate",
    "grad_norm": "gradient_norm",
    "mean_token_accuracy": "token_accuracy",
}


class TrainingLog:
    """Writes ``log.jsonl``: a JSON object a line, each with its step.

    Args:
        file: Lines are added to it.
        steps: Lines of later steps are removed first: they are of a run that was killed after its
            last checkpoint. 0 begins anew.

    Attributes:
        before: The validation loss before the first step, where the log has it from before.
    """

    def __init__(self, file: Path, steps: int) -> None:
        self._file = file
        self.before: float | None = None
        kept = []
        if steps and file.is_file():
            for line in file.read_text(encoding="utf-8").splitlines():
                # The last line of a killed run may be half a line.
                try:
                    told = json.loads(line)
                    if told["step"] > steps:
                        continue
                    if told["step"] == 0:
                        self.before = told["validation_loss"]
                    kept.append(line)
                except (ValueError, KeyError, TypeError):
                    continue
        file.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

    def add(self, step: int, figures: Mapping[str, Any]) -> None:
        """Add a line of those figures that have a name here."""
        told = {own: figures[name] for name, own in _FIELDS.items() if name in figures}
        if not told:
            return
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **told}) + "\n")


def telling_callback(log: TrainingLog | None, *, show: bool | None) -> TrainerCallback:
    """Return what a trainer tells its progress to.

    Args:
        log: ``None`` in all processes but the first.
        show: Show a bar on stderr; ``None`` shows it on a terminal. None without a log.
    """
    from transformers import TrainerCallback

    class Telling(TrainerCallback):
        """Advances the bar, writes the log, and stops a training that went astray."""

        def __init__(self) -> None:
            self._open = ExitStack()
            self._advance: Callable[[int], None] = lambda count: None

        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            shown = log is not None and (sys.stderr.isatty() if show is None else show)
            bar = progress_bar("Training", state.max_steps, show=shown)
            self._advance = self._open.enter_context(bar)
            self._advance(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            self._advance(1)

        def on_log(
            self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any
        ) -> None:
            if log is not None:
                log.add(state.global_step, logs or {})
            check_finite(state.global_step, logs or {})

        def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            self._open.close()

    return Telling()
