"""Tests of REAPER's tables on a toy domain, with short trainings of a tiny network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from casewright.bench import harness
from casewright.domains import Domain, OpenDomain
from casewright.errors import InputError
from casewright.finetune.evaluation import items_of
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.finetune.training import train as training
from casewright.planner import PlanRequest, PlanResult, plan_store
from casewright.planner.fallback import fallback_plan, fallback_result
from casewright.serve.cli.commands import app
from casewright.stores import CachedEncoder, Encoder
from casewright_studies.reaper import PAPER, ReaperTrial, draw_lines, planner_lines, trained_rows
from tests.packages.studies.reaper_toy import FROZEN, QUERIES, RECIPE
from tests.planner.helpers import SHOP
from tests.support.encoders import HashingEncoder

#: Training takes long on a busy machine.
pytestmark = pytest.mark.timeout(600)
Bench = dict[str, Any]
STEPS = 8


def open_toy(folder: Path, encoder: Encoder, anew: bool = False) -> OpenDomain:
    store = plan_store(QUERIES, encoder)
    return OpenDomain(SHOP, store, {"plans": store})


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Replace every domain with the toy domain."""
    domain = Domain("toy", "", (), open_toy, lambda: QUERIES, measuring_queries=lambda: FROZEN)
    encoder = CachedEncoder(HashingEncoder(128), tmp_path_factory.mktemp("embeddings"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("casewright.domains.find_domain", lambda name: domain)
        patch.setattr(harness, "default_encoder", lambda: encoder)
        # Without a grammar, a barely trained network writes without end.
        patch.setattr("casewright.planner.model_planner.FREE_TOKENS", 24)
        yield


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("recipe") / "toy.toml"
    file.write_text(RECIPE)
    return file


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


def run(work: Path, recipe: Path, *arguments: str) -> Any:
    """Run the command and return its result."""
    options = ["--work", str(work), "--recipe", str(recipe), "--limit", "2"]
    command = ["bench", "reaper", "--steps", str(STEPS), *options, *arguments]
    return CliRunner().invoke(app, command, env={"COLUMNS": "400"})


@pytest.fixture(scope="module")
def table_2(toy: None, work: Path, recipe: Path) -> Bench:
    completed = run(work, recipe, "--table", "2", "--json")
    assert completed.exit_code == 0, completed.output
    report: Bench = json.loads(completed.stdout)
    return report


def lines_of(report: Bench, row: str) -> list[Bench]:
    return [line for line in report["rows"] if line["row"] == row]


def test_rows_of_table_2_have_lines_of_the_trained_and_the_case_planner(table_2: Bench) -> None:
    for row in ("all parts", "without Evolve and DQS", "without Evolve, TEvo and DQS"):
        lines = lines_of(table_2, row)
        assert [(line["planner"], line["grammar"]) for line in lines] == [
            ("trained", "on"),
            ("trained", "off"),
            ("case planner", None),
        ]
        for line in lines:
            assert line["count"] == 2
            assert line["arguments"] <= line["tools"]
            assert line["low"] <= line["tools"] <= line["high"]
            assert (line["only_provided"] is not None) == (line["grammar"] == "off")
            assert line["grammar"] != "on" or line["invalid"] == 0
        assert {line["steps"] for line in lines[:2]} == {STEPS}
        assert all(line["examples"] > 40 and line["tokens"] > 1000 for line in lines[:2])


def test_row_without_instructions_has_a_note_instead_of_figures(table_2: Bench) -> None:
    (line,) = lines_of(table_2, "without Evolve")
    assert line["tools"] is None
    assert "--instructions" in line["note"]


def test_margins_are_the_differences_of_the_lines(table_2: Bench) -> None:
    trained, *_, case = lines_of(table_2, "all parts")
    figures = table_2["figures"]
    assert figures["tools_table_2_all_parts"] == trained["tools"]
    margin = figures["tools_table_2_all_parts_over_case_planner"]
    assert margin == pytest.approx(trained["tools"] - case["tools"], abs=1e-3)


def test_repeated_command_trains_nothing(
    table_2: Bench, work: Path, recipe: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was done again")

    monkeypatch.setattr(training, "_train", fail)
    picture = tmp_path / "rows.png"
    completed = run(work, recipe, "--table", "2", "--plot", str(picture))
    assert completed.exit_code == 0, completed.output
    assert "Table 2" in completed.stdout
    assert "without Evolve, TEvo and DQS" in completed.stdout
    assert "Table 3" not in completed.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_stopped_run_keeps_finished_trainings_and_names_the_command_to_continue(
    table_2: Bench, work: Path, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(run: Any, *_: Any) -> Any:
        raise KeyboardInterrupt

    before = {file.name for file in (work / "planners").iterdir()}
    monkeypatch.setattr(training, "_train", interrupt)
    completed = run(work, recipe, "--table", "2", "--steps", "3")
    assert completed.exit_code != 0
    assert "The same command continues" in completed.output
    # Planners that were trained with other steps are kept.
    assert before <= {file.name for file in (work / "planners").iterdir()}


def test_plot_bars_show_the_trained_planner_even_if_never_right(table_2: Bench) -> None:
    from matplotlib.figure import Figure

    shares = {"trained": 0.0, "case planner": 0.5}
    lines = [dict(line) for line in table_2["rows"] if line["tools"] is not None]
    lines = [{**line, "tools": shares[line["planner"]]} for line in lines]
    axes: Any = Figure().subplots()
    draw_lines(axes, lines)
    assert [bar.get_width() for bar in axes.patches] == [0.0] * 3
    assert {mark.get_label(): {*mark.get_xdata()} for mark in axes.lines} == {"case planner": {0.5}}


def test_table_1_has_classes_per_planner_and_three_seeds_of_random_weights(
    table_2: Bench, work: Path, recipe: Path
) -> None:
    (folder,) = (work / "planners").glob("all-parts-*")
    completed = run(work, recipe, "--table", "1", "--planner", str(folder), "--json")
    assert completed.exit_code == 0, completed.output
    report = json.loads(completed.stdout)
    lines = lines_of(report, "shipped planner")
    # Six questions are for a new tool; two of the frozen queries have a class each.
    counts = [line["count"] for line in lines if line["class"] == "compatible_products"]
    assert counts == [6, 6]
    lines = [line for line in lines if line["class"] != "compatible_products"]
    assert [line["class"] for line in lines] == ["find", "no_evidence", "all"] * 2
    assert lines[2]["published"] == "tools 0.96, arguments_paper 0.92, ms_p50 207 (6,296 queries)"
    assert lines[5]["published"] == "only_provided 1 (6,296 queries)"
    assert lines_of(report, "its base, not tuned")[4]["published"] == "tools 0.72 (not tuned)"
    expected = "precision 1, recall 0.93, f1 0.96 (1,245 of the class)"
    assert [line["published"] for line in lines[:2]] == [None, expected]
    seeds = {line["row"] for line in report["rows"] if line["planner"] == "random weights"}
    assert len(seeds) == 3
    assert "tools 0.94" in lines_of(report, "classifiers")[-1]["published"]
    assert {"tools_case_planner", "only_provided_shipped_planner"} <= report["figures"].keys()


def test_table_2_removes_one_part_per_row(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "asked.jsonl").write_text("")
    rows = [r for r in trained_rows(Recipe.read(recipe).data, tmp_path) if r.table == "2"]
    data = [row.data for row in rows if row.data]
    assert [d.instructions.evolved for d in data] == [0.5, 0.0, 0.0, 0.0]
    assert [d.sampling.method for d in data] == ["dqs", "dqs", "random", "random"]
    assert [d.tevo.enabled for d in data] == [True, True, True, False]
    assert {d.instructions.share for d in data} == {1.0}
    assert [row.paper["tools"] for row in rows] == [0.96, 0.95, 0.87, 0.91]


def test_table_3_varies_the_share_of_instructions_and_the_tasks(
    recipe: Path, tmp_path: Path
) -> None:
    (tmp_path / "asked.jsonl").write_text("")
    rows = [r for r in trained_rows(Recipe.read(recipe).data, tmp_path) if r.table == "3"]
    settings = [(r.data.instructions.share, r.data.ttg.tasks_per_query) for r in rows if r.data]
    mixtures = [(0.4, 3), (0.5, 3), (0.6, 3), (1.0, 3), (1.0, 4), (1.0, 5)]
    assert settings == [(0.0, 3), (1.0, 0), *mixtures]
    # Table 2 begins with the paper's best mixture.
    assert rows[6].slug == "all-parts"


def test_the_shipped_recipe_trains_adapters_on_the_packaged_base() -> None:
    recipe = Recipe.read(find_recipe("reaper"), check_files=False)
    assert recipe.model.base == "smollm2"
    assert recipe.data.corpus.copies == 0


def test_class_sizes_of_the_paper_sum_to_the_published_totals() -> None:
    for name, total in (("reaper", 6296), ("ensemble", 156_076)):
        classes = PAPER["table_1"][name]["classes"].values()
        assert sum(int(entry[3].partition(" ")[0].replace(",", "")) for entry in classes) == total


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({"tables": ("4",)}, "There is no table '4'"), ({"limit": 0}, "--limit")],
    ids=["table", "limit"],
)
def test_invalid_table_or_limit_is_refused(arguments: Mapping[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        ReaperTrial(**arguments)


def test_a_folder_without_instructions_is_refused(recipe: Path, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="jsonl"):
            trained_rows(Recipe.read(recipe).data, folder)


class FailingPlanner:
    """A planner that always fails and returns the plan of its fallback."""

    name = "broken"

    def plan(self, request: PlanRequest) -> PlanResult:
        fallback = PlanResult(fallback_plan(request), self.name)
        return fallback_result(self.name, ValueError("no memory"), fallback, milliseconds=1.0)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return self.plan(request)


class GoldFallbackPlanner:
    """A planner whose fallback returns the gold plan."""

    name = "gold fallback"

    def plan(self, request: PlanRequest) -> PlanResult:
        [gold] = [query.plan for query in FROZEN if query.query == request.question]
        return PlanResult(gold, self.name, fallback="no plan was written")

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return self.plan(request)


def test_plan_of_a_fallback_counts_as_wrong_even_if_it_is_the_gold_plan() -> None:
    *_, overall = planner_lines(items_of(FROZEN, SHOP), {"fallback": GoldFallbackPlanner()}, 0)
    assert (overall["tools"], overall["invalid"]) == (0.0, 1.0)


def test_planner_that_always_fails_is_an_error() -> None:
    with pytest.raises(InputError, match=r"3 of 3 .* no memory"):
        list(planner_lines(items_of(FROZEN, SHOP), {"broken": FailingPlanner()}, 0))
