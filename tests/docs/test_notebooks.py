"""The notebooks run from top to bottom, and print their stored output.

``python -m tests.docs.test_notebooks`` runs them and keeps what they print now.
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
#: Kept of a notebook beside its cells; all else tells who ran it, when and where.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
#: Training takes long where other work is going on.
pytestmark = pytest.mark.timeout(600)
EACH = pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)


def executed(file: Path, folder: Path, home: Path) -> Any:
    """Return a notebook that was run in a folder, by the Python that runs this.

    Args:
        file: The notebook.
        folder: Where it runs.
        home: With the stores and caches that it finds.
    """
    nbformat, nbclient = import_module("nbformat"), import_module("nbclient")
    client, specs = import_module("jupyter_client"), import_module("jupyter_client.kernelspec")

    class Specs(specs.KernelSpecManager):  # type: ignore[name-defined, misc]
        """Knows one kernel: what a machine has installed for others may be another Python."""

        def get_kernel_spec(self, kernel_name: str) -> Any:
            argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return specs.KernelSpec(argv=argv, language="python", display_name=kernel_name)

    own = {name: str(folder / name) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR")}
    own["CASEWRIGHT_HOME"] = str(home)
    # Over files of the folder: nobody else on the machine can read along.
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
    ).execute(cleanup_kc=True, env={**os.environ, **own})
    return notebook


def outputs(notebook: Any) -> Iterator[tuple[int, str, str]]:
    """Yield what the cells printed: the cell's number, the kind of output, and its text."""
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                yield number, output.name, output.text
            else:
                yield number, output.output_type, output.get("data", {}).get("text/plain", "")


def loosely(text: str) -> str:
    """Return a text without what another machine may say otherwise: digits, and widths."""
    return re.sub(r"\s+", " ", re.sub(r"\d+", "0", text)).strip()


def printed_texts(notebook: Any) -> dict[tuple[int, str], str]:
    """Return what every cell printed; it may have come in one piece or in several."""
    whole: dict[tuple[int, str], str] = {}
    for at, kind, text in outputs(notebook):
        # What is written to stderr is about a first start, of which the kept run had none.
        if kind != "stderr":
            whole[at, kind] = whole.get((at, kind), "") + text
    return {place: loosely(text) for place, text in whole.items()}


def read(file: Path) -> Any:
    return import_module("nbformat").read(file, as_version=4)


def test_notebooks_are_planner_and_tour() -> None:
    assert [file.stem for file in NOTEBOOKS] == ["planner", "tour"]


@EACH
def test_notebook_runs_and_prints_its_stored_output(file: Path, tmp_path: Path) -> None:
    assert printed_texts(executed(file, tmp_path, built_home())) == printed_texts(read(file))


@EACH
def test_stored_notebook_was_run_completely_and_without_errors(file: Path) -> None:
    cells = [cell for cell in read(file).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {kind for _, kind, _ in outputs(read(file))}
    assert "stdout" in kinds
    assert not kinds & {"error", "stderr"}


@EACH
def test_stored_notebook_contains_no_data_of_the_machine_that_ran_it(file: Path) -> None:
    notebook = read(file)
    assert notebook.metadata == METADATA
    assert not any(cell.metadata for cell in notebook.cells)
    text = file.read_text(encoding="utf-8")
    for place in (str(ROOT), str(Path.home()), "/home/", "/Users/", "/tmp/", sys.prefix):
        assert place == "/" or place not in text


def keep() -> None:
    """Run every notebook, or those that are named, and keep what they print."""
    chosen = [file for file in NOTEBOOKS if not sys.argv[1:] or file.stem in sys.argv[1:]]
    for file in chosen:
        with TemporaryDirectory() as folder:
            notebook = executed(file, Path(folder), built_home())
        notebook.metadata = METADATA
        for cell in notebook.cells:
            cell.metadata = {}
            if "outputs" in cell:
                shown = [one for one in cell.outputs if one.get("name") != "stderr"]
                cell.outputs = shown
        import_module("nbformat").write(notebook, file)


if __name__ == "__main__":
    keep()
