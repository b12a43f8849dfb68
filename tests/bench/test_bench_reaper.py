"""REAPER's tables on a toy domain: trainings of some steps, on a network of some 15,000 weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from casewright.bench import harness
from casewright.bench.reaper.asking import Asking
from casewright.bench.reaper.measure import draw_rows
from casewright.bench.reaper.rows import (
    ENSEMBLE,
    REAPER,
    Material,
    QuestionSet,
    ReaperTrial,
    ablation_rows,
    open_material,
)
from casewright.domains import Domain, OpenDomain
from casewright.errors import InputError
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.finetune.training import train as training
from casewright.planner import PlanRequest, PlanResult, plan_store
from casewright.planner.fallback import fallback_plan, in_place_of
from casewright.serve.cli.commands import app
from casewright.stores import CachedEncoder, Encoder
from tests.bench.reaper_toy import FROZEN, QUERIES, RECIPE
from tests.planner.helpers import SHOP
from tests.support.encoders import HashingEncoder

#: Training takes long where other work is going on.
pytestmark = pytest.mark.timeout(600)
Bench = dict[str, Any]
STEPS = 8


def open_toy(folder: Path, encoder: Encoder, anew: bool = False) -> OpenDomain:
    store = plan_store(QUERIES, encoder)
    return OpenDomain(SHOP, store, {"plans": store})


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The toy domain in the place of every other."""
    domain = Domain("toy", "", (), open_toy, lambda: QUERIES, measuring_queries=lambda: FROZEN)
    encoder = CachedEncoder(HashingEncoder(128), tmp_path_factory.mktemp("embeddings"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("casewright.domains.find_domain", lambda name: domain)
        patch.setattr(harness, "default_encoder", lambda: encoder)
        # Without a grammar, a network that has learned little never ends.
        patch.setattr("casewright.planner.model_planner.FREE_TOKENS", 24)
        yield


@pytest.fixture(scope="module")
def material(toy: None) -> Material:
    return open_material("toy")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("recipe") / "toy.toml"
    file.write_text(RECIPE)
    return file


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


def measured(work: Path, recipe: Path, *arguments: str) -> Bench:
    """Run the command and return the object that it prints."""
    options = ["--work", str(work), "--recipe", str(recipe), "--limit", "2"]
    completed = CliRunner().invoke(
        app,
        ["bench", "reaper", "--json", "--steps", str(STEPS), *options, *arguments],
        catch_exceptions=False,
    )
    assert completed.exit_code == 0, completed.output
    mixtures_found: Bench = json.loads(completed.stdout)
    return mixtures_found


@pytest.fixture(scope="module")
def second(toy: None, work: Path, recipe: Path) -> Bench:
    return measured(work, recipe, "--table", "2")


def lines_of(report: Bench, row: str) -> list[Bench]:
    return [line for line in report["rows"] if line["row"] == row]


def test_every_row_is_asked_in_four_ways_and_beside_what_it_has_to_beat(second: Bench) -> None:
    ways = [("on", "on"), ("on", "off"), ("off", "on"), ("off", "off")]
    for row in ("all parts", "without Evolve and DQS", "without Evolve, TEvo and DQS"):
        lines = lines_of(second, row)
        assert [line["planner"] for line in lines] == [
            *["trained"] * 4,
            *["random weights"] * 2,
            "case planner",
        ]
        expected = [(line["grammar"], line["plan cases"]) for line in lines[:6]]
        assert expected == [*ways, *ways[:2]]
        for line in lines:
            assert line["count"] == 2
            assert 0 <= line["arguments"] <= line["tools"] <= 1
            assert line["low"] <= line["tools"] <= line["high"]
        assert {line["steps"] for line in lines[:4]} == {STEPS}
        assert all(line["examples"] > 40 and line["tokens"] > 1000 for line in lines[:4])


def test_instruction_following_counts_with_the_grammar_off_alone(second: Bench) -> None:
    for line in lines_of(second, "all parts"):
        assert (line["only_provided"] is not None) == (line["grammar"] == "off")


def test_under_the_grammar_no_plan_is_invalid(second: Bench) -> None:
    bound = [line for line in second["rows"] if line["grammar"] == "on"]
    assert len(bound) > 10
    assert {line["invalid"] for line in bound} == {0.0}


def test_a_row_that_needs_instructions_says_that_there_are_none(second: Bench) -> None:
    (line,) = lines_of(second, "without Evolve")
    assert line["tools"] is None
    assert "--instructions" in line["note"]


def test_margins_are_those_of_the_lines(second: Bench) -> None:
    served, *_, case = lines_of(second, "all parts")
    figures = second["figures"]
    assert figures["tools_table_2_all_parts"] == served["tools"]
    margin = figures["tools_table_2_all_parts_over_case_planner"]
    assert margin == pytest.approx(served["tools"] - case["tools"], abs=1e-3)
    assert "tools_table_2_all_parts_over_random_weights" in figures


def test_the_same_command_again_trains_nothing_and_asks_nothing(
    second: Bench, work: Path, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was done again")

    monkeypatch.setattr(training, "_train", refused)
    monkeypatch.setattr("casewright.bench.reaper.asking.evaluate", refused)
    again = measured(work, recipe, "--table", "2")
    assert again["rows"] == second["rows"]


def test_damaged_figures_are_measured_again(second: Bench, work: Path, recipe: Path) -> None:
    files = sorted((work / "figures").glob("case-*.json"))
    files[0].write_text("{")
    assert measured(work, recipe, "--table", "2")["figures"] == second["figures"]
    assert json.loads(files[0].read_text())["figures"]


def test_a_run_that_was_stopped_goes_on_with_the_training_at_hand(
    second: Bench, work: Path, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file.name for file in (work / "planners").iterdir()}
    begun: list[str] = []

    def stopped(run: Any, *_: Any) -> Any:
        begun.append(run.output.name)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training, "_train", stopped)
        completed = CliRunner().invoke(
            app,
            [
                *("bench", "reaper", "--table", "2", "--steps", "3", "--work", str(work)),
                *("--recipe", str(recipe)),
            ],
        )
    assert completed.exit_code != 0
    assert "The same command goes on" in completed.output
    assert len(begun) == 1
    # What was trained with other steps is left as it is.
    assert begun[0] not in before
    assert before <= {file.name for file in (work / "planners").iterdir()}


def test_the_tables_are_drawn_and_printed_apart(
    second: Bench, work: Path, recipe: Path, tmp_path: Path
) -> None:
    file = tmp_path / "rows.png"
    asked = ["bench", "reaper", "--table", "2", "--steps", str(STEPS), "--work", str(work)]
    completed = CliRunner().invoke(
        app,
        [*asked, "--limit", "2", "--recipe", str(recipe), "--plot", str(file)],
        env={"COLUMNS": "400"},
        catch_exceptions=False,
    )
    assert "Table 2" in completed.stdout
    assert "without Evolve, TEvo and DQS" in completed.stdout
    assert "Table 3" not in completed.stdout
    assert file.read_bytes().startswith(b"\x89PNG")


def test_a_bar_is_the_trained_planners_also_where_it_is_never_right(second: Bench) -> None:
    from matplotlib.figure import Figure

    rows = [dict(line) for line in second["rows"] if line["tools"] is not None]
    for line in rows:
        line["tools"] = {"trained": 0.0, "random weights": 0.25, "case planner": 0.5}[
            line["planner"]
        ]
    axes: Any = Figure().subplots()
    draw_rows(axes, rows)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert len(names) == len(set(names)) == 3
    assert [bar.get_width() for bar in axes.patches] == [0.0] * 3
    assert {mark.get_label(): {*mark.get_xdata()} for mark in axes.lines} == {
        "case planner": {0.5},
        "random weights": {0.25},
    }


def test_table_1_has_the_classes_of_each_planner_and_random_weights_of_several_seeds(
    second: Bench, work: Path, recipe: Path
) -> None:
    (folder,) = (work / "planners").glob("all-parts-*")
    report = measured(work, recipe, "--table", "1", "--planner", str(folder))
    lines = lines_of(report, "shipped planner")
    # Two of the three frozen questions, each of a class of its own.
    assert [line["class"] for line in lines[2:]] == ["all"] * 4
    assert {line["class"] for line in lines[:2]} < {"desk", "find", "no_evidence"}
    expected = "tools 0.96, arguments_paper 0.92, ms_p50 207 (6,296 queries)"
    assert lines[2]["published"] == expected
    untuned = lines_of(report, "its base, not tuned")
    assert [line["class"] for line in untuned[2:]] == ["all"] * 4
    assert untuned[2]["published"] == "tools 0.72 (not tuned)"
    seeds = [line["row"] for line in report["rows"] if line["planner"] == "random weights"]
    assert len(set(seeds)) == 3
    for name in ("case planner", "classifiers"):
        assert lines_of(report, name)[-1]["class"] == "all"
    assert "tools 0.94" in lines_of(report, "classifiers")[-1]["published"]


def test_table_2_takes_parts_away_one_after_the_other(
    material: Material, recipe: Path, tmp_path: Path
) -> None:
    (tmp_path / "self_instruct_seed_tasks.jsonl").write_text("")
    data = Recipe.read(recipe).data
    rows = [row for row in ablation_rows(material, data, tmp_path) if row.table == "2"]
    expected = [row.training.data for row in rows if row.training]
    assert len(expected) == 4
    assert [d.instructions.evolved for d in expected] == [0.5, 0.0, 0.0, 0.0]
    assert [d.sampling.method for d in expected] == ["dqs", "dqs", "random", "random"]
    assert [d.tevo.enabled for d in expected] == [True, True, True, False]
    assert {d.instructions.share for d in expected} == {1.0}
    assert [row.paper.tools for row in rows] == [0.96, 0.95, 0.87, 0.91]
    assert [row.paper.only_provided for row in rows] == [1.0, 0.76, 1.0, 0.85]
    assert {len(row.questions.cases) for row in rows} == {48}


def test_table_3_varies_the_share_of_instructions_and_the_tasks(
    material: Material, recipe: Path, tmp_path: Path
) -> None:
    (tmp_path / "self_instruct_seed_tasks.jsonl").write_text("")
    data = Recipe.read(recipe).data
    rows = [row for row in ablation_rows(material, data, tmp_path) if row.table == "3"]
    expected = [row.training.data for row in rows if row.training]
    mixtures_found = [(d.instructions.share, d.ttg.tasks_per_query) for d in expected]
    mixtures = [(0.4, 3), (0.5, 3), (0.6, 3), (1.0, 3), (1.0, 4), (1.0, 5)]
    assert mixtures_found == [(0.0, 3), (1.0, 0), *mixtures]
    paper = [row.paper.cell(grammar=grammar) for grammar in (True, False) for row in rows[:2]]
    assert paper == [
        "tools 0.92 (19k tasks)",
        "tools 0.2 (147k instructions)",
        "only_provided 0.23 (19k tasks)",
        "only_provided 0.71 (147k instructions)",
    ]
    # The paper's best mixture is what Table 2 begins with.
    assert rows[6].training is not None
    assert rows[6].training.name == "all-parts"


def test_the_shipped_recipe_trains_adapters_on_the_packaged_base() -> None:
    recipe = Recipe.read(find_recipe("reaper"), files=False)
    assert recipe.model.base == "smollm2"
    assert recipe.lora.method == "lora"
    assert recipe.data.corpus.copies == 1


def test_scores_of_a_class_are_published_with_its_training_size_where_the_paper_has_them() -> None:
    expected = "precision 0.91, recall 1, f1 0.95 (1,289 of the class)"
    assert REAPER.cell("prod_search") == expected
    # The classes' sizes are those of the whole.
    for paper, total in ((REAPER, 6296), (ENSEMBLE, 156_076)):
        sizes = [entry[3].partition(" ")[0].replace(",", "") for entry in paper.classes.values()]
        assert sum(map(int, sizes)) == total
    assert REAPER.cell("multi_step") is None
    assert REAPER.cell("prod_search", grammar=False) is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"tables": ("4",)}, "There is no table '4'"),
        ({"tables": ()}, "No table"),
        ({"limit": 0}, "--limit"),
        ({"instructions": Path("nowhere at all")}, "no folder"),
    ],
    ids=["table", "none", "limit", "instructions"],
)
def test_a_run_that_cannot_be_is_refused(arguments: Mapping[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        ReaperTrial(**arguments)


def test_a_folder_without_instructions_is_refused(material: Material, tmp_path: Path) -> None:
    data = Recipe.read(find_recipe("reaper")).data
    with pytest.raises(InputError, match="jsonl"):
        ablation_rows(material, data, tmp_path)


class Broken:
    """Fails, and has its fallback answer."""

    name = "broken"

    def plan(self, request: PlanRequest) -> PlanResult:
        other = PlanResult(fallback_plan(request), self.name)
        return in_place_of(self.name, ValueError("no memory"), other, milliseconds=1.0)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return self.plan(request)


def test_a_planner_that_fails_has_no_figures(material: Material) -> None:
    questions = QuestionSet("frozen", material.frozen, material.queries[:5])
    with (
        plan_store(questions.cases, material.encoder) as store,
        pytest.raises(InputError, match=r"3 of 3 .* no memory"),
    ):
        Asking(questions, store, 1).of(Broken())
