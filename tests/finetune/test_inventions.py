"""Shares of a planner's invented tools and arguments, by kind."""

from __future__ import annotations

import pytest

from casewright.finetune.evaluation import evaluate
from tests.finetune.evaluating import DESK, FACT, FIND, NOTHING, always, gold, items

ITEMS = items((FIND, "find"), (FACT, "fact"), (DESK, "desk"), (NOTHING, "no_evidence"))
KINDS = ("invented_steps", "invented_absent", "invented_arguments")


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ('s1 = find(query="lamp")\ns2 = compare(of=s1.id)', "invented_steps"),
        ('s1 = fact(of="B07", query=question, colour="red")', "invented_arguments"),
        ('s1 = find(query="lamp")\ns2 = fact(of=s1.price, query=question)', "invented_arguments"),
        ("I would look it up.", None),
        (FACT, None),
    ],
    ids=["step", "undeclared argument", "field that no result has", "no plan", "a valid plan"],
)
def test_each_invention_of_a_plan_is_counted_once_under_its_kind(
    output: str, kind: str | None
) -> None:
    planner = always(FIND, fallback="invalid", written=output)
    figures = evaluate(ITEMS, {"a": planner}, resamples=20).figures["a"]
    assert {name: figures[name].value for name in KINDS} == {
        name: float(name == kind) for name in KINDS
    }


def test_tool_of_another_toolbox_counts_as_absent_not_as_invented() -> None:
    questions = [ITEMS[0], ITEMS[1].without("desk")]
    figures = evaluate(questions, {"a": always(DESK)}, resamples=20).figures["a"]
    assert figures["invented_absent"].value == 1 / 2
    assert figures["invented_steps"].value == 0


def test_gold_plans_contain_no_inventions() -> None:
    figures = evaluate(ITEMS, {"gold": gold(ITEMS)}, resamples=20).figures["gold"]
    assert [figures[name].value for name in KINDS] == [0, 0, 0]
