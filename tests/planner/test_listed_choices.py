"""Choices are read from the list in a parameter's description."""

from __future__ import annotations

import time

import pytest

from casewright.planner import PlanRequest
from casewright.planner.parser.listed_choices import with_listed_choices
from casewright.planner.parser_planner import ParserPlanner
from casewright.tools import Parameter, Toolbox, ToolSpec


@pytest.mark.parametrize(
    "description",
    [
        "fact of a life: birth, marriage or occupation",
        "fact of a life: birth, marriage, or occupation.",
        "fact of a life; one of 'birth', 'marriage', 'occupation'",
        "fact of a life (birth | marriage | occupation)",
        "fact of a life, any of birth, marriage, and occupation",
    ],
)
def test_choices_are_read_from_alternatives_at_the_end_of_a_description(description: str) -> None:
    parameter = with_listed_choices(Parameter("event", description))
    assert parameter.choices == ("birth", "marriage", "occupation")
    assert parameter.description.startswith("fact of a life")
    assert "birth" not in parameter.description


@pytest.mark.parametrize(
    "parameter",
    [
        Parameter("where", "where to look: place or postcode"),
        Parameter("start", "where the walk begins: a hut or a summit"),
        Parameter("hall", "the hall. For example: east or west"),
        Parameter("day", "departure day (DD/MM/YYYY)"),
        Parameter("speed", "speed of the wind (km/h)"),
        Parameter("units", "units: metric or imperial, default metric"),
        Parameter("order", "order: asc or desc; optional"),
        Parameter("text", "text to search (in English or German)"),
        Parameter("title", "title (required or empty)"),
        Parameter("town", "what is asked: Lyon, Paris"),
        Parameter("note", "the note: whatever comes to the mind of a visitor or nothing at all"),
        Parameter("event", "birth or death: as declared", choices=("birth", "death")),
        Parameter("person_id", "the person: father or mother"),
        Parameter("count", "how many: one or two", kind="integer"),
    ],
)
def test_no_choices_are_read_from_types_examples_or_declared_choices(parameter: Parameter) -> None:
    assert with_listed_choices(parameter) is parameter


@pytest.mark.parametrize(
    "description", [":" + " " * 398 + "(", " either one of " + " " * 380 + "(", "one of" * 66]
)
def test_choices_of_a_hostile_description_are_read_within_100_ms(description: str) -> None:
    started = time.process_time()
    with_listed_choices(Parameter("event", description))
    assert time.process_time() - started < 0.1


def test_plan_parser_chooses_a_listed_value_for_other_words_of_the_message() -> None:
    facts = ToolSpec(
        "life_facts",
        "A fact of a person's life.",
        (
            Parameter("person_id", "the person"),
            Parameter("event", "which fact: birth, marriage, occupation or burial"),
        ),
        ("evidence",),
    )
    request = PlanRequest(
        "what did he do for a living", Toolbox([facts]), context={"person_id": "P7"}
    )
    plan = ParserPlanner().plan(request).plan
    assert str(plan) == 's1 = life_facts(person_id=context.person_id, event="occupation")'
