"""Messages that bring tools along: what the plan parser learns of them, and what it is held to."""

from __future__ import annotations

from casewright.finetune.parser.episodes import MAX_GROUP, added_tool_sources
from casewright.planner import AnnotatedQuery
from tests.planner.helpers import SHOP


def bringing(number: int, plan: str = "s1 = tool_{0}()") -> AnnotatedQuery:
    tool = {"name": f"tool_{number}", "parameters": {}, "description": f"Thing {number}."}
    return AnnotatedQuery.read(
        {
            "id": f"b{number}",
            "query": f"thing {number} please",
            "plan": plan.format(number),
            "tools_extra": [tool],
        }
    )


QUERIES = [bringing(number) for number in range(60)]


def test_no_tool_that_is_held_for_validation_is_trained_on() -> None:
    split = added_tool_sources("shop", SHOP, QUERIES)
    assert split.validation
    held = {tool for query in split.validation for tool in query.plan.tools}
    taught = {name for source in split.training for name in source.toolbox.names}
    assert held.isdisjoint(taught)
    assert len(split.validation) + sum(len(source.queries) for source in split.training) == len(
        QUERIES
    )


def test_messages_are_planned_for_among_the_tools_of_others_beside_the_domain_s() -> None:
    for source in added_tool_sources("shop", SHOP, QUERIES).training:
        assert set(SHOP.names) <= set(source.toolbox.names)
        assert len(source.queries) <= MAX_GROUP
        for query in source.queries:
            query.record.request(source.toolbox).validate(query.plan)


def test_messages_without_tools_of_their_own_or_without_an_answer_are_left_out() -> None:
    plain = AnnotatedQuery.read({"id": "p", "query": "hello", "plan": "s1 = no_evidence()"})
    split = added_tool_sources("shop", SHOP, [plain, bringing(1, "s1 = no_evidence()")])
    assert (split.training, split.validation) == ([], [])
