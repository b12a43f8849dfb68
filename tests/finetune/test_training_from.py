"""Training that starts from an adapter: its weights, its card, and refused adapters."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from casewright.errors import InputError
from casewright.finetune.recipe.training_section import LoraSection, ModelSection
from casewright.finetune.training import log
from casewright.finetune.training.train import TrainingResult, train
from tests.serve.helpers import new_home, result, run
from tests.support.tiny_mistral import save_tiny
from tests.support.trained import MODEL, training, write_set

pytestmark = pytest.mark.timeout(600)
LORA = LoraSection(r=4, alpha=8, dropout=0.0)
WEIGHTS = "adapter_model.safetensors"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> ModelSection:
    return ModelSection(base=str(save_tiny(tmp_path_factory.mktemp("base"))), device="cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_set(tmp_path_factory.mktemp("data") / "set", train=8, validation=4)


@pytest.fixture(scope="module")
def first(
    base: ModelSection, data: Path, tmp_path_factory: pytest.TempPathFactory
) -> TrainingResult:
    settings = training(steps=4, learning_rate=2e-2)
    return train(base, LORA, settings, data, tmp_path_factory.mktemp("first") / "adapter")


@pytest.fixture(scope="module")
def second(
    base: ModelSection,
    first: TrainingResult,
    tmp_path_factory: pytest.TempPathFactory,
) -> TrainingResult:
    folder = tmp_path_factory.mktemp("second")
    other = write_set(folder / "set", train=6, validation=6)
    return train(base, LORA, training(), other, folder / "adapter", start=first.folder)


def test_training_from_an_adapter_starts_with_the_final_loss_of_that_adapter(
    base: ModelSection, data: Path, first: TrainingResult, tmp_path: Path
) -> None:
    loss = first.card["metrics"]["validation_loss_after"]
    assert loss < first.card["metrics"]["validation_loss_before"] - 0.01
    continued = train(base, LORA, training(), data, tmp_path / "out", start=first.folder)
    assert continued.card["metrics"]["validation_loss_before"] == pytest.approx(loss, abs=1e-4)
    new_weights = load_file(continued.folder / WEIGHTS)
    old_weights = load_file(first.folder / WEIGHTS)
    assert any((new_weights[name] != old_weights[name]).any() for name in old_weights)


def test_card_describes_the_earlier_training_with_its_data_and_figures(
    first: TrainingResult, second: TrainingResult
) -> None:
    earlier = second.card["trained_before"]
    assert earlier["data"]["manifest_hash"] == first.card["data"]["manifest_hash"]
    assert earlier["data"]["manifest_hash"] != second.card["data"]["manifest_hash"]
    for name in ("tokens_training", "seconds_training", "validation_loss_after"):
        assert earlier["metrics"][name] == first.card["metrics"][name]
    readme = (second.folder / "README.md").read_text(encoding="utf-8")
    counts = [result.card["metrics"]["tokens_training"] for result in (second, first)]
    assert f"| tokens_training | {counts[0]} | {counts[1]} |" in readme
    assert first.card["data"]["manifest_hash"][:12] in readme


def test_card_describes_a_chain_of_three_trainings(
    base: ModelSection, data: Path, first: TrainingResult, second: TrainingResult, tmp_path: Path
) -> None:
    third = train(base, LORA, training(steps=1), data, tmp_path / "third", start=second.folder)
    earlier = third.card["trained_before"]
    assert earlier["metrics"] == second.card["metrics"]
    assert earlier["trained_before"]["metrics"] == first.card["metrics"]
    assert "| this training | 1 before | 2 before |" in (third.folder / "README.md").read_text()


def test_stopped_training_from_an_adapter_resumes_to_the_same_bytes(
    base: ModelSection,
    data: Path,
    first: TrainingResult,
    second: TrainingResult,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = training(steps=4, save_steps=2)
    uninterrupted = train(base, LORA, settings, data, tmp_path / "a", start=first.folder)

    def interrupt(file: Path, entries: Sequence[Mapping[str, Any]], mode: str = "a") -> None:
        if any(entry["step"] == 3 for entry in entries):
            raise KeyboardInterrupt

    output = tmp_path / "b"
    with monkeypatch.context() as patch:
        patch.setattr(log, "write_log", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(base, LORA, settings, data, output, start=first.folder)
    for start in (second.folder, None):
        with pytest.raises(InputError, match="another training: from was"):
            train(base, LORA, settings, data, output, start=start, resume=True)
    train(base, LORA, settings, data, output, start=first.folder, resume=True)
    assert (output / WEIGHTS).read_bytes() == (uninterrupted.folder / WEIGHTS).read_bytes()
    repeated = train(base, LORA, settings, data, output, start=first.folder, resume=True)
    assert repeated.card["metrics"]["resumed_after_steps"] == 2
    with pytest.raises(InputError, match="another start"):
        train(base, LORA, settings, data, output, start=second.folder, resume=True)


def test_training_from_an_unfitting_adapter_is_refused(
    base: ModelSection, data: Path, first: TrainingResult, tmp_path: Path
) -> None:
    other_base = ModelSection(base=str(save_tiny(tmp_path / "other", seed=1)), device="cpu")
    without_card = Path(shutil.copytree(first.folder, tmp_path / "bare"))
    (without_card / "casewright.json").unlink()
    damaged = Path(shutil.copytree(first.folder, tmp_path / "damaged"))
    (damaged / WEIGHTS).write_bytes(b"no weights")
    for model, lora, start, message in (
        (base, LORA, tmp_path / "none", "no trained adapter: it has no adapter_config.json"),
        (base, LORA, without_card, "it has no casewright.json"),
        (MODEL, LORA, first.folder, "on a new base"),
        (other_base, LORA, first.folder, "is an adapter of the base"),
        (base, LORA.model_copy(update={"r": 8}), first.folder, r"Set lora\.r = 4"),
        (base, LORA.model_copy(update={"alpha": 16}), first.folder, r"Set lora\.alpha = 8"),
        (
            base,
            LORA.model_copy(update={"target_modules": ("q_proj",)}),
            first.folder,
            "other layer",
        ),
        (base, LORA, damaged, "cannot be read"),
    ):
        with pytest.raises(InputError, match=message):
            train(model, lora, training(), data, tmp_path / "out", start=start)
        assert not (tmp_path / "out" / "casewright.json").exists()


def test_finetune_train_command_starts_from_the_adapter_of_from(
    base: ModelSection, data: Path, first: TrainingResult, tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home")
    recipe = home / "recipe.toml"
    recipe.write_text(
        '[data]\ndomain = "shopping"\n[model]\nbase = "x"\ndevice = "cpu"\n'
        "[lora]\nr = 4\nalpha = 8\n[training]\nsteps = 1\n"
    )
    options: list[str | Path] = ["--recipe", recipe, "--data", data, "--base", base.base]
    options += ["--from", first.folder, "--output", home / "out"]
    card = result(run(home, "finetune", "train", *options, "--json"))
    assert card["trained_before"]["metrics"] == json.loads(json.dumps(first.card["metrics"]))


def test_training_that_runs_out_of_time_saves_what_it_learned(
    base: ModelSection, data: Path, tmp_path: Path
) -> None:
    result = train(base, LORA, training(steps=6), data, tmp_path / "adapter", minutes=0)
    metrics = result.card["metrics"]
    assert (metrics["steps"], metrics["steps_planned"]) == (1, 6)
    assert (result.folder / WEIGHTS).is_file()
    continued = train(base, LORA, training(steps=2), data, tmp_path / "more", start=result.folder)
    assert continued.card["metrics"]["steps"] == 2
