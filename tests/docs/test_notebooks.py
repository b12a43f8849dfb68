"""The notebooks run from top to bottom, and print their stored output.

``python -m tests.docs.test_notebooks`` runs them and stores their output.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.serve.helpers import built_home

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
#: The only metadata to store; the rest says who ran the notebook, when and where.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
#: Training takes long on a busy machine.
pytestmark = pytest.mark.timeout(600)
EVERY_NOTEBOOK = pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)


def run_notebook(file: Path, folder: Path, home: Path) -> Any:
    """Run a notebook in a folder, by the Python of this process, and return it.

    Args:
        file: The notebook.
        folder: Where it runs.
        home: The folder of stores and caches.
    """
    nbformat, nbclient = import_module("nbformat"), import_module("nbclient")
    client, specs = import_module("jupyter_client"), import_module("jupyter_client.kernelspec")

    class Specs(specs.KernelSpecManager):  # type: ignore[name-defined, misc]
        """A manager of one kernel: an installed kernel may be another Python."""

        def get_kernel_spec(self, kernel_name: str) -> Any:
            argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return specs.KernelSpec(argv=argv, language="python", display_name=kernel_name)

    variables = {name: str(folder / name) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR")}
    variables["CASEWRIGHT_HOME"] = str(home)
    # Over files of the folder, which no other user can read.
    manager = client.AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=Specs(),
        transport="ipc",
        ip=str(folder / "kernel"),
        connection_file=str(folder / "kernel.json"),
    )
    notebook = nbformat.read(file, as_version=4)
    nbclient.NotebookClient(
        notebook,
        km=manager,
        timeout=500,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    ).execute(cleanup_kc=True, env={**os.environ, **variables})
    return notebook


def outputs(notebook: Any) -> Iterator[tuple[int, str, str]]:
    """Yield the number of the cell, the kind and the text of every output."""
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                yield number, output.name, output.text
            else:
                yield number, output.output_type, output.get("data", {}).get("text/plain", "")


def normalise(text: str) -> str:
    """Return a text without digits and widths, which differ between machines."""
    return re.sub(r"\s+", " ", re.sub(r"\d+", "0", text)).strip()


def printed_texts(notebook: Any) -> dict[tuple[int, str], str]:
    """Return the output of every cell, whether it came in one piece or in several."""
    texts: dict[tuple[int, str], str] = {}
    for number, kind, text in outputs(notebook):
        # Only a first start writes to stderr; the stored run was not the first.
        if kind != "stderr":
            texts[number, kind] = texts.get((number, kind), "") + text
    return {key: normalise(text) for key, text in texts.items()}


def load(file: Path) -> Any:
    return import_module("nbformat").read(file, as_version=4)


def test_notebooks_are_planner_and_tour() -> None:
    assert [file.stem for file in NOTEBOOKS] == ["planner", "tour"]


@EVERY_NOTEBOOK
def test_notebook_runs_and_prints_its_stored_output(file: Path, tmp_path: Path) -> None:
    assert printed_texts(run_notebook(file, tmp_path, built_home())) == printed_texts(load(file))


@EVERY_NOTEBOOK
def test_stored_notebook_was_run_completely_and_without_errors(file: Path) -> None:
    cells = [cell for cell in load(file).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {kind for _, kind, _ in outputs(load(file))}
    assert "stdout" in kinds
    assert not kinds & {"error", "stderr"}


@EVERY_NOTEBOOK
def test_stored_notebook_contains_no_data_of_the_machine_that_ran_it(file: Path) -> None:
    notebook = load(file)
    assert notebook.metadata == METADATA
    assert not any(cell.metadata for cell in notebook.cells)
    text = file.read_text(encoding="utf-8")
    for path in (str(ROOT), str(Path.home()), "/home/", "/Users/", "/tmp/", sys.prefix):
        assert path == "/" or path not in text


def store_outputs() -> None:
    """Run all notebooks, or those named on the command line, and store their output."""
    chosen = [file for file in NOTEBOOKS if not sys.argv[1:] or file.stem in sys.argv[1:]]
    for file in chosen:
        with TemporaryDirectory() as folder:
            notebook = run_notebook(file, Path(folder), built_home())
        notebook.metadata = METADATA
        for cell in notebook.cells:
            cell.metadata = {}
            if "outputs" in cell:
                cell.outputs = [item for item in cell.outputs if item.get("name") != "stderr"]
        import_module("nbformat").write(notebook, file)


if __name__ == "__main__":
    store_outputs()
