"""The packaged base model is converted, or an error names the remedy."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from casewright.errors import DependencyError, InputError
from casewright.planner.language_model import load_language_model
from casewright.planner.language_model.smollm2 import (
    DISTRIBUTION,
    INSTALL,
    MANIFEST,
    converted_folder,
    is_installed,
    smollm2_folder,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of an empty cache."""
    monkeypatch.setenv("CASEWRIGHT_CACHE_FOLDER", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    original = importlib.metadata.files

    def files(name: str) -> Any:
        if name == DISTRIBUTION:
            raise importlib.metadata.PackageNotFoundError(name)
        return original(name)

    monkeypatch.setattr(importlib.metadata, "files", files)


@pytest.fixture
def small_folder(cache: Path) -> Path:
    """Return a folder as a conversion leaves it, with a few bytes of weights."""
    folder = converted_folder()
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    digest = "9a4b8f49c4b1c1a0"
    content = {"files": {"model.safetensors": [len(b"weights"), digest]}}
    (folder / MANIFEST).write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_smollm2_not_installed_raises_an_error_with_the_install_command(
    cache: Path, no_distribution: None
) -> None:
    assert not is_installed()
    for load in (smollm2_folder, lambda: load_language_model("smollm2")):
        with pytest.raises(DependencyError, match=re.escape(f"Run: {INSTALL}")):
            load()
    assert not cache.exists()


def test_converted_smollm2_works_without_the_distribution(
    small_folder: Path, no_distribution: None
) -> None:
    assert is_installed()
    assert smollm2_folder() == small_folder


@pytest.mark.parametrize("damage", ["short", "gone", "no manifest", "no JSON", "another form"])
def test_incomplete_smollm2_folder_is_not_used(
    damage: str, small_folder: Path, no_distribution: None
) -> None:
    weights = small_folder / "model.safetensors"
    match damage:
        case "short":
            weights.write_bytes(b"weight")
        case "gone":
            weights.unlink()
        case "no manifest":
            (small_folder / MANIFEST).unlink()
        case "no JSON":
            (small_folder / MANIFEST).write_text("{")
        case _:
            (small_folder / MANIFEST).write_text('{"files": [1]}')
    assert not is_installed()
    with pytest.raises(DependencyError):
        smollm2_folder()


def test_smollm2_refuses_another_gguf_file_of_that_name(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "SmolLM2-135M-Instruct.Q4_1.gguf"
    (tmp_path / name).write_bytes(b"GGUF")
    file = SimpleNamespace(name=name, locate=lambda: tmp_path / name)
    monkeypatch.setattr(importlib.metadata, "files", lambda distribution: [file])
    with pytest.raises(InputError, match=re.escape(INSTALL)):
        smollm2_folder()


def test_unwritable_cache_folder_raises_input_error_naming_the_needed_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CASEWRIGHT_CACHE_FOLDER", str(tmp_path / "file"))
    with pytest.raises(InputError, match="room for 600 MB, or name another folder"):
        smollm2_folder()


def test_full_disk_raises_input_error_before_anything_is_written(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10**8))
    with pytest.raises(InputError, match=r"No space left on device.*room for 600 MB"):
        smollm2_folder()
    assert not [path for path in cache.iterdir() if path.is_dir()]


def test_install_command_version_is_in_requirements_base_and_readme() -> None:
    requirements = (ROOT / "requirements-base.txt").read_text(encoding="utf-8")
    assert f"{INSTALL.split()[-1]} --hash=sha256:" in requirements
    assert INSTALL in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a converted folder; an earlier conversion was killed, another left a damaged one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CASEWRIGHT_CACHE_FOLDER", str(tmp_path_factory.mktemp("cache")))
        folder = converted_folder()
        for leftover in (folder, folder.with_name(f".{folder.name}.part")):
            leftover.mkdir()
            (leftover / "model.safetensors").write_bytes(b"half")
        (folder / MANIFEST).write_text(
            '{"files": {"model.safetensors": [9, ""]}}', encoding="utf-8"
        )
        yield smollm2_folder()


def test_smollm2_conversion_leaves_one_complete_folder(converted: Path) -> None:
    assert [path for path in converted.parent.iterdir() if path.is_dir()] == [converted]
    content = json.loads((converted / MANIFEST).read_text(encoding="utf-8"))["files"]
    assert {path.name for path in converted.iterdir()} == {MANIFEST, *content}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CASEWRIGHT_CACHE_FOLDER", str(converted.parent))
        modified = (converted / "model.safetensors").stat().st_mtime_ns
        assert smollm2_folder() == converted
        assert (converted / "model.safetensors").stat().st_mtime_ns == modified


def test_converted_smollm2_computes_the_logits_of_the_llama_original(converted: Path) -> None:
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    model = load_language_model(converted, device="cpu", dtype="float32")
    network: Any = model.network
    assert type(network).__name__ == "MistralForCausalLM"
    assert network.config.sliding_window is None
    files = importlib.metadata.files(DISTRIBUTION) or ()
    (gguf,) = (Path(str(path.locate())) for path in files if path.name.endswith(".gguf"))
    llama = transformers.AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32
    ).eval()
    assert type(llama).__name__ == "LlamaForCausalLM"
    tokens = torch.tensor([model.encode_plan("Where is my tablet?")])
    with torch.inference_mode():
        assert torch.equal(network(tokens).logits, llama(tokens).logits)
