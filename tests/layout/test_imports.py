from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.layout.sources import OWN_FILES, PACKAGE_FILES, ROOM_FILES, ROOMS, Import, imports_of

#: The rooms that each room may import from, beside itself.
MAY_IMPORT = {
    "stores": set(),
    "tools": {"stores"},
    "planner": {"stores", "tools"},
    "graph": {"stores", "tools", "planner"},
    "finetune": {"stores", "tools", "planner"},
    "domains": {"stores", "tools", "planner", "graph"},
    # It measures all others. Of the command line it uses how results are printed, and how a planner
    # is found by its name.
    "bench": {"stores", "tools", "planner", "graph", "finetune", "domains", "serve"},
    "serve": {"stores", "tools", "planner", "graph", "finetune", "domains", "bench"},
}
HEAVY = ("torch", "transformers", "trl", "peft", "datasets", "matplotlib", "sentence_transformers")
#: Its room for key/value states is one of transformers' caches.
DECODING = "casewright.planner.decoding"


@cache
def imports() -> list[Import]:
    return [found for file in [*ROOM_FILES, *PACKAGE_FILES] for found in imports_of(file)]


def told(broken: list[Import]) -> list[str]:
    return [str(found) for found in broken]


def is_heavy(file: Path) -> bool:
    return file.stem.endswith("_network") or file.parent.name == "decoding"


def test_rules_know_every_room() -> None:
    assert set(MAY_IMPORT) == set(ROOMS)
    assert len(imports()) > 200
    assert {found.importer for found in imports()} == {*ROOMS, "casewright"}


def test_nothing_imports_a_room_by_its_bare_name() -> None:
    everywhere = [found for file in OWN_FILES for found in imports_of(file)]
    bare = [f for f in everywhere if f.module.split(".")[0] in ROOMS and not f.relative]
    assert told(bare) == []


def test_imports_are_absolute() -> None:
    assert told([found for found in imports() if found.relative]) == []


@pytest.mark.parametrize("room", ROOMS)
def test_room_imports_only_from_the_rooms_before_it(room: str) -> None:
    allowed = {"", room, *MAY_IMPORT[room]}
    assert told([f for f in imports() if f.importer == room and f.room not in allowed]) == []


def test_package_itself_imports_no_room_but_to_start_the_command_line() -> None:
    found = [f for f in imports() if f.importer == "casewright" and f.room]
    # What the front door names is imported when it is used; test_front_door looks.
    outside = {(f.file.name, f.module) for f in found if f.file.name != "__init__.py"}
    assert outside == {("__main__.py", "casewright.serve.cli")}


def test_bench_uses_of_the_command_line_only_how_it_prints_and_finds_planners() -> None:
    used = {f.module for f in imports() if f.importer == "bench" and f.room == "serve"}
    own = ("measured", "output", "planners", "scopes", "session")
    assert used <= {f"casewright.serve.{name}" for name in own}


def test_nothing_but_their_commands_imports_the_benches() -> None:
    users = {f.file.name for f in imports() if f.room == "bench" and f.importer != "bench"}
    assert users
    assert {name for name in users if not name.startswith("bench_")} == set()


def test_command_line_loads_no_other_room_until_a_command_runs() -> None:
    commands = {
        "bench_commands.py",
        "bench_narrowing_command.py",
        "bench_own_tools_command.py",
        "bench_soak_command.py",
        "bench_study_commands.py",
        "bench_unseen_command.py",
        "calibrate_command.py",
        "chat_command.py",
        "config_command.py",
        "correct_command.py",
        "draft_command.py",
        "eval_command.py",
        "finetune_adapt_command.py",
        "finetune_backgammon_cases_command.py",
        "finetune_backgammon_command.py",
        "finetune_commands.py",
        "finetune_corpus_command.py",
        "finetune_data_command.py",
        "finetune_eval_command.py",
        "finetune_math24_command.py",
        "finetune_parser_command.py",
        "finetune_pools_command.py",
        "finetune_query_commands.py",
        "finetune_train_command.py",
        "ingest_commands.py",
        "new_command.py",
        "serve_command.py",
        "settings_file.py",
        "show_command.py",
        "upkeep_commands.py",
    }
    names = {"cli.py", "options.py", *commands}
    cli = [f for f in imports() if f.file.name in names and f.importer == "serve" and f.at_once]
    assert {found.file.name for found in cli} == names
    own = {f"casewright.serve.{Path(name).stem}" for name in names}
    assert told([found for found in cli if found.room and found.module not in own]) == []


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    heavy = [f for f in imports() if f.module.split(".")[0] in HEAVY]
    assert heavy, "nothing is checked"
    # A network's classes are torch's, and a cache's are those of transformers: their modules are
    # heavy, and imported where they are used.
    assert told([f for f in heavy if f.at_once and not is_heavy(f.file)]) == []


def test_modules_of_networks_are_imported_where_they_are_used() -> None:
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
    assert told([found for found in outside if found.at_once]) == []


def test_package_and_every_room_are_imported_without_torch(tmp_path: Path) -> None:
    modules = ["casewright", *(f"casewright.{room}" for room in ROOMS)]
    # Each as if it were the first: what those before it imported of the project is forgotten.
    code = f"""
import sys
from importlib import import_module
for module in {modules}:
    for name in [name for name in sys.modules if name.split(".")[0] == "casewright"]:
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
