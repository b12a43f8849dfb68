"""The evaluation of several planners whose figures can be calculated by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from casewright.errors import InputError
from casewright.finetune.evaluation import (
    Evaluation,
    EvaluationItem,
    ShuffledPlans,
    evaluate,
    items_of,
    tables,
)
from casewright.planner import PlanRequest, PlanResult, parse_plan
from casewright.planner.fallback import FallbackPlanner
from tests.finetune.evaluating import (
    DESK,
    FACT,
    FIND,
    NOTHING,
    TOOLS,
    ScriptedPlanner,
    always,
    gold,
    gold_query,
    items,
    tool,
)

ITEMS = items((FIND, "find"), (FACT, "fact"), (DESK, "desk"), (NOTHING, "no_evidence"))


def value(evaluation: Evaluation, name: str) -> float | None:
    return evaluation.figures["a"][name].value


def test_evaluation_of_gold_plans_gives_perfect_figures() -> None:
    figures = evaluate(ITEMS, {"gold": gold(ITEMS)}, resamples=50).figures["gold"]
    right = ("tools", "tools_own", "arguments", "graph", "graph_arguments", "precision", "f1")
    assert all(figures[name].value == 1 for name in right)
    assert [figures[name].value for name in ("invalid", "hallucinated", "errors")] == [0, 0, 0]
    assert figures["tools"].high == 1
    assert figures["tools"].low == pytest.approx(0.5101, abs=1e-4)


def test_evaluation_figures_match_a_calculation_by_hand() -> None:
    result = evaluate(ITEMS, {"a": always(FIND)}, resamples=50)
    assert value(result, "tools") == 1 / 4
    assert value(result, "precision") == pytest.approx(1 / 16)
    assert value(result, "recall") == pytest.approx(1 / 4)
    assert value(result, "f1") == pytest.approx((2 * 0.25 / 1.25) / 4)
    rows = {row["class"]: row for row in result.rows}
    assert rows["find"]["tools"] == 1
    assert rows["fact"]["tools"] == 0
    assert rows["all"]["count"] == 4


def test_fallback_plan_counts_for_tools_but_not_for_tools_own() -> None:
    result = evaluate(ITEMS, {"a": always(FIND, fallback="out of time")}, resamples=50)
    assert (value(result, "tools"), value(result, "tools_own")) == (1 / 4, 0)
    assert value(result, "invalid") == 1


def test_exception_of_a_planner_counts_as_wrong_and_is_reported() -> None:
    def answer(request: PlanRequest) -> PlanResult:
        if request.question == "question 1":
            raise RuntimeError("no more\nmemory")
        return PlanResult(parse_plan(FIND), "scripted")

    result = evaluate(ITEMS, {"a": ScriptedPlanner(answer), "b": always(FIND)}, resamples=50)
    assert result.errors == [
        {"planner": "a", "item": "q1", "error": "RuntimeError: no more memory"}
    ]
    assert value(result, "errors") == 1 / 4
    assert value(result, "tools") == 1 / 4


class ScriptedBatchPlanner(ScriptedPlanner):
    """A planner for batches that fails for each batch with question 2."""

    batch = 2

    def plan_many(self, requests: Sequence[PlanRequest]) -> list[PlanResult]:
        self.batches = [*getattr(self, "batches", []), len(requests)]
        if any(request.question == "question 2" for request in requests):
            raise RuntimeError("the batch failed")
        return [self.answer(request) for request in requests]


def test_evaluation_calls_a_batch_planner_with_batches() -> None:
    others = [item for item in ITEMS if item.query.query != "question 2"]
    planner = ScriptedBatchPlanner(always(FIND).answer)
    evaluate(others, {"a": planner}, resamples=10)
    assert planner.batches == [3]
    # The first question is planned alone, since its time includes loading.
    assert [request.question for request in planner.requests] == ["question 0"]


def test_questions_of_a_failed_batch_are_planned_one_by_one() -> None:
    planner = ScriptedBatchPlanner(always(FIND).answer)
    result = evaluate(ITEMS, {"a": planner}, resamples=10)
    assert result.errors == []
    assert value(result, "tools") == 1 / 4
    assert len(planner.requests) == 1 + 4


def test_unknown_tools_are_counted_in_plans_and_in_written_texts() -> None:
    texts = {
        "question 0": 'Sure:\ns1 = look_up(query="x")',
        "question 1": 's1 = find(query="s2 = look_up(") and then s2 = fact(of=s1.id',
        "question 2": "I do not know.",
        "question 3": "s1=find(query=1); s2 = Desk.Ask(query=2)",
    }
    stand_in = parse_plan(NOTHING)
    planner = ScriptedPlanner(
        lambda request: PlanResult(
            stand_in, "scripted", fallback="no plan", written=texts[request.question]
        )
    )
    result = evaluate(ITEMS, {"a": planner}, resamples=10)
    assert [outcome.unknown_tools for outcome in result.outcomes["a"]] == [
        *(("look_up",), (), (), ("Desk.Ask",)),
    ]
    assert value(result, "hallucinated") == 2 / 4
    assert value(evaluate(ITEMS, {"a": always("s1 = other()")}, resamples=9), "hallucinated") == 1


def test_planner_that_uses_a_removed_tool_scores_zero_for_only_provided() -> None:
    cheat, fair = gold(ITEMS), FallbackPlanner()
    result = evaluate(
        ITEMS, {"cheat": cheat, "obey": fair}, removal={"cheat": cheat, "obey": fair}, resamples=10
    )
    scores = [result.figures[name]["only_provided"] for name in ("cheat", "obey")]
    # no_evidence cannot be removed: only three of the four questions are planned again.
    assert [(score.value, score.count) for score in scores] == [(0, 3), (1, 3)]
    retries = cheat.requests[-3:]
    assert all(len(request.toolbox) == len(TOOLS) - 1 for request in retries)
    for request, item in zip(retries, ITEMS, strict=False):
        assert not set(item.query.plan.tools) <= set(request.toolbox.names)


@pytest.mark.parametrize(
    ("written", "score"),
    [
        ("s1 = desk(query=question) and more", 1),
        ("s1 = find(query=question) and more", 0),
        ("I would rather not.", 0),
        ("", 0),
    ],
)
def test_only_provided_uses_the_written_text_not_the_fallback_plan(
    written: str, score: int
) -> None:
    questions = items((FIND, "find"))
    planner = always(NOTHING, fallback="no plan", written=written)
    result = evaluate(questions, {"a": planner}, removal={"a": planner}, resamples=10)
    assert value(result, "only_provided") == score


def test_figures_guaranteed_by_the_grammar_are_noted_as_by_construction() -> None:
    result = evaluate(ITEMS, {"a": FallbackPlanner()}, constrained={"a"}, removal={}, resamples=10)
    figure = result.figures["a"]["only_provided"]
    assert (figure.value, figure.note) == (None, "by construction")
    assert result.figures["a"]["hallucinated"].note == "by construction"


def test_removed_tool_depends_on_the_seed() -> None:
    dataset = items(*[(FACT, "fact")] * 12)
    removals = []
    for seed in (0, 0, 1):
        planner = gold(dataset)
        evaluate(dataset, {"a": planner}, removal={"a": planner}, seed=seed, resamples=10)
        removals.append(["find" in request.toolbox for request in planner.requests[-12:]])
    assert removals[0] == removals[1] != removals[2]
    assert 0 < sum(removals[0]) < 12


def test_queries_that_need_an_extra_tool_have_a_separate_figure() -> None:
    extra = {"name": "rain", "parameters": {"town": ""}, "results": ["text"], "description": ""}
    queries = [
        gold_query(0, 's1 = rain(town="question")', "extra", tools_extra=[extra]),
        gold_query(1, FIND, "find", tools_extra=[extra]),
        gold_query(2, FIND, "find"),
    ]
    result = evaluate(items_of(queries, TOOLS), {"a": always(FIND)}, resamples=10)
    figure = result.figures["a"]["new_tool_tools"]
    assert (figure.value, figure.count) == (0, 1)


def test_evaluation_reports_times_and_tokens_of_the_plan_results() -> None:
    tokens = {"input": 100, "output": 20, "model_steps": 7}
    result = evaluate(ITEMS, {"a": always(FIND, milliseconds=5.0, tokens=tokens)}, resamples=10)
    names = ("ms_p50", "ms_p95", "input_tokens", "output_tokens", "model_steps")
    assert [value(result, name) for name in names] == [5, 5, 100, 20, 7]
    silent = evaluate(ITEMS, {"a": FallbackPlanner()}, resamples=10)
    assert [value(silent, name) for name in names] == [None] * 5


def test_differences_are_paired_and_relative_to_the_first_planner() -> None:
    dataset = items(*[(FIND, "find"), (DESK, "desk")] * 20)
    result = evaluate(dataset, {"gold": gold(dataset), "same": gold(dataset), "find": always(FIND)})
    rows = {(row["planner"], row["figure"]): row for row in result.differences}
    assert all(row["against"] == "gold" for row in result.differences)
    equal = rows["same", "tools"]
    assert (equal["difference"], equal["low"], equal["high"]) == (0, 0, 0)
    lower = rows["find", "tools"]
    assert lower["difference"] == -0.5
    assert -0.7 < lower["low"] < -0.5 < lower["high"] < -0.3


def test_control_planners_are_right_only_by_chance() -> None:
    dataset = items(*[(FIND, "find"), (FACT, "fact"), (DESK, "desk"), (NOTHING, "none")] * 25)
    result = evaluate(dataset, {"a": ShuffledPlans(dataset), "b": FallbackPlanner()}, resamples=10)
    assert 0.1 < (value(result, "tools") or 0) < 0.4
    assert result.figures["b"]["tools"].value == pytest.approx(0.25)


def test_evaluation_result_is_plain_json_and_shown_in_tables() -> None:
    def answer(request: PlanRequest) -> PlanResult:
        raise ValueError("a | b")

    result = evaluate(
        ITEMS, {"a": always(FIND), "b|c": ScriptedPlanner(answer)}, removal={}, resamples=10
    )
    data = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert set(data) == {"settings", "figures", "rows", "differences", "errors"}
    assert data["figures"]["a"]["tools"]["count"] == 4
    overview, *_, differences = tables(result)
    assert list(overview.columns) == ["figure", "a", "b|c"]
    assert any("by construction" in row[1] for row in overview.rows)
    assert all(len(row) == 2 for row in differences.rows)


def test_query_without_a_class_gets_the_class_of_its_plan() -> None:
    query = gold_query(0, FACT, "")
    assert items_of([query], TOOLS)[0].query.label == "fact"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"items": []}, "nothing to evaluate on"),
        ({"planners": {}}, "Give at least one planner"),
        ({"groups": (1,)}, "1 groups for 4 items"),
        ({"removal": {"b": FallbackPlanner()}}, "not among the planners"),
    ],
    ids=lambda arguments: str(next(iter(arguments))) if isinstance(arguments, dict) else "",
)
def test_evaluation_refuses_empty_or_inconsistent_arguments(
    arguments: dict[str, object], message: str
) -> None:
    settings: dict[str, object] = {"items": ITEMS, "planners": {"a": always(FIND)}, **arguments}
    with pytest.raises(InputError, match=message):
        evaluate(settings.pop("items"), settings.pop("planners"), **settings)  # type: ignore[arg-type]


def test_evaluation_accepts_items_of_several_toolboxes() -> None:
    other = items_of(
        [gold_query(9, 's1 = other(query="x")', "other")], TOOLS.with_(tool("other", "query"))
    )
    all_items: list[EvaluationItem] = [*ITEMS, *other]
    figures = evaluate(all_items, {"a": gold(all_items)}, resamples=10).figures["a"]
    assert figures["tools_own"].value == 1
