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
#: Of the shipped adapter, also where it is not trained yet.
FEW = ("casewright.json", "adapter_model.safetensors", "log.jsonl")
#: The trained parser has 21 MB of it, the adapter 10 MB, data and code the rest.
MOST_BYTES = 40_000_000


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
    for name in FEW:
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
    assert names == {*expected, *FEW}


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_BYTES
