"""The plan parser as a planner: plans, confidence, and what it refuses."""

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

    path = tmp_path_factory.mktemp("parser")
    base = AutoModel.from_pretrained(str(packaged_minilm()), attn_implementation="eager")
    weights = ParserNetwork(base).state_dict()
    head_weights = {name: w for name, w in weights.items() if not name.startswith("encoder.")}
    save_parser(path, head_weights, ParserCard())
    return path


def test_parser_planner_returns_valid_plans_with_a_confidence(folder: Path) -> None:
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


def test_parser_planner_gives_a_message_without_words_the_fallback_plan(folder: Path) -> None:
    result = ParserPlanner(None, folder).plan(PlanRequest("?!", SHOP))
    assert result.fallback
    assert result.confidence == 0


def test_parser_card_confidence_rises_with_the_score() -> None:
    card = ParserCard(slope=0.5, shift=1.0)
    assert card.confidence(-0.1) > card.confidence(-3.0) > card.confidence(-1e6)


def test_parser_card_of_format_1_keeps_its_confidence_curve(
    tmp_path: Path,
) -> None:
    save_parser(tmp_path, {}, ParserCard(slope=2.0, shift=1.0, format=1))
    assert read_card(tmp_path).confidence(-0.5) == pytest.approx(0.5)


def test_folder_without_a_parser_is_refused_with_the_training_command(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="casewright finetune parser"):
        ParserPlanner(None, tmp_path)


def test_parser_planner_refuses_more_than_512_tools() -> None:
    tools = [replace(SHOP["find"], name=f"find_{number}") for number in range(513)]
    with pytest.raises(InputError, match=r"at most 512 tools at once, .* Narrow them"):
        ParserPlanner().plan(PlanRequest("do you sell tents", Toolbox(tools)))


def test_parser_planner_calls_a_tool_without_parameters() -> None:
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
def test_parser_gives_no_two_arguments_of_a_step_the_same_word(message: str) -> None:
    words = frozenset({Source.SPAN})
    tool = ToolSpec(
        "find_flights",
        "Flights between two cities on a day.",
        tuple(Parameter(name, sources=words) for name in ("origin", "destination", "day")),
    )
    result = ParserPlanner().plan(PlanRequest(message, Toolbox([tool])))
    for plan in (result.plan, *result.alternatives):
        for step in plan.steps:
            ranges = [
                range(start, start + len(str(value)) - 2)
                for _, value in step.arguments
                if (start := message.find(json.loads(str(value)))) >= 0
            ]
            assert all(set(a).isdisjoint(b) for a, b in combinations(ranges, 2)), str(plan)


def test_untrained_parser_takes_an_identifier_from_the_field_of_its_name(folder: Path) -> None:
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


def test_parser_writes_digits_as_a_number_for_a_parameter_that_allows_text() -> None:
    search = ToolSpec(
        "person_search",
        "Finds a person in the registers.",
        (Parameter("name", "name of the person"), Parameter("born", "year of birth")),
        ("person_id",),
    )
    question = "looking for my great great gran Keziah Blewitt, born 1849"
    plan = ParserPlanner().plan(PlanRequest(question, Toolbox([search]))).plan
    assert dict(plan.steps[0].arguments)["born"] == Literal(1849)


def test_parser_calls_a_tool_for_a_plain_question_instead_of_no_evidence() -> None:
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
