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
    # It measures all others; the command line hands it the service.
    "bench": {"stores", "tools", "planner", "graph", "finetune", "domains"},
    "serve": {"stores", "tools", "planner", "graph", "finetune", "domains", "bench"},
}
HEAVY = ("torch", "transformers", "trl", "peft", "datasets", "matplotlib", "sentence_transformers")
#: Its room for key/value states is one of transformers' caches.
DECODING = "casewright.planner.decoding"


@cache
def imports() -> list[Import]:
    return [
        found for file in [*ROOM_FILES, *PACKAGE_FILES, *ADDED_FILES] for found in imports_of(file)
    ]


def as_texts(broken: list[Import]) -> list[str]:
    return [str(found) for found in broken]


def is_heavy(file: Path) -> bool:
    return file.stem.endswith("_network") or file.parent.name == "decoding"


def test_import_rules_cover_every_source_folder() -> None:
    assert set(MAY_IMPORT) == set(ROOMS)
    assert len(imports()) > 200
    assert {found.importer for found in imports()} == {*ROOMS, "casewright", "packages"}


def test_no_file_imports_a_source_folder_without_the_prefix_casewright() -> None:
    everywhere = [found for file in OWN_FILES for found in imports_of(file)]
    bare = [f for f in everywhere if f.module.split(".")[0] in ROOMS and not f.relative]
    assert as_texts(bare) == []


def test_imports_are_absolute() -> None:
    assert as_texts([found for found in imports() if found.relative]) == []


@pytest.mark.parametrize("room", ROOMS)
def test_source_folder_imports_only_from_its_allowed_folders(room: str) -> None:
    allowed = {"", room, *MAY_IMPORT[room]}
    assert as_texts([f for f in imports() if f.importer == room and f.room not in allowed]) == []


def test_package_files_import_only_the_command_line() -> None:
    found = [f for f in imports() if f.importer == "casewright" and f.room]
    # What the front door names is imported when it is used; test_front_door looks.
    outside = {(f.file.name, f.module) for f in found if f.file.name != "__init__.py"}
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
    found = [f for f in imports() if f.room == "domains" and names & {*f.module.split(".")}]
    assert {f.importer for f in found if f.importer != "domains"} == {"bench"}


def test_parts_of_serve_import_only_earlier_parts() -> None:
    parts = ("settings", "session", "page", "service", "cli")
    may = {part: set(parts[: number + 1]) for number, part in enumerate(parts)}
    may["service"].discard("page")
    inside = [f for f in imports() if f.importer == "serve" and f.room == "serve"]
    assert inside
    within = [(f.file.relative_to(ROOT / "serve").parts[0], f) for f in inside]
    assert as_texts([f for part, f in within if f.module.split(".")[2] not in may[part]]) == []


def test_serve_imports_no_baselines_and_trainings_only_within_functions() -> None:
    used = [f for f in imports() if f.importer == "serve" and f.room in ("bench", "finetune")]
    assert used
    baselines = [f for f in used if f.module.startswith("casewright.finetune.baselines")]
    # A test of benches is above; what is at once here is how a user's correction is kept.
    at_once = {f.module for f in used if f.at_once}
    assert (as_texts(baselines), at_once) == ([], {"casewright.finetune.queries.correction"})


def test_modules_have_no_circular_imports() -> None:
    _check_order({(module_of(f.file), f.module) for f in imports() if f.module in MODULES})


@pytest.mark.parametrize("room", ROOMS)
def test_subfolders_of_a_source_folder_have_no_circular_imports(room: str) -> None:
    """Beside what lies at the room's top, which all of them may use."""
    within = [f for f in imports() if f.importer == f.room == room and f.module in MODULES]
    pairs = {(_folder(f.file), _folder(MODULES[f.module])) for f in within}
    _check_order({(one, other) for one, other in pairs if one and other and one != other})


def _folder(file: Path) -> str:
    """Return the folder of a room that a file lies in; empty for those at the room's top."""
    parts = file.relative_to(ROOT).parts
    return parts[1] if len(parts) > 2 else ""


def _check_order(pairs: set[tuple[str, str]]) -> None:
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for importer, imported in pairs:
        sorter.add(importer, imported)
    # It names a circle where there is one.
    sorter.prepare()


def test_command_line_loads_no_other_folder_until_a_command_runs() -> None:
    code = "import sys, casewright.serve.cli.commands; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[1] for name in done.stdout.split() if name.startswith("casewright.")}
    assert loaded == {"errors", "serve"}


def test_heavy_libraries_are_imported_only_within_functions() -> None:
    heavy = [f for f in imports() if f.module.split(".")[0] in HEAVY]
    assert heavy, "nothing is checked"
    # A network's classes are torch's, and a cache's are those of transformers: their modules are
    # heavy, and imported where they are used.
    assert as_texts([f for f in heavy if f.at_once and not is_heavy(f.file)]) == []


def test_network_modules_are_imported_only_within_functions() -> None:
    networks = [found for found in imports() if found.module.endswith("_network")]
    decoding = [
        found
        for found in imports()
        # A measurement is imported by its command alone.
        if found.module.startswith(DECODING)
        and found.file.parent.name != "decoding"
        and found.importer != "bench"
    ]
    assert networks, "nothing is checked"
    assert decoding, "nothing is checked"
    # The parts of one network stand in several files.
    outside = [found for found in [*networks, *decoding] if not is_heavy(found.file)]
    assert as_texts([found for found in outside if found.at_once]) == []


def test_package_and_every_source_folder_are_imported_without_torch(tmp_path: Path) -> None:
    modules = ["casewright", *(f"casewright.{room}" for room in ROOMS), *ADDED]
    # Each as if it were the first: what those before it imported of the project is forgotten.
    code = f"""
import sys
from importlib import import_module
for module in {modules}:
    for name in [name for name in sys.modules if name.startswith("casewright")]:
        del sys.modules[name]
    import_module(module)
    print(module, sorted({set(HEAVY)} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:casewright", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    wanted = "".join(f"{module} []\n" for module in modules)
    assert (done.returncode, done.stdout, done.stderr) == (0, wanted, "")
