"""A training in a process of its own: started by tests, which kill it or start it twice.

Arguments: the folder with the data, the folder for the model, and either ``hang``, to stop for ever
after five steps, or ``whole``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from casewright.finetune.training import train as module
from casewright.finetune.training.log import TrainingLog
from tests.support.trained import LORA, MODEL, training

HANGS_AFTER = 5
#: Checkpoints after the second, fourth, sixth and eighth step.
SETTINGS = training(steps=8, save_steps=2)


class HangingLog(TrainingLog):
    """Takes the time that a test needs to kill its process."""

    def add(self, step: int, figures: Mapping[str, Any]) -> None:
        super().add(step, figures)
        if step == HANGS_AFTER:
            time.sleep(600)


if __name__ == "__main__":
    data, output, how = sys.argv[1:]
    if how == "hang":
        # Where train looks for it.
        vars(module)["TrainingLog"] = HangingLog
    module.train(MODEL, LORA, SETTINGS, Path(data), Path(output))
