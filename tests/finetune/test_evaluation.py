"""Scores of plans, on examples that are calculated by hand."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from casewright.finetune.evaluation import (
    ClassScore,
    Verdict,
    as_row,
    judge,
    plan_class,
    score_classes,
)
from casewright.planner import AnnotatedQuery, parse_plan

GOLD = 's1 = order_lookup(query="galaxy phone")\ns2 = prod_qna(product_id=s1.product_id, query={})'
ASKED = GOLD.format("question")


def gold_query(plan: str = ASKED, label: str = "prod_qna", **fields: Any) -> AnnotatedQuery:
    return AnnotatedQuery.read({"query": "q", "plan": plan, "class": label, **fields})


def judge_text(plan_text: str, **fields: Any) -> Verdict:
    return judge(gold_query(**fields), parse_plan(plan_text))


def test_gold_plan_is_judged_right() -> None:
    assert judge_text(ASKED) == Verdict("prod_qna", "prod_qna", True, True, False, 0.0)
    assert judge(gold_query(), parse_plan(ASKED), 12.5).milliseconds == 12.5


def test_plan_with_another_tool_is_wrong_in_tools_and_arguments() -> None:
    result = judge_text("s1 = no_evidence()")
    assert (result.right_tools, result.right_arguments, result.predicted) == (
        False,
        False,
        "no_evidence",
    )


@pytest.mark.parametrize(
    "plan",
    [
        ASKED.replace('"galaxy phone"', '"phone"'),
        ASKED.replace('"galaxy phone"', "question"),
        ASKED.replace("s1.product_id", "s1[1].product_id"),
        ASKED.replace("s1.product_id", "context.product_id"),
        ASKED.replace(", query=question", ""),
        ASKED.replace("query=question", 'query="q"'),
        ASKED.replace("query=question", "query=question, more=1"),
    ],
)
def test_other_arguments_of_the_right_tools_are_wrong_in_arguments_only(plan: str) -> None:
    result = judge_text(plan)
    assert (result.right_tools, result.right_arguments, result.predicted) == (
        True,
        False,
        "prod_qna",
    )


def test_judge_ignores_argument_order_and_letter_case() -> None:
    plan = (
        's1 = order_lookup(query="Galaxy  PHONE")\n'
        "s2 = prod_qna(query=question, product_id=s1.product_id)"
    )
    assert judge_text(plan).right_arguments


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ('"galaxy"', True),
        ('"My Galaxy 12 Phone"', True),
        ('"phone"', False),
        ("question", False),
        ("12", False),
    ],
)
def test_literal_is_right_if_it_contains_the_must_word(value: str, right: bool) -> None:
    plan = ASKED.replace('"galaxy phone"', value)
    assert judge_text(plan, must={"s1.query": ["galaxy"]}).right_arguments == right


def test_literal_is_right_only_if_it_contains_every_must_word() -> None:
    must = {"s1.query": ["galaxy", "phone"]}
    assert judge_text(
        ASKED.replace("galaxy phone", "phone, the galaxy one"), must=must
    ).right_arguments
    assert not judge_text(ASKED.replace("galaxy phone", "galaxy"), must=must).right_arguments


def test_must_words_of_one_argument_do_not_apply_to_another() -> None:
    plan = GOLD.format('"memory"')
    must = {"s2.query": ["memory"]}
    plan_text = plan.replace('"memory"', '"how much memory"')
    assert judge_text(plan_text, plan=plan, must=must).right_arguments
    assert not judge_text(plan_text.replace("galaxy ", ""), plan=plan, must=must).right_arguments


def test_other_accepted_tools_count_as_right() -> None:
    other = "s1 = prod_search(query=question)"
    assert not judge_text(other).right_tools
    result = judge_text(other, accept=[["no_evidence"], ["prod_search"]])
    assert (result.right_tools, result.right_arguments, result.predicted) == (
        True,
        True,
        "prod_qna",
    )


@pytest.mark.parametrize(("literal", "right"), [('"galaxy phone"', True), ('"kettle"', False)])
def test_arguments_of_an_accepted_order_of_the_same_tools_are_compared(
    literal: str, right: bool
) -> None:
    swapped = f"s1 = prod_search(query=question)\ns2 = order_lookup(query={literal})"
    plan = 's1 = order_lookup(query="galaxy phone")\ns2 = prod_search(query=question)'
    result = judge_text(swapped, plan=plan, accept=[["prod_search", "order_lookup"]])
    assert (result.right_tools, result.right_arguments) == (True, right)


@pytest.mark.parametrize(
    ("plan", "measured"),
    [
        ("s1 = prod_search(query=question)", True),
        ("s1 = order_lookup(query=question)\ns2 = shipment_status(order_id=s1.order_id)", True),
        (ASKED, False),
        ("s1 = no_evidence()", False),
    ],
)
def test_paper_argument_accuracy_covers_only_prod_search_and_shipment_status(
    plan: str, measured: bool
) -> None:
    assert judge(gold_query(plan), parse_plan(plan)).in_paper == measured


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        ("s1 = no_evidence()", "no_evidence"),
        (ASKED, "prod_qna"),
        ("s1 = a()\ns2 = b()", "multi_step"),
        ("s1 = a()\ns2 = b(x=s1.y)\ns3 = c(x=s1.y)", "multi_step"),
        ("s1 = a()\ns2 = b()\ns3 = c(x=[s1.y, s2.y])", "c"),
    ],
)
def test_plan_class_is_the_only_tool_whose_result_no_step_uses(plan: str, name: str) -> None:
    assert plan_class(parse_plan(plan)) == name


def test_class_scores_match_a_calculation_by_hand() -> None:
    verdicts = [
        Verdict("a", "a", True, True, True, 1),
        Verdict("a", "a", True, False, True, 1),
        Verdict("a", "b", False, False, True, 1),
        Verdict("a", "c", False, False, False, 1),
        Verdict("b", "b", True, True, False, 1),
        Verdict("b", "a", False, False, False, 1),
    ]
    a, b, overall = score_classes(verdicts)
    # Class a: recall 2/4, precision 2/3, F1 = 2 * 2/3 * 1/2 / (2/3 + 1/2) = 4/7.
    assert a == ClassScore("a", 4, 0.5, 0.25, 1 / 3, 2 / 3, 0.5, a.f1)
    assert a.f1 == pytest.approx(4 / 7)
    assert (b.name, b.count, b.tool_accuracy, b.argument_accuracy) == ("b", 2, 0.5, 0.5)
    assert math.isnan(b.argument_accuracy_paper)
    assert (b.precision, b.recall, b.f1) == (0.5, 0.5, 0.5)
    assert (overall.name, overall.count) == ("all", 6)
    assert overall.tool_accuracy == pytest.approx(3 / 6)
    assert overall.argument_accuracy == pytest.approx(2 / 6)
    assert overall.argument_accuracy_paper == pytest.approx(1 / 3)
    assert overall.precision == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert overall.recall == pytest.approx(1 / 2)
    assert overall.f1 == pytest.approx((4 / 7 + 1 / 2) / 2)


def test_class_that_is_never_predicted_has_zero_scores() -> None:
    a, _ = score_classes([Verdict("a", "b", False, False, False, 1)])
    assert (a.precision, a.recall, a.f1) == (0.0, 0.0, 0.0)


def test_score_row_is_plain_json_with_null_for_unmeasured_figures() -> None:
    row = as_row(score_classes([Verdict("a", "a", True, False, False, 1)])[0])
    assert json.loads(json.dumps(row, allow_nan=False)) == {
        "class": "a",
        "count": 1,
        "tools": 1.0,
        "arguments": 0.0,
        "arguments_paper": None,
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
    }
