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
    Row,
    ablation_rows,
    open_material,
    trainings_of,
)
from casewright.bench.reaper.studies import halves, held_out_queries, held_shapes, study_rows
from casewright.bench.reaper.workplace import given_start
from casewright.domains import Domain, OpenDomain
from casewright.errors import InputError
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.finetune.shots import plain
from casewright.finetune.training import train as training
from casewright.planner import PlanRequest, PlanResult, plan_store
from casewright.planner.fallback import fallback_plan, in_place_of
from casewright.serve.cli.commands import app
from casewright.stores import CachedEncoder, Encoder
from tests.bench.reaper_toy import FROZEN, QUERIES, RECIPE, query
from tests.planner.helpers import SHOP
from tests.support.encoders import HashingEncoder
from tests.support.tiny_mistral import save_tiny

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
    options = ["--work", str(work), "--recipe", str(recipe), "--tool", "desk", "--limit", "2"]
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


def test_rows_start_from_one_new_network_where_the_recipe_names_no_base(
    second: Bench, work: Path
) -> None:
    (start,) = (work / "bases").iterdir()
    rows = [json.loads(file.read_text()) for file in (work / "planners").glob("*/casewright.json")]
    assert len(rows) > 2
    assert {row["base"] for row in rows} == {start.name}


def lines_of(report: Bench, row: str) -> list[Bench]:
    return [line for line in report["rows"] if line["row"] == row]


def asked(row: Row) -> set[str]:
    return {plain(item.query.query) for item in row.questions.items}


def study(material: Material, recipe: Path) -> list[Row]:
    data = Recipe.read(recipe).data
    return study_rows(material, data, ReaperTrial(recipe=str(recipe), tool="desk", limit=8))


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
                *("--recipe", str(recipe), "--tool", "desk"),
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
        [*asked, "--limit", "2", "--recipe", str(recipe), "--tool", "desk", "--plot", str(file)],
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


def test_no_study_asks_what_was_learned_or_is_shown(material: Material, recipe: Path) -> None:
    for row in study(material, recipe):
        assert row.training is not None
        learned = {plain(entry.query) for entry in row.training.ingredients.queries}
        shown = {plain(entry.query) for entry in row.questions.cases}
        assert asked(row)
        assert not asked(row) & (learned | shown), row.name


def test_what_rows_start_from_has_seen_nothing_that_a_study_asks(
    material: Material, recipe: Path
) -> None:
    trial = ReaperTrial(recipe=str(recipe), tool="desk", limit=8)
    out = {plain(entry.query) for entry in held_out_queries(material, trial)}
    held = [row for row in study(material, recipe) if row.questions.name.startswith("held out")]
    assert len(held) >= 5
    for row in held:
        assert asked(row) <= out, row.name


def test_new_shapes_are_in_no_training_but_for_those_that_are_added(
    material: Material, recipe: Path
) -> None:
    new = held_shapes(material.queries)
    assert new == {("find", "desk")}
    without, shown, added = study(material, recipe)[:3]

    def of_them(queries: Any) -> int:
        return sum(query.plan.tools in new for query in queries)

    assert {item.query.plan.tools for item in without.questions.items} <= new
    assert without.training is shown.training
    assert without.training is not None
    assert added.training is not None
    assert of_them(without.training.ingredients.queries) == of_them(without.questions.cases) == 0
    assert of_them(shown.questions.cases) > 0
    assert 0 < of_them(added.training.ingredients.queries) <= 25


def test_a_tool_that_is_left_out_is_in_no_prompt_of_its_training(
    material: Material, recipe: Path
) -> None:
    rows = {row.name: row for row in study(material, recipe)}
    never = rows["tool desk never seen"]
    assert never.training is not None
    assert "desk" not in never.training.ingredients.toolbox
    assert "desk" not in never.training.ingredients.pools
    assert all("desk" in item.query.plan.tools for item in never.questions.items)
    assert all("desk" in item.request.toolbox for item in never.questions.items)
    own = rows["tools of their own, never seen"]
    assert own.training is never.training
    assert all(item.new_tools for item in own.questions.items)
    left_out = rows["class desk left out"].training
    assert left_out is not None
    assert left_out.identity == never.training.identity


def test_the_paper_s_new_tool_is_in_the_prompts_of_its_questions_and_in_no_training(
    material: Material, recipe: Path
) -> None:
    (row,) = [entry for entry in study(material, recipe) if "compatible_products" in entry.name]
    assert row.training is not None
    assert "compatible_products" not in row.training.ingredients.toolbox
    assert row.questions.items[0].query.query == "ink cartridge for HP 4650"
    for item in row.questions.items:
        assert item.new_tools == {"compatible_products"}
        tool = item.request.toolbox["compatible_products"]
        assert tool.description
        assert tool.example is not None
        assert tool.example.query not in asked(row)


def test_a_class_is_added_by_its_queries_alone(material: Material, recipe: Path) -> None:
    rows = [row for row in study(material, recipe) if row.name.startswith("class desk added")]
    assert len(rows) == 2
    for row in rows:
        assert row.training is not None
        options = [q for q in row.training.ingredients.queries if "desk" in q.plan.tools]
        assert options
        assert {q.label for q in options} == {"desk"}
        assert "desk" in row.training.ingredients.toolbox


def test_the_rows_of_the_studies_are_four_trainings(material: Material, recipe: Path) -> None:
    names = [entry.name for entry in trainings_of(study(material, recipe))]
    assert names == ["no-shapes", "shapes-added", "no-tool", "class-added"]


def test_like_questions_are_on_one_side_of_a_study(material: Material) -> None:
    twins = [
        query(200 + n, text, "s1 = no_evidence()", "no_evidence")
        for n, text in enumerate(("a b c", "c b a", "d e f", "f e d", "g h i", "i h g"))
    ]
    parts = halves(twins, 2, material.encoder, 0)
    halved = (parts.questions, parts.rest)
    sides = [{frozenset(entry.query.split()) for entry in side} for side in halved]
    assert not sides[0] & sides[1]
    assert len(parts.questions) == 2


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


def test_a_tool_that_is_not_there_is_refused(material: Material, recipe: Path) -> None:
    trial = ReaperTrial(tool="violin")
    with pytest.raises(InputError, match="no tool 'violin'"):
        study_rows(material, Recipe.read(recipe).data, trial)


def test_a_folder_without_instructions_is_refused(material: Material, tmp_path: Path) -> None:
    data = Recipe.read(find_recipe("reaper")).data
    with pytest.raises(InputError, match="jsonl"):
        ablation_rows(material, data, tmp_path)


def test_rows_do_not_start_from_a_model_that_knows_the_tools(
    material: Material, tmp_path: Path
) -> None:
    folder = save_tiny(tmp_path / "start", hidden=16, layers=1)
    assert given_start(folder, material.toolbox).model == str(folder)
    for known, ok in ((["violin", "no_evidence"], True), (["violin", "desk"], False)):
        card = {"data": {}, "trained_before": {"data": {"manifest": {"toolbox": {"tools": known}}}}}
        (folder / "casewright.json").write_text(json.dumps(card))
        if ok:
            given_start(folder, material.toolbox)
        else:
            with pytest.raises(InputError, match="trained to plan with desk"):
                given_start(folder, material.toolbox)


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
