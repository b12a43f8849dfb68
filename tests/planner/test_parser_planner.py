"""The plan parser as a planner."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from casewright.errors import InputError
from casewright.planner import AnnotatedQuery, PlanRequest, plan_store
from casewright.planner.parser.weights import ParserCard, read_card, save_parser
from casewright.planner.parser_planner import ParserPlanner
from casewright.planner.plan import Literal
from casewright.tools import Parameter, Source, Toolbox, ToolSpec
from tests.planner.helpers import ROWS, SHOP
from tests.support.encoders import HashingEncoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import AutoModel

    from casewright.planner.parser.parser_network import ParserNetwork
    from casewright.stores.encoders.minilm import packaged_minilm

    folder = tmp_path_factory.mktemp("parser")
    base = AutoModel.from_pretrained(str(packaged_minilm()), attn_implementation="eager")
    weights = ParserNetwork(base).state_dict()
    trained = {name: w for name, w in weights.items() if not name.startswith("encoder.")}
    save_parser(folder, trained, ParserCard())
    return folder


def test_its_plans_are_valid_with_a_confidence_and_other_plans(folder: Path) -> None:
    cases = [AnnotatedQuery.read({"query": q, "plan": p, "context": c}) for q, p, c in ROWS]
    with plan_store(cases, HashingEncoder()) as store:
        planner = ParserPlanner(store, folder)
        request = PlanRequest("how loud is my radio, and do you sell tents?", SHOP)
        result = planner.plan(request)
    for plan in (result.plan, *result.alternatives):
        request.validate(plan)
    assert result.planner == f"parser:{folder}"
    assert not result.fallback
    assert result.confidence is not None
    assert 0 <= result.confidence <= 1


def test_a_message_that_nothing_can_be_read_of_gets_the_fallback_plan(folder: Path) -> None:
    result = ParserPlanner(None, folder).plan(PlanRequest("?!", SHOP))
    assert result.fallback
    assert result.confidence == 0


def test_a_likelier_plan_is_a_surer_one() -> None:
    card = ParserCard(slope=0.5, shift=1.0)
    assert card.confidence(-0.1) > card.confidence(-3.0) > card.confidence(-1e6)


def test_a_card_of_the_format_before_keeps_its_curve_over_the_log_probability(
    tmp_path: Path,
) -> None:
    save_parser(tmp_path, {}, ParserCard(slope=2.0, shift=1.0, format=1))
    assert read_card(tmp_path).confidence(-0.5) == pytest.approx(0.5)


def test_a_folder_without_a_parser_is_refused_with_the_command_that_makes_one(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="casewright finetune parser"):
        ParserPlanner(None, tmp_path)


def test_more_tools_than_are_read_at_once_are_refused_with_a_mend() -> None:
    tools = [replace(SHOP["find"], name=f"find_{number}") for number in range(513)]
    with pytest.raises(InputError, match=r"at most 512 tools at once, .* Narrow them"):
        ParserPlanner().plan(PlanRequest("do you sell tents", Toolbox(tools)))


def test_a_toolbox_of_tools_without_parameters_is_planned_with() -> None:
    toolbox = Toolbox([ToolSpec("opening_hours", "When the shop is open.")])
    result = ParserPlanner().plan(PlanRequest("when are you open", toolbox))
    assert str(result.plan) == "s1 = opening_hours()"
    assert not result.fallback


@pytest.mark.parametrize(
    "message",
    [
        "How much is Aberdeen to Inverness tomorrow morning?",
        "Lisbon Porto Saturday",
        "I fly to Oslo on 3 May, is there one from Bergen instead of Stavanger that day",
    ],
)
def test_no_two_arguments_of_a_step_share_a_word(message: str) -> None:
    words = frozenset({Source.SPAN})
    tool = ToolSpec(
        "find_flights",
        "Flights between two cities on a day.",
        tuple(Parameter(name, sources=words) for name in ("origin", "destination", "day")),
    )
    result = ParserPlanner().plan(PlanRequest(message, Toolbox([tool])))
    for plan in (result.plan, *result.alternatives):
        for step in plan.steps:
            places = [
                range(start, start + len(str(value)) - 2)
                for _, value in step.arguments
                if (start := message.find(json.loads(str(value)))) >= 0
            ]
            assert all(set(a).isdisjoint(b) for a, b in combinations(places, 2)), str(plan)


def test_an_identifier_comes_from_the_field_of_its_name_whatever_was_learned(folder: Path) -> None:
    ids, words = frozenset({Source.CONTEXT, Source.STEP}), frozenset({Source.SPAN})
    toolbox = Toolbox(
        [
            ToolSpec("motions", "Find one.", (Parameter("what", sources=words),), ("motion_id",)),
            ToolSpec("sittings", "Find one.", (Parameter("day", sources=words),), ("sitting_id",)),
            ToolSpec("votes", "Who voted for a motion.", (Parameter("motion_id", sources=ids),)),
            ToolSpec("papers", "The list of a sitting.", (Parameter("sitting_id", sources=ids),)),
        ]
    )
    planner, identifiers = ParserPlanner(None, folder), []
    for message in ("Who voted for the hall?", "the list of the youth council", "votes and papers"):
        for context in ({}, {"sitting_id": "T-7"}, {"motion_id": "M-4"}):
            plan = planner.plan(PlanRequest(message, toolbox, context=context)).plan
            arguments = [argument for step in plan.steps for argument in step.arguments]
            identifiers += [(name, str(value)) for name, value in arguments if name.endswith("_id")]
    assert identifiers
    assert [value for name, value in identifiers if not value.endswith(name)] == []


def test_a_number_is_no_text_for_a_parameter_that_takes_both() -> None:
    search = ToolSpec(
        "person_search",
        "Finds a person in the registers.",
        (Parameter("name", "name of the person"), Parameter("born", "year of birth")),
        ("person_id",),
    )
    question = "looking for my great great gran Keziah Blewitt, born 1849"
    plan = ParserPlanner().plan(PlanRequest(question, Toolbox([search]))).plan
    assert dict(plan.steps[0].arguments)["born"] == Literal(1849)


def test_a_plain_question_for_two_tools_is_no_small_talk() -> None:
    city = Parameter("city", kind="string")
    tools = [
        ToolSpec("get_weather", "Current weather in a city.", (city,), ("evidence",)),
        ToolSpec(
            "get_forecast",
            "Weather forecast for the next days in a city.",
            (city, Parameter("days", kind="integer")),
            ("evidence",),
        ),
    ]
    request = PlanRequest("what is the weather in Paris?", Toolbox(tools))
    assert str(ParserPlanner().plan(request).plan) == 's1 = get_weather(city="Paris")'
