"""Requests with tools that the domain's trained reader does not know."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from casewright.domains import find_domain
from casewright.errors import InputError
from casewright.planner import (
    CasePlanner,
    PlanRequest,
    Reader,
    named_planners,
    parse_plan,
    plan_store,
)
from casewright.planner.ensemble import EnsembleCard
from casewright.planner.named import make_planner
from casewright.planner.reuse import ScoredPlan
from casewright.tools import Toolbox, ToolExample, tool_from_function
from tests.support.encoders import HashingEncoder
from tests.support.training_examples import shop_toolbox


def prod_search(query: str) -> str:
    """Finds products of the shop by what they are."""
    return query


def gift_card_balance(card_number: str) -> str:
    """The balance that is left on a gift card, by the card's number."""
    return card_number


SEARCH = tool_from_function(prod_search)
BALANCE = tool_from_function(
    gift_card_balance,
    example=ToolExample(
        "how much is left on gift card 4411", 's1 = gift_card_balance(card_number="4411")'
    ),
)


@pytest.fixture(scope="module")
def reader() -> Reader:
    folder = find_domain("shopping").reader
    assert folder is not None
    return Reader(folder)


def test_tool_that_the_reader_lacks_is_planned_by_its_description(reader: Reader) -> None:
    request = PlanRequest("what is left on gift card 7305", Toolbox([SEARCH, BALANCE]))
    result = CasePlanner(None, reader).plan(request)
    assert result.plan == parse_plan('s1 = gift_card_balance(card_number="7305")')
    assert result.planner == "case"


def test_new_tool_does_not_change_the_reader_plan_of_other_questions(reader: Reader) -> None:
    planner, question = CasePlanner(None, reader), "do you sell wireless headphones"
    toolboxes = (Toolbox([SEARCH]), Toolbox([SEARCH, BALANCE]))
    known, extended = (planner.plan(PlanRequest(question, toolbox)) for toolbox in toolboxes)
    assert (
        extended.plan == known.plan == parse_plan('s1 = prod_search(query="wireless headphones")')
    )
    assert extended.confidence == known.confidence


def test_case_planner_uses_the_given_planner_for_tools_the_reader_lacks(reader: Reader) -> None:
    class FixedReuse:
        """Returns the same plan for every request."""

        def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
            yield ScoredPlan(parse_plan('s1 = gift_card_balance(card_number="1")'), 0.9)

    planner = CasePlanner(None, reader, untrained=FixedReuse())
    request = PlanRequest("what is left on gift card 1, not 7305", Toolbox([SEARCH, BALANCE]))
    expected = parse_plan('s1 = gift_card_balance(card_number="1")')
    assert planner.plan(request).plan == expected
    assert asyncio.run(planner.aplan(request)).plan == expected
    known = PlanRequest("do you sell wireless headphones", Toolbox([SEARCH]))
    assert planner.plan(known).plan == CasePlanner(None, reader).plan(known).plan


def test_case_planner_loads_the_language_model_only_for_tools_the_reader_lacks(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = []

    def load(*name_and_settings: object) -> None:
        loads.append(name_and_settings)
        raise InputError("It cannot be loaded.")

    never_sure = EnsembleCard(1.5, 2.0, 0.0, 0.1, 0.1, 0.2)
    monkeypatch.setattr(EnsembleCard, "read", lambda: never_sure)
    monkeypatch.setattr(named_planners, "is_runnable", lambda: True)
    monkeypatch.setattr(named_planners, "local_model", load)
    with plan_store([], HashingEncoder()) as store:
        planner = make_planner("case", store, reader)
        planner.plan(PlanRequest("do you sell wireless headphones", Toolbox([SEARCH])))
        assert not loads
        request = PlanRequest("what is left on gift card 7305", Toolbox([SEARCH, BALANCE]))
        plan = planner.plan(request).plan
    assert loads
    assert plan == parse_plan('s1 = gift_card_balance(card_number="7305")')


def test_second_best_plan_with_a_new_tool_wins_for_an_unfamiliar_message(
    reader: Reader,
) -> None:
    search, balance = parse_plan("s1 = prod_search(query=question)"), parse_plan("s1 = balance()")

    class UnsureReuse:
        """Scores a search somewhat higher than the new tool."""

        def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
            yield ScoredPlan(search, 0.6, score=-0.5)
            yield ScoredPlan(balance, 0.3, score=-2.0)

    def balance_tool() -> str:
        """The balance that is left."""
        return ""

    planner = CasePlanner(None, reader, untrained=UnsureReuse())
    tools = Toolbox([*shop_toolbox(), tool_from_function(balance_tool, name="balance")])
    familiar = "do you sell wireless headphones"
    assert planner.plan(PlanRequest(familiar, tools)).plan.tools == search.tools
    unfamiliar = "how many slammed the door on us in Beacon Heights"
    assert planner.plan(PlanRequest(unfamiliar, tools)).plan == balance
