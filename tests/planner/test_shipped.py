"""The shipped adapter: its files, its base model, and the errors for unusable adapters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from casewright.errors import DependencyError, InputError
from casewright.finetune.recipe.training_section import LoraSection, ModelSection
from casewright.finetune.training.train import train
from casewright.planner import ModelPlanner, PlanRequest
from casewright.planner.language_model import smollm2
from casewright.planner.plan_cases import EXAMPLE_COUNT
from casewright.planner.shipped import (
    FOLDER,
    adapter_example_count,
    adapter_folder,
    has_adapter,
    load_shipped,
)
from tests.planner.helpers import SHOP
from tests.support.tiny_mistral import save_tiny
from tests.support.trained import training, write_set

pytestmark = pytest.mark.timeout(600)
#: Maximum size of the adapter's folder, which does not contain the base model.
MAX_BYTES = 25_000_000


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an adapter as the command trains it, with two plan cases in its prompts."""
    folder = tmp_path_factory.mktemp("shipped")
    data = write_set(folder / "set", train=4, validation=0)
    manifest = json.loads((data / "manifest.json").read_text(encoding="utf-8"))
    changed = {**manifest, "data": {"tevo": {"shots": 2}}}
    (data / "manifest.json").write_text(json.dumps(changed), encoding="utf-8")
    base = ModelSection(base=str(save_tiny(folder / "base")), device="cpu")
    train(base, LoraSection(r=4), training(steps=1), data, folder / "mistral")
    return folder / "mistral"


def changed_copy(adapter: Path, folder: Path, file: str, **fields: object) -> Path:
    """Copy an adapter with changed fields in one of its JSON files."""
    folder.mkdir()
    for source in adapter.iterdir():
        (folder / source.name).write_bytes(source.read_bytes())
    content = json.loads((folder / file).read_text(encoding="utf-8"))
    (folder / file).write_text(json.dumps({**content, **fields}), encoding="utf-8")
    return folder


def test_shipped_adapter_plans_merged_into_its_base_model(adapter: Path) -> None:
    assert has_adapter(adapter)
    assert adapter_folder(adapter) == adapter
    model = load_shipped(adapter, device="cpu")
    assert model.name == "mistral"
    result = ModelPlanner(model, seconds=60).plan(PlanRequest("any socks?", SHOP))
    assert (result.planner, result.fallback) == ("model:mistral", "")


def test_adapter_example_count_is_that_of_its_training_prompts(
    adapter: Path, tmp_path: Path
) -> None:
    assert adapter_example_count(adapter) == 2
    others: tuple[object, ...] = ({}, {"manifest": {"data": {"tevo": {}}}}, None)
    for number, data in enumerate(others):
        other = changed_copy(adapter, tmp_path / str(number), "casewright.json", data=data)
        assert adapter_example_count(other) == EXAMPLE_COUNT


def test_missing_adapter_raises_an_error_with_the_training_command(
    adapter: Path, tmp_path: Path
) -> None:
    incomplete = changed_copy(adapter, tmp_path / "without", "casewright.json")
    (incomplete / "adapter_model.safetensors").unlink()
    for folder in (tmp_path / "none", incomplete):
        assert not has_adapter(folder)
        for function in (adapter_folder, adapter_example_count, load_shipped):
            with pytest.raises(InputError, match=r"finetune train --recipe small"):
                function(folder)


def test_missing_base_model_raises_an_error_with_the_install_command(
    adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASEWRIGHT_CACHE_FOLDER", str(tmp_path / "cache"))
    monkeypatch.setattr("importlib.metadata.files", lambda name: None)
    named = {"base_model_name_or_path": smollm2.NAME}
    folder = changed_copy(adapter, tmp_path / "mistral", "adapter_config.json", **named)
    with pytest.raises(DependencyError, match="pip install"):
        load_shipped(folder, device="cpu")


def test_adapter_trained_with_another_prompt_is_refused(adapter: Path, tmp_path: Path) -> None:
    other = changed_copy(adapter, tmp_path / "other", "casewright.json", prompt_hash="another")
    with pytest.raises(InputError, match="trained with another prompt"):
        load_shipped(other, device="cpu")


def test_shipped_adapter_is_small_names_the_packaged_base_and_has_no_pickles() -> None:
    sizes = {file.name: file.stat().st_size for file in FOLDER.iterdir()}
    assert sum(sizes.values()) <= MAX_BYTES
    suffixes = {Path(name).suffix for name in sizes}
    assert suffixes <= {".json", ".jsonl", ".md", ".jinja", ".safetensors"}
    config = json.loads((FOLDER / "adapter_config.json").read_text(encoding="utf-8"))
    assert config["base_model_name_or_path"] == smollm2.NAME
