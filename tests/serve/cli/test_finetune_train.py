"""`casewright finetune train`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from casewright.finetune.training import log
from tests.serve.helpers import new_home, one_line_error, run
from tests.support.trained import write_set

#: Training is slow on a busy machine.
pytestmark = pytest.mark.timeout(600)
RECIPE = """
[data]
domain = "shopping"

[model]
device = "cpu"
new = { hidden = 32, layers = 1, heads = 2, kv_heads = 2, vocabulary = 512, positions = 2048 }

[training]
steps = 3
learning_rate = 5e-3
save_steps = 1
log_steps = 1
"""


def test_ctrl_c_stops_training_with_one_line_and_option_resume_continues_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = new_home(tmp_path / "home")
    (home / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    write_set(home / "set", train=4, validation=2)
    command = ["finetune", "train", "--recipe", "recipe.toml", "--data", "set", "--output", "out"]

    def interrupt(file: Path, entries: Sequence[Mapping[str, Any]], mode: str = "a") -> None:
        if any(entry["step"] == 2 for entry in entries):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(log, "write_log", interrupt)
        stopped = run(home, *command)
    assert (stopped.returncode, stopped.stdout) == (130, "")
    assert stopped.stderr == "Stopped. The same command with --resume continues.\n"
    resumed = run(home, *command, "--resume", "--json")
    assert resumed.returncode == 0
    report = json.loads(resumed.stdout)
    assert (report["folder"], report["metrics"]["resumed_after_steps"]) == ("out", 1)
    assert resumed.stderr == "Resuming after step 1.\n"


def test_invalid_training_recipe_prints_an_error_of_one_line(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home")
    recipe = RECIPE.replace("\nsteps = 3", "\nsteps = 0")
    (home / "recipe.toml").write_text(recipe, encoding="utf-8")
    options = ("--recipe", "recipe.toml", "--data", "s", "--output", "o")
    completed = run(home, "finetune", "train", *options)
    assert "training.steps: 0 is not possible" in one_line_error(completed)
