"""Casewright finds planners, generators, judges, encoders and domains of other packages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from casewright.errors import InputError
from casewright.extensions import extension, extensions
from tests.serve.helpers import Output, command, new_home, one_line_error, result, run_argv

ROOT = Path(__file__).parents[3]
KINDS = ("planner", "generator", "judge", "encoder", "domain")
PLANTKIT = '''
from casewright import Toolbox, own_domain, tool
from casewright.graph import ExtractiveGenerator
from casewright.planner import PlanResult, parse_plan
from casewright.planner.named import NamedPlanner
from casewright.stores.feedback import OfflineJudge
from tests.support.encoders import HashingEncoder


@tool
def read_sensor(place: str) -> str:
    """The temperature of a place."""
    return f"{place}: 61"


class Pinned:
    name = "pinned"

    def __init__(self, place):
        self.place = place

    def plan(self, request):
        return PlanResult(parse_plan(f's1 = read_sensor(place="{self.place}")'), self.name)

    async def aplan(self, request):
        return self.plan(request)


class Loud(ExtractiveGenerator):
    name = "loud"


class Kind(OfflineJudge):
    pass


def bench_plant(rounds: int = 1) -> None:
    """Measure the plant."""
    print("rounds", rounds)


def hashing():
    return HashingEncoder(16)


PLANT = own_domain("plant", Toolbox([read_sensor]), scopes={"hall": ["B"]})
PINNED = NamedPlanner(lambda parts: Pinned(parts.name.partition(":")[2]), "PLACE")
'''
ENTRY_POINTS = """
[casewright.planners]
pinned = plantkit:PINNED
broken = plantkit_that_is_gone:PLANNER
[casewright.generators]
loud = plantkit:Loud
[casewright.judges]
kind = plantkit:Kind
[casewright.encoders]
hashing = plantkit:hashing
[casewright.domains]
plant = plantkit:PLANT
shopping = plantkit:PLANT
[casewright.bench_commands]
plant = plantkit:bench_plant
broken = plantkit_that_is_gone:bench
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an installed package that has extensions."""
    folder = tmp_path_factory.mktemp("site")
    metadata = folder / "plantkit-1.0.dist-info"
    metadata.mkdir()
    (folder / "plantkit.py").write_text(PLANTKIT, encoding="utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plantkit\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_home(tmp_path_factory.mktemp("extended") / "home")


def run(site: Path, home: Path, *arguments: str) -> Output:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join((str(site), str(ROOT))))
        return run_argv(home, [*command(), *arguments])


def test_ask_uses_planner_generator_encoder_and_domain_of_another_package_by_name(
    site: Path, home: Path
) -> None:
    parts = ("--planner", "pinned:lathe", "--generator", "loud", "--encoder", "hashing")
    answer = result(run(site, home, "ask", "how hot", "--domain", "plant", *parts, "--json"))
    assert answer["plan"] == 's1 = read_sensor(place="lathe")'
    assert (answer["planner"]["name"], answer["generator"]) == ("pinned", "loud")
    assert "lathe: 61" in answer["text"]


def test_extensions_of_another_package_are_listed_and_hide_none_of_casewright(
    site: Path, home: Path
) -> None:
    domains = {domain["name"]: domain for domain in result(run(site, home, "domains", "--json"))}
    assert domains["plant"]["scopes"] == {"hall": ["B"]}
    assert domains["shopping"]["scopes"].keys() == {"customer"}
    message = one_line_error(run(site, home, "ask", "how hot", "--planner", "nobody"))
    assert "broken, case, classifiers" in message
    assert "pinned:PLACE" in message


def test_extension_that_cannot_be_imported_is_reported_with_its_package(
    site: Path, home: Path
) -> None:
    message = one_line_error(run(site, home, "ask", "how hot", "--planner", "broken"))
    assert "plantkit_that_is_gone:PLANNER of the package plantkit" in message


def test_judge_of_another_package_is_made_by_name(site: Path, home: Path) -> None:
    code = "from casewright.graph.named import make_judge; print(type(make_judge('kind')).__name__)"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join((str(site), str(ROOT))))
        completed = run_argv(home, [sys.executable, "-c", code])
    assert completed.stdout == "Kind\n", completed.stderr


def test_bench_command_of_another_package_runs(site: Path, home: Path) -> None:
    assert run(site, home, "bench", "plant", "--rounds", "3").stdout == "rounds 3\n"
    message = one_line_error(run(site, home, "bench", "broken"))
    assert "plantkit_that_is_gone:bench of the package plantkit" in message


@pytest.mark.parametrize("kind", KINDS)
def test_every_extension_of_casewright_is_found_by_its_entry_point(kind: str) -> None:
    assert len(extensions(kind)) > 0
    for name in extensions(kind):
        extension(kind, name)
    with pytest.raises(InputError, match=f"There is no {kind} 'nobody'"):
        extension(kind, "nobody")
