from __future__ import annotations

import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.layout.sources import (
    ADDED,
    ADDED_FILES,
    MODULES,
    OWN_FILES,
    PACKAGE_FILES,
    ROOM_FILES,
    ROOMS,
    ROOT,
    TEST_FILES,
    Import,
    imports_of,
    module_of,
)

#: The rooms that each room may import from, beside itself.
MAY_IMPORT = {
    "stores": set(),
    "tools": {"stores"},
    "planner": {"stores", "tools"},
    "graph": {"stores", "tools", "planner"},
    "finetune": {"stores", "tools", "planner"},
    "domains": {"stores", "tools", "planner", "graph"},
    # Benches measure all others; the command line passes the service to them.
    "bench": {"stores", "tools", "planner", "graph", "finetune", "domains"},
    "serve": {"stores", "tools", "planner", "graph", "finetune", "domains", "bench"},
}
HEAVY = ("torch", "transformers", "trl", "peft", "datasets", "matplotlib", "sentence_transformers")
#: A package whose cache of key/value states is a class of transformers.
DECODING = "casewright.planner.decoding"


@cache
def imports() -> list[Import]:
    return [
        item for file in [*ROOM_FILES, *PACKAGE_FILES, *ADDED_FILES] for item in imports_of(file)
    ]


def as_texts(broken: list[Import]) -> list[str]:
    return [str(item) for item in broken]


def is_heavy(file: Path) -> bool:
    return file.stem.endswith("_network") or file.parent.name == "decoding"


def test_import_rules_cover_every_source_folder() -> None:
    assert set(MAY_IMPORT) == set(ROOMS)
    assert len(imports()) > 200
    assert {item.importer for item in imports()} == {*ROOMS, "casewright", "packages"}


def test_no_file_imports_a_source_folder_without_the_prefix_casewright() -> None:
    all_imports = [item for file in OWN_FILES for item in imports_of(file)]
    bare = [f for f in all_imports if f.module.split(".")[0] in ROOMS and not f.relative]
    assert as_texts(bare) == []


def test_imports_are_absolute() -> None:
    assert as_texts([item for item in imports() if item.relative]) == []


@pytest.mark.parametrize("room", ROOMS)
def test_source_folder_imports_only_from_its_allowed_folders(room: str) -> None:
    allowed = {"", room, *MAY_IMPORT[room]}
    assert as_texts([f for f in imports() if f.importer == room and f.room not in allowed]) == []


def test_package_files_import_only_the_command_line() -> None:
    room_imports = [f for f in imports() if f.importer == "casewright" and f.room]
    # The exported names are imported when they are used; test_public_names checks that.
    outside = {(f.file.name, f.module) for f in room_imports if f.file.name != "__init__.py"}
    assert outside == {("__main__.py", "casewright.serve.cli")}


def test_only_bench_commands_import_benches() -> None:
    users = {f.file.parent for f in imports() if f.room == "bench" and f.importer != "bench"}
    added = {ROOT / "packages" / name for name in ADDED}
    assert users - added == {ROOT / "serve" / "cli" / "bench"}


def test_only_tests_of_benches_and_packages_import_benches() -> None:
    folders = {f.file.parent for file in TEST_FILES for f in imports_of(file) if f.room == "bench"}
    of_packages = {folder for folder in folders if folder.parent == ROOT / "tests" / "packages"}
    assert folders - of_packages == {ROOT / "tests" / "bench"}


def test_only_benches_import_a_specific_domain() -> None:
    names = {file.parent.name for file in (ROOT / "domains").glob("*/domain.py")}
    assert len(names) > 2
    uses = [f for f in imports() if f.room == "domains" and names & {*f.module.split(".")}]
    assert {f.importer for f in uses if f.importer != "domains"} == {"bench"}


def test_parts_of_serve_import_only_earlier_parts() -> None:
    parts = ("settings", "session", "page", "service", "cli")
    may = {part: set(parts[: number + 1]) for number, part in enumerate(parts)}
    may["service"].discard("page")
    inside = [f for f in imports() if f.importer == "serve" and f.room == "serve"]
    assert inside
    scoped = [(f.file.relative_to(ROOT / "serve").parts[0], f) for f in inside]
    assert as_texts([f for part, f in scoped if f.module.split(".")[2] not in may[part]]) == []


def test_serve_imports_no_baselines_and_trainings_only_within_functions() -> None:
    used = [f for f in imports() if f.importer == "serve" and f.room in ("bench", "finetune")]
    assert used
    baselines = [f for f in used if f.module.startswith("casewright.finetune.baselines")]
    # Only the module that stores a user's correction is imported at once.
    at_once = {f.module for f in used if f.at_once}
    assert (as_texts(baselines), at_once) == ([], {"casewright.finetune.queries.correction"})


def test_modules_have_no_circular_imports() -> None:
    _check_order({(module_of(f.file), f.module) for f in imports() if f.module in MODULES})


@pytest.mark.parametrize("room", ROOMS)
def test_subfolders_of_a_source_folder_have_no_circular_imports(room: str) -> None:
    """Files at the top of the room are left out, since all subfolders may import them."""
    scoped = [f for f in imports() if f.importer == f.room == room and f.module in MODULES]
    pairs = {(_folder(f.file), _folder(MODULES[f.module])) for f in scoped}
    _check_order({(user, used) for user, used in pairs if user and used and user != used})


def _folder(file: Path) -> str:
    """Return the subfolder of a room that contains a file; empty at the top of the room."""
    parts = file.relative_to(ROOT).parts
    return parts[1] if len(parts) > 2 else ""


def _check_order(pairs: set[tuple[str, str]]) -> None:
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for importer, imported in pairs:
        sorter.add(importer, imported)
    # This raises an error that names the circle if there is one.
    sorter.prepare()


def test_command_line_loads_no_other_folder_until_a_command_runs() -> None:
    code = "import sys, casewright.serve.cli.commands; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[1] for name in run.stdout.split() if name.startswith("casewright.")}
    assert loaded == {"errors", "serve"}


def test_heavy_libraries_are_imported_only_within_functions() -> None:
    heavy = [f for f in imports() if f.module.split(".")[0] in HEAVY]
    assert heavy, "nothing is checked"
    # Networks and caches subclass classes of torch and transformers, so their modules are heavy,
    # and are imported where they are used.
    assert as_texts([f for f in heavy if f.at_once and not is_heavy(f.file)]) == []


def test_network_modules_are_imported_only_within_functions() -> None:
    networks = [item for item in imports() if item.module.endswith("_network")]
    decoding = [
        item
        for item in imports()
        # Only its command imports a bench.
        if item.module.startswith(DECODING)
        and item.file.parent.name != "decoding"
        and item.importer != "bench"
    ]
    assert networks, "nothing is checked"
    assert decoding, "nothing is checked"
    # The parts of one network are in several files.
    outside = [item for item in [*networks, *decoding] if not is_heavy(item.file)]
    assert as_texts([item for item in outside if item.at_once]) == []


def test_package_and_every_source_folder_are_imported_without_torch(tmp_path: Path) -> None:
    modules = ["casewright", *(f"casewright.{room}" for room in ROOMS), *ADDED]
    # Each import forgets the modules of the project that were imported before it.
    code = f"""
import sys
from importlib import import_module
for module in {modules}:
    for name in [name for name in sys.modules if name.startswith("casewright")]:
        del sys.modules[name]
    import_module(module)
    print(module, sorted({set(HEAVY)} & set(sys.modules)))
"""
    process = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:casewright", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    expected = "".join(f"{module} []\n" for module in modules)
    assert (process.returncode, process.stdout, process.stderr) == (0, expected, "")
