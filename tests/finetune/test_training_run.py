"""From a training set to a planner: the tiny run end to end, and what it leaves behind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.finetune.recipe.training_section import LoraSection, ModelSection
from casewright.finetune.training.train import TrainingResult, train
from casewright.planner import ModelPlanner, violations
from casewright.planner.language_model import load_language_model
from casewright.planner.prompt_hash import prompt_hash
from tests.planner.helpers import SHOP
from tests.support.readers import toy_queries
from tests.support.tiny_mistral import save_tiny
from tests.support.trained import LORA, MODEL, training, write_set

#: Training takes long where other work is going on.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_set(tmp_path_factory.mktemp("data") / "set", train=48)


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    output = tmp_path_factory.mktemp("trained") / "out"
    chosen = training(steps=24, learning_rate=1e-2, save_steps=12, eval_steps=12)
    return train(MODEL, LORA, chosen, data, output, merge=True)


def plans_of(folder: Path, count: int = 4) -> list[Any]:
    planner = ModelPlanner(load_language_model(folder, device="cpu"), seconds=60)
    queries = toy_queries()[-count:]
    return planner.plan_many([query.record.request(SHOP) for query in queries])


def test_a_trained_adapter_is_served_and_writes_valid_plans(trained: TrainingResult) -> None:
    requests = [query.record.request(SHOP) for query in toy_queries()[-4:]]
    for request, result in zip(requests, plans_of(trained.folder), strict=True):
        assert result.fallback == ""
        broken = violations(
            result.plan, request.toolbox, question=request.question, context=request.context
        )
        assert [*broken] == []


def test_the_loss_falls(trained: TrainingResult) -> None:
    metrics = trained.card["metrics"]
    assert metrics["validation_loss_after"] < metrics["validation_loss_before"] - 1
    log = [json.loads(line) for line in (trained.folder / "log.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in log if "loss" in line]
    assert len(losses) == 24
    assert sum(losses[-4:]) < sum(losses[:4]) - 4
    measured = {line["step"]: line["validation_loss"] for line in log if "validation_loss" in line}
    assert [*measured] == [0, 12, 24]
    assert measured[0] == metrics["validation_loss_before"]
    assert measured[24] == metrics["validation_loss_after"]


def test_the_merged_model_plans_as_the_adapter_does(trained: TrainingResult) -> None:
    assert trained.merged == trained.folder / "merged"
    merged = [str(result.plan) for result in plans_of(trained.merged)]
    assert merged == [str(result.plan) for result in plans_of(trained.folder)]
    assert json.loads((trained.merged / "casewright.json").read_text())["kind"] == "merged"


def test_the_output_folder_can_be_moved_with_its_base(
    trained: TrainingResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Path(shutil.copytree(trained.folder, tmp_path / "a" / "moved"))
    monkeypatch.chdir(tmp_path)
    assert [str(r.plan) for r in plans_of(moved)] == [str(r.plan) for r in plans_of(trained.folder)]


def test_nothing_is_left_but_the_model_its_cards_and_its_log(trained: TrainingResult) -> None:
    assert {file.name for file in trained.folder.iterdir()} == {
        "README.md",
        "adapter_config.json",
        "adapter_model.safetensors",
        "base",
        "casewright.json",
        "chat_template.jinja",
        "log.jsonl",
        "merged",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_the_cards_tell_what_the_model_was_made_of(trained: TrainingResult, data: Path) -> None:
    card = json.loads((trained.folder / "casewright.json").read_text(encoding="utf-8"))
    assert card == trained.card
    assert card["prompt_hash"] == prompt_hash()
    assert (card["kind"], card["base"]) == ("adapter", "new")
    manifest = json.loads((data / "manifest.json").read_text(encoding="utf-8"))
    assert card["data"]["manifest"] == manifest
    assert card["recipe"]["training"]["steps"] == 24
    assert card["recipe"]["lora"]["r"] == LORA.r
    metrics = card["metrics"]
    assert (metrics["steps"], metrics["examples_training"]) == (24, 48)
    assert metrics["examples_left_out"] == 0
    assert 0 < metrics["parameters_trained"] < metrics["parameters"]
    readme = (trained.folder / "README.md").read_text(encoding="utf-8")
    for part in (
        prompt_hash(),
        f"casewright plan --planner local:{trained.folder}",
        "validation_loss_after",
        manifest["files"]["train.jsonl"]["sha256"],
        '"learning_rate": 0.01',
    ):
        assert part in readme


def test_an_adapter_names_a_relative_base_from_its_own_folder(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_tiny(Path("models/tiny"))
    lora = LoraSection(r=4)
    train(ModelSection(base="models/tiny", device="cpu"), lora, training(steps=1), data, Path("o"))
    settings = json.loads(Path("o/adapter_config.json").read_text(encoding="utf-8"))
    assert settings["base_model_name_or_path"] == "../models/tiny"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("o", "models"):
        Path(name).rename(elsewhere / name)
    assert load_language_model(elsewhere / "o", device="cpu").name == str(elsewhere / "o")


def test_all_weights_can_be_trained_and_an_adapter_on_them_afterwards(
    data: Path, tmp_path: Path
) -> None:
    full = LoraSection(method="full")
    model = MODEL.model_copy(update={"save_dtype": "bfloat16"})
    first = train(model, full, training(steps=3), data, tmp_path / "first")
    assert first.card["kind"] == "model"
    assert not (first.folder / "base").exists()
    metrics = first.card["metrics"]
    assert metrics["parameters_trained"] == metrics["parameters"]
    served = load_language_model(first.folder, device="cpu", dtype="bfloat16")
    kinds = {str(parameter.dtype) for parameter in served.network.parameters()}
    assert kinds == {"torch.bfloat16"}
    base = MODEL.based_on(str(first.folder))
    second = train(base, LoraSection(r=4), training(steps=2), data, tmp_path / "second")
    before = second.card["metrics"]["validation_loss_before"]
    assert before == pytest.approx(metrics["validation_loss_after"], abs=0.02)


def test_what_cannot_be_trained_is_refused_before_anything_is_written(
    trained: TrainingResult, data: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    short = save_tiny(tmp_path / "short", max_position_embeddings=64)
    for base, settings, word in (
        ("new", {"merge": True}, "nothing to merge"),
        (str(trained.folder), {}, "is an adapter"),
        (str(short), {}, r"training\.max_length \(2048\) is above .* \(64 tokens\)"),
        (str(tmp_path / "absent"), {}, "There is no folder"),
    ):
        model = MODEL if base == "new" else MODEL.based_on(base)
        lora = LoraSection(method="full" if settings else "lora")
        with pytest.raises(InputError, match=word):
            train(model, lora, training(), data, output, **settings)
    with pytest.raises(InputError, match="manifest"):
        train(MODEL, LORA, training(), tmp_path, output)
    assert not output.exists()


def test_an_example_that_is_too_long_is_told(
    trained: TrainingResult, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    longest = trained.card["metrics"]["tokens_longest_example"]
    chosen = training(steps=1, max_length=longest - 1)
    metrics = train(MODEL, LORA, chosen, data, tmp_path / "out").card["metrics"]
    examples = metrics["examples_training"] + metrics["examples_validation"]
    assert metrics["examples_left_out"] == 56 - examples > 0
    told = capfd.readouterr()
    assert told.out == ""
    left_out = metrics["examples_left_out"]
    assert told.err.startswith(f"{left_out} examples are longer than training.max_length")
    assert f"the longest has {longest}." in told.err
