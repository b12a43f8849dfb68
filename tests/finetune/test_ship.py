"""Two finished trainings become the folder of the model that ships, or nothing is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from safetensors import safe_open

from casewright.errors import InputError
from casewright.finetune.recipe.training_section import LoraSection
from casewright.finetune.ship import FOLDER_BYTES, SHARD_BYTES, ShippedModel, ship
from casewright.finetune.training.train import train
from casewright.planner import ModelPlanner
from casewright.planner.language_model import load_language_model
from casewright.planner.prompt_hash import prompt_hash
from casewright.planner.shipped import load_shipped, shipped_examples
from tests.planner.helpers import SHOP
from tests.serve.helpers import new_home, one_line_error, result, run
from tests.support.readers import toy_queries
from tests.support.trained import MODEL, training, write_set

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A base and an adapter on it, as the two commands make them."""
    place = tmp_path_factory.mktemp("trainings")
    sets = []
    for name, shots in (("first", 4), ("second", 2)):
        data = write_set(place / name, train=4, validation=2)
        manifest = json.loads((data / "manifest.json").read_text(encoding="utf-8"))
        told = {**manifest, "data": {"tevo": {"shots": shots}}}
        (data / "manifest.json").write_text(json.dumps(told), encoding="utf-8")
        sets.append(data)
    base, adapter = place / "base", place / "adapter"
    train(MODEL, LoraSection(method="full"), training(steps=1), sets[0], base)
    train(MODEL.based_on(str(base)), LoraSection(r=4), training(steps=1), sets[1], adapter)
    return base, adapter


@pytest.fixture(scope="module")
def shipped(trainings: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> ShippedModel:
    # So small a model is one file, unless files are to be smaller still.
    return ship(*trainings, tmp_path_factory.mktemp("shipped") / "mistral", shard_bytes=90_000)


def test_it_plans_as_the_adapter_on_its_base_does(
    shipped: ShippedModel, trainings: tuple[Path, Path]
) -> None:
    requests = [query.record.request(SHOP) for query in toy_queries()[-3:]]
    merged = ModelPlanner(load_shipped(shipped.folder, device="cpu"), seconds=60)
    adapter = ModelPlanner(load_language_model(trainings[1], device="cpu"), seconds=60)
    assert merged.name == "model:mistral"
    expected = [str(plan.plan) for plan in adapter.plan_many(requests)]
    assert [str(plan.plan) for plan in merged.plan_many(requests)] == expected


def test_its_weights_are_bfloat16_safetensors_in_small_files(shipped: ShippedModel) -> None:
    files = sorted(shipped.folder.glob("*.safetensors"))
    assert len(files) > 1
    kinds = set()
    for file in files:
        assert file.stat().st_size <= 90_000
        with safe_open(file, "np") as opened:
            kinds |= {opened.get_slice(name).get_dtype() for name in opened.keys()}  # noqa: SIM118
    assert kinds == {"BF16"}
    # An administrator installs it for others.
    assert all(file.stat().st_mode & 0o444 == 0o444 for file in shipped.folder.iterdir())


def test_it_holds_cards_manifests_logs_and_one_tokenizer(
    shipped: ShippedModel, trainings: tuple[Path, Path]
) -> None:
    names = {file.name for file in shipped.folder.iterdir()}
    assert {name for name in names if not name.endswith(".safetensors")} == {
        "README.md",
        "base.log.jsonl",
        "base.manifest.json",
        "casewright.json",
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "lora.log.jsonl",
        "lora.manifest.json",
        "model.safetensors.index.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert dict(shipped.sizes) == {
        file.name: file.stat().st_size for file in shipped.folder.iterdir()
    }
    card = json.loads((shipped.folder / "casewright.json").read_text(encoding="utf-8"))
    assert card == shipped.card
    assert (card["kind"], card["prompt_hash"]) == ("merged", prompt_hash())
    for name, folder in zip(("base", "lora"), trainings, strict=True):
        own = json.loads((folder / "casewright.json").read_text(encoding="utf-8"))
        manifest = (shipped.folder / f"{name}.manifest.json").read_text(encoding="utf-8")
        assert json.loads(manifest) == own["data"]["manifest"]
        log = (shipped.folder / f"{name}.log.jsonl").read_bytes()
        assert log == (folder / "log.jsonl").read_bytes()
    readme = (shipped.folder / "README.md").read_text(encoding="utf-8")
    assert "--planner mistral" in readme
    assert "| steps | 1 | 1 |" in readme


def test_it_is_shown_as_many_plan_cases_as_its_last_training_showed(shipped: ShippedModel) -> None:
    assert shipped_examples(shipped.folder) == 2


@pytest.mark.parametrize(
    ("shard", "whole", "said"),
    [(60_000, FOLDER_BYTES, "One matrix"), (SHARD_BYTES, 10_000, "that ships")],
    ids=["a file", "all files"],
)
def test_what_is_too_large_is_refused_and_nothing_is_written(
    shard: int, whole: int, said: str, trainings: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        ship(*trainings, tmp_path / "out", shard_bytes=shard, folder_bytes=whole)
    assert [*tmp_path.iterdir()] == []


def test_what_does_not_belong_together_is_refused(
    trainings: tuple[Path, Path], tmp_path: Path
) -> None:
    base, adapter = trainings
    output = tmp_path / "out"
    for given in ((adapter, adapter), (base, base), (tmp_path, adapter), (base, tmp_path / "none")):
        with pytest.raises(InputError, match="is no finished training of"):
            ship(*given, output)
    copied = Path(shutil.copytree(base, tmp_path / "pickled"))
    (copied / "optimizer.pt").write_bytes(b"")
    with pytest.raises(InputError, match=r"holds optimizer\.pt: pickles"):
        ship(copied, adapter, output)
    other = Path(shutil.copytree(base, tmp_path / "other"))
    card = json.loads((other / "casewright.json").read_text(encoding="utf-8"))
    changed = {**card, "data": {**card["data"], "manifest_hash": "another"}}
    (other / "casewright.json").write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(InputError, match="was not trained on --base"):
        ship(other, adapter, output)
    (other / "casewright.json").write_text(json.dumps({**card, "prompt_hash": "another"}))
    with pytest.raises(InputError, match="another form of the prompt"):
        ship(other, adapter, output)
    with pytest.raises(InputError, match="is not empty"):
        ship(base, adapter, base)


def test_the_command_tells_the_files_and_their_sizes(
    trainings: tuple[Path, Path], tmp_path: Path
) -> None:
    home = new_home(tmp_path / "home")
    given: list[str | Path] = ["--base", trainings[0], "--adapter", trainings[1]]
    given += ["--output", home / "made"]
    told = result(run(home, "finetune", "ship", *given, "--json"))
    assert told["bytes"] == {file.name: file.stat().st_size for file in (home / "made").iterdir()}
    assert "is not empty" in one_line_error(run(home, "finetune", "ship", *given))
