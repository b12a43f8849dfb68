"""A tiny training end to end: from a training set to a planner, and the files it writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file

from casewright.errors import InputError
from casewright.finetune.examples.training_set import manifest_text
from casewright.finetune.recipe.training_section import LoraSection, ModelSection
from casewright.finetune.training.train import TrainingResult, train
from casewright.planner import ModelPlanner, violations
from casewright.planner.language_model import load_language_model
from casewright.planner.prompt import prompt_hash
from tests.planner.helpers import SHOP
from tests.support.readers import toy_queries
from tests.support.tiny_mistral import save_tiny
from tests.support.trained import LORA, MODEL, training, write_set

#: Training takes long on a busy machine.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_set(tmp_path_factory.mktemp("data") / "set", train=48)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return a training set for tests that do not depend on what the model learns."""
    return write_set(tmp_path / "few", train=8, validation=2)


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    output = tmp_path_factory.mktemp("trained") / "out"
    settings = training(steps=12, learning_rate=2e-2, save_steps=6, eval_steps=6)
    return train(MODEL, LORA, settings, data, output, merge=True)


def plans_of(folder: Path, count: int = 4) -> list[Any]:
    planner = ModelPlanner(load_language_model(folder, device="cpu"), seconds=60)
    queries = toy_queries()[-count:]
    return planner.plan_many([query.record.request(SHOP) for query in queries])


def test_trained_adapter_writes_valid_plans(trained: TrainingResult) -> None:
    requests = [query.record.request(SHOP) for query in toy_queries()[-4:]]
    for request, result in zip(requests, plans_of(trained.folder), strict=True):
        assert result.fallback == ""
        errors = violations(
            result.plan, request.toolbox, question=request.question, context=request.context
        )
        assert [*errors] == []


def test_training_lowers_the_training_and_validation_loss(trained: TrainingResult) -> None:
    metrics = trained.card["metrics"]
    assert metrics["validation_loss_after"] < metrics["validation_loss_before"] - 1
    log = [json.loads(line) for line in (trained.folder / "log.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in log if "loss" in line]
    assert len(losses) == 12
    assert sum(losses[-4:]) < sum(losses[:4]) - 4
    measured = {line["step"]: line["validation_loss"] for line in log if "validation_loss" in line}
    assert [*measured] == [0, 6, 12]
    assert measured[0] == metrics["validation_loss_before"]
    assert measured[12] == metrics["validation_loss_after"]


def test_merged_model_gives_the_same_plans_as_the_adapter(trained: TrainingResult) -> None:
    assert trained.merged == trained.folder / "merged"
    merged = [str(result.plan) for result in plans_of(trained.merged)]
    assert merged == [str(result.plan) for result in plans_of(trained.folder)]
    assert json.loads((trained.merged / "casewright.json").read_text())["kind"] == "merged"


def test_output_folder_of_a_training_can_be_moved_with_its_base(
    trained: TrainingResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Path(shutil.copytree(trained.folder, tmp_path / "a" / "moved"))
    monkeypatch.chdir(tmp_path)
    assert [str(r.plan) for r in plans_of(moved)] == [str(r.plan) for r in plans_of(trained.folder)]


def test_training_leaves_only_the_model_its_cards_and_its_log(trained: TrainingResult) -> None:
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


def test_model_cards_describe_recipe_data_and_metrics(trained: TrainingResult, data: Path) -> None:
    card = json.loads((trained.folder / "casewright.json").read_text(encoding="utf-8"))
    assert card == trained.card
    assert card["prompt_hash"] == prompt_hash()
    assert (card["kind"], card["base"]) == ("adapter", "new")
    manifest = json.loads((data / "manifest.json").read_text(encoding="utf-8"))
    assert card["data"]["manifest"] == manifest
    assert card["recipe"]["training"]["steps"] == 12
    assert card["recipe"]["lora"]["r"] == LORA.r
    metrics = card["metrics"]
    assert (metrics["steps"], metrics["examples_training"]) == (12, 48)
    assert metrics["examples_left_out"] == 0
    assert 0 < metrics["parameters_trained"] < metrics["parameters"]
    readme = (trained.folder / "README.md").read_text(encoding="utf-8")
    for part in (
        prompt_hash(),
        f"casewright plan --planner local:{trained.folder.name} ",
        "validation_loss_after",
        manifest["files"]["train.jsonl"]["sha256"],
        '"learning_rate": 0.02',
    ):
        assert part in readme


@pytest.mark.parametrize("resume", [False, True])
def test_training_refuses_another_folder_and_leaves_it_unchanged(
    resume: bool, data: Path, tmp_path: Path
) -> None:
    # A training writes folders with these names too.
    for name in ("base", "checkpoints"):
        (tmp_path / "out" / name).mkdir(parents=True)
        (tmp_path / "out" / name / "weights").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="holds no training: there is 'base'"):
        train(MODEL, LORA, training(), data, tmp_path / "out", resume=resume)
    with pytest.raises(InputError, match="weights is a file"):
        train(MODEL, LORA, training(), data, tmp_path / "out" / "base" / "weights" / "sub")
    assert len([*(tmp_path / "out").rglob("weights")]) == 2


def test_adapter_config_names_a_relative_base_from_the_adapter_folder(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_tiny(Path("models/tiny"))
    lora = LoraSection(r=4)
    train(ModelSection(base="models/tiny", device="cpu"), lora, training(steps=1), small, Path("o"))
    settings = json.loads(Path("o/adapter_config.json").read_text(encoding="utf-8"))
    assert settings["base_model_name_or_path"] == "../models/tiny"
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("o", "models"):
        Path(name).rename(moved / name)
    assert load_language_model(moved / "o", device="cpu").name == str(moved / "o")


def test_adapter_on_a_merged_model_describes_the_earlier_training(
    small: Path, tmp_path: Path
) -> None:
    manifest = json.loads((small / "manifest.json").read_text(encoding="utf-8"))
    licensed = {"licences": {"bfcl": "Apache-2.0"}, "contaminates": ["BFCL"]}
    (small / "manifest.json").write_text(json.dumps({**manifest, "instructions": licensed}))
    first = train(MODEL, LORA, training(steps=3), small, tmp_path / "first", merge=True)
    (small / "manifest.json").write_text(manifest_text(manifest), encoding="utf-8")
    second = train(
        *(MODEL.based_on(str(first.merged)), LoraSection(r=4)),
        *(training(steps=2), small, tmp_path / "second"),
    )
    initial_loss = second.card["metrics"]["validation_loss_before"]
    assert initial_loss == pytest.approx(first.card["metrics"]["validation_loss_after"], abs=0.02)
    # The cards must contain no path of this machine.
    assert second.card["trained_before"]["data"] == first.card["data"]
    readme = (second.folder / "README.md").read_text(encoding="utf-8")
    assert "bfcl (Apache-2.0)" in readme
    assert "not be measured by these: BFCL." in readme
    assert str(tmp_path) not in readme + json.dumps(second.card)


def test_training_with_an_invalid_base_or_layer_is_refused_before_writing(
    trained: TrainingResult, data: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    short = save_tiny(tmp_path / "short", max_position_embeddings=64)
    tied = save_tiny(tmp_path / "tied", tie_word_embeddings=True)
    config = json.loads((short / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "config.json").write_text(json.dumps({**config, "model_type": "t5"}))
    for base, settings, message in (
        (str(trained.folder), {}, "is an adapter"),
        (str(short), {}, r"training\.max_length \(2048\) is above .* \(64 tokens\)"),
        (str(tmp_path / "absent"), {}, "There is no folder"),
        (str(tmp_path / "odd"), {}, r"not a causal language model \(t5\)"),
        ("new", {"target_modules": ["q_prj"]}, "lora.target_modules: .*'q_prj'.*Did you mean 'q_p"),
        (str(tied), {"target_modules": ["norm"]}, "lora.target_modules: .*'norm'.* q_proj, "),
        (str(tied), {"modules_to_save": ["head"]}, "lora.modules_to_save: .* no layer 'head'"),
        (str(tied), {"modules_to_save": ["lm_head"]}, "'lm_head', which .* shares"),
    ):
        model = MODEL if base == "new" else MODEL.based_on(base)
        lora = LoraSection.model_validate(settings)
        with pytest.raises(InputError, match=message):
            train(model, lora, training(), data, output)
    with pytest.raises(InputError, match="manifest"):
        train(MODEL, LORA, training(), tmp_path, output)
    assert not output.exists()


def test_training_reports_examples_longer_than_max_length(
    trained: TrainingResult, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    longest = trained.card["metrics"]["tokens_longest_example"]
    settings = training(steps=1, max_length=longest - 1)
    metrics = train(MODEL, LORA, settings, data, tmp_path / "out").card["metrics"]
    examples = metrics["examples_training"] + metrics["examples_validation"]
    assert metrics["examples_left_out"] == 56 - examples > 0
    captured = capfd.readouterr()
    assert captured.out == ""
    left_out = metrics["examples_left_out"]
    assert captured.err.startswith(f"{left_out} examples are longer than training.max_length")
    assert f"the longest has {longest} tokens." in captured.err


@pytest.mark.parametrize("cause", ["weights", "learning rate"])
def test_diverging_training_raises_an_error_and_saves_nothing(
    cause: str, small: Path, tmp_path: Path
) -> None:
    model, settings = MODEL, {"learning_rate": 1.0, "max_grad_norm": 1e9, "steps": 3}
    if cause == "weights":
        model = MODEL.based_on(str(save_tiny(tmp_path / "base")))
        file = tmp_path / "base" / "model.safetensors"
        weights = load_file(file)
        weights["lm_head.weight"][:] = float("nan")
        save_file(weights, file, {"format": "pt"})
        settings = {"steps": 1}
    lora, output = LoraSection(r=4, modules_to_save=("lm_head",)), tmp_path / "out"
    text = "loss is nan at step 1" if cause == "weights" else "validation loss was"
    with pytest.raises(InputError, match=rf"{text}.*Nothing was saved\. Lower training\.learning"):
        train(model, lora, training(**settings), small, output)
    assert {file.name for file in output.iterdir()} <= {"base", "checkpoints", "log.jsonl"}


def test_training_without_validation_examples_reports_no_validation_loss(tmp_path: Path) -> None:
    data = write_set(tmp_path / "set", train=3, validation=0)
    result = train(MODEL, LORA, training(steps=1, eval_steps=1), data, tmp_path / "out")
    assert result.card["metrics"]["validation_loss_after"] is None
    assert "| validation_loss_after | not measured |" in (result.folder / "README.md").read_text()
