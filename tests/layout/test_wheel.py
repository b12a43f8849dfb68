"""The wheel, built as a release is: the shipped model is in it, and it is small."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from casewright.planner.shipped import FOLDER
from tests.layout.sources import ROOMS, ROOT

BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
#: What the package had before the model, and the most that the model has.
MOST_BYTES = 10_000_000 + 25_000_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed")
    # A build leaves files beside its sources.
    copy = tmp_path_factory.mktemp("sources")
    for name in (*ROOMS, "src"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, copy / name)
    model = copy / "planner" / FOLDER.name
    model.mkdir(exist_ok=True)
    for name in ("casewright.json", "model-00001-of-00002.safetensors", "lora.log.jsonl"):
        (model / name).touch()
    done = subprocess.run(
        [sys.executable, "-c", BUILD, "dist"], cwd=copy, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (made,) = (copy / "dist").glob("*.whl")
    return made


def test_the_wheel_holds_every_file_of_the_shipped_model(wheel: Path) -> None:
    within = "casewright/planner/mistral/"
    with ZipFile(wheel) as opened:
        names = {name.removeprefix(within) for name in opened.namelist() if within in name}
    expected = {file.name for file in FOLDER.iterdir()} if FOLDER.is_dir() else set()
    few = {"casewright.json", "model-00001-of-00002.safetensors", "lora.log.jsonl"}
    assert names == {*expected, *few}


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_BYTES
