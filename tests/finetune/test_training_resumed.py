"""Training that is killed and resumed, and training by two processes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.finetune.training import log
from casewright.finetune.training.log import LOG
from casewright.finetune.training.run import last_complete
from casewright.finetune.training.train import TrainingResult, train
from tests.finetune.training_worker import KILLED, NO_DROPOUT, SETTINGS, SHARED
from tests.layout.sources import ROOT
from tests.support.trained import LORA, MODEL, training, write_set

#: Training takes long on a busy machine.
pytestmark = pytest.mark.timeout(600)
WEIGHTS = "adapter_model.safetensors"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_set(tmp_path_factory.mktemp("data") / "set")


@pytest.fixture(scope="module")
def finished(data: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    """Return the result of an uninterrupted training."""
    return train(MODEL, LORA, SETTINGS, data, tmp_path_factory.mktemp("whole") / "out")


def run_worker(job: str, data: Path, output: Path) -> Path:
    """Run a job of ``training_worker`` in another process, and return its output folder."""
    process = subprocess.run(
        [sys.executable, "-m", "tests.finetune.training_worker", str(data), str(output), job],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return output / job


@pytest.fixture(scope="module")
def killed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a training whose process was killed in its fifth of eight steps."""
    return run_worker(KILLED, data, tmp_path_factory.mktemp("others"))


def read_log(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / LOG).read_text(encoding="utf-8").splitlines()]


def copy_output(folder: Path, parent: Path) -> Path:
    return Path(shutil.copytree(folder, parent / "out"))


def drop_last_bytes(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def remove_seal(checkpoint: Path) -> None:
    (checkpoint / "casewright-checkpoint.json").unlink()


def truncate(checkpoint: Path) -> None:
    drop_last_bytes(checkpoint / "optimizer.pt")


def change_weights(checkpoint: Path) -> None:
    file = checkpoint / WEIGHTS
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))


@pytest.mark.parametrize("damage", [remove_seal, truncate, change_weights])
def test_damaged_checkpoint_is_skipped_for_the_one_before(
    damage: Callable[[Path], None], killed: Path, tmp_path: Path
) -> None:
    folder = copy_output(killed, tmp_path) / "checkpoints"
    first, second = (folder / f"checkpoint-{step}" for step in (2, 4))
    assert last_complete(folder) == (second, [])
    damage(second)
    assert last_complete(folder) == (first, [second])
    remove_seal(first)
    assert last_complete(folder) == (None, [second, first])


@pytest.mark.parametrize(("damage", "steps"), [(None, 4), (truncate, 2)], ids=["whole", "damaged"])
def test_killed_training_resumes_to_the_same_bytes_as_an_uninterrupted_one(
    damage: Callable[[Path], None] | None,
    steps: int,
    killed: Path,
    data: Path,
    finished: TrainingResult,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    output = copy_output(killed, tmp_path)
    assert not (output / WEIGHTS).exists()
    if damage is not None:
        damage(output / "checkpoints" / "checkpoint-4")
    resumed = train(MODEL, LORA, SETTINGS, data, output, resume=True)
    captured = capfd.readouterr()
    assert f"Resuming after step {steps}." in captured.err
    assert ("checkpoint-4 is damaged" in captured.err) == (damage is not None)
    assert captured.out == ""
    assert resumed.card["metrics"]["resumed_after_steps"] == steps
    assert (output / WEIGHTS).read_bytes() == (finished.folder / WEIGHTS).read_bytes()
    assert read_log(output) == read_log(finished.folder)
    for name in ("validation_loss_before", "validation_loss_after"):
        assert resumed.card["metrics"][name] == finished.card["metrics"][name]


@pytest.mark.parametrize("resume", [False, True])
def test_checkpoints_are_not_resumed_with_another_recipe(
    resume: bool, killed: Path, data: Path
) -> None:
    other = SETTINGS.model_copy(update={"learning_rate": 0.5})
    message = r"training\.learning_rate was 0\.003 and is 0\.5" if resume else "--resume"
    with pytest.raises(InputError, match=message):
        train(MODEL, LORA, other, data, killed, resume=resume)


def test_checkpoints_are_not_resumed_with_other_data(killed: Path, tmp_path: Path) -> None:
    other = write_set(tmp_path / "set", train=20)
    with pytest.raises(InputError, match="another training: data was"):
        train(MODEL, LORA, SETTINGS, other, killed, resume=True)


def test_training_without_checkpoints_starts_again(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    with pytest.raises(InputError, match=r"training\.max_length = \d+"):
        train(MODEL, LORA, training(max_length=16), data, output)
    assert (output / "base").is_dir()
    result = train(MODEL, LORA, training(steps=1), data, output)
    assert result.card["metrics"]["steps"] == 1


def test_training_killed_before_its_first_file_starts_again(data: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "checkpoints").mkdir(parents=True)
    result = train(MODEL, LORA, training(steps=1), data, tmp_path / "out")
    assert result.card["metrics"]["steps"] == 1


def test_finished_training_is_not_repeated(finished: TrainingResult, data: Path) -> None:
    written_at = (finished.folder / WEIGHTS).stat().st_mtime_ns
    repeated = train(MODEL, LORA, SETTINGS, data, finished.folder, resume=True)
    assert repeated.card == finished.card
    assert (finished.folder / WEIGHTS).stat().st_mtime_ns == written_at
    with pytest.raises(InputError, match="not empty"):
        train(MODEL, LORA, SETTINGS, data, finished.folder)
    with pytest.raises(InputError, match="finished training with another recipe"):
        train(MODEL, LORA, training(), data, finished.folder, resume=True)


def test_two_processes_give_the_weights_of_one_with_twice_the_batch(
    data: Path, tmp_path: Path
) -> None:
    single = train(MODEL, NO_DROPOUT, training(batch_per_device=4), data, tmp_path / "one")
    shared_folder = run_worker(SHARED, data, tmp_path)
    card = json.loads((shared_folder / "casewright.json").read_text(encoding="utf-8"))
    assert (card["metrics"]["processes"], card["metrics"]["rows_per_step"]) == (2, 4)
    from safetensors.numpy import load_file

    first, second = (load_file(folder / WEIGHTS) for folder in (single.folder, shared_folder))
    assert max(abs(first[name] - second[name]).max() for name in first) < 1e-6
    expected = single.card["metrics"]["validation_loss_after"]
    assert card["metrics"]["validation_loss_after"] == pytest.approx(expected, abs=1e-6)


def test_training_with_shared_heads_resumes_to_the_same_bytes(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = training(steps=4, save_steps=2, shared_heads=True, batch_per_device=4)
    uninterrupted = train(MODEL, NO_DROPOUT, settings, data, tmp_path / "straight")

    def interrupt(file: Path, entries: Sequence[Mapping[str, Any]], mode: str = "a") -> None:
        if any(entry["step"] == 3 for entry in entries):
            raise KeyboardInterrupt

    output = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        patch.setattr(log, "write_log", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(MODEL, NO_DROPOUT, settings, data, output)
    resumed = train(MODEL, NO_DROPOUT, settings, data, output, resume=True)
    assert resumed.card["metrics"]["resumed_after_steps"] == 2
    assert (output / WEIGHTS).read_bytes() == (uninterrupted.folder / WEIGHTS).read_bytes()
