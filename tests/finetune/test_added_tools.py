"""Messages with added tools: the parser's training sources and its validation messages."""

from __future__ import annotations

from casewright.finetune.parser.episodes import MAX_GROUP, added_tool_sources
from casewright.planner import AnnotatedQuery
from tests.planner.helpers import SHOP


def query_with_tool(number: int, plan: str = "s1 = tool_{0}()") -> AnnotatedQuery:
    tool = {"name": f"tool_{number}", "parameters": {}, "description": f"Thing {number}."}
    return AnnotatedQuery.read(
        {
            "id": f"b{number}",
            "query": f"thing {number} please",
            "plan": plan.format(number),
            "tools_extra": [tool],
        }
    )


QUERIES = [query_with_tool(number) for number in range(60)]


def test_added_tools_of_validation_messages_are_absent_from_training() -> None:
    split = added_tool_sources("shop", SHOP, QUERIES)
    assert split.validation
    validation_tools = {tool for query in split.validation for tool in query.plan.tools}
    training_tools = {name for source in split.training for name in source.toolbox.names}
    assert validation_tools.isdisjoint(training_tools)
    assert len(split.validation) + sum(len(source.queries) for source in split.training) == len(
        QUERIES
    )


def test_added_tool_training_sources_contain_the_domain_tools_and_valid_plans() -> None:
    for source in added_tool_sources("shop", SHOP, QUERIES).training:
        assert set(SHOP.names) <= set(source.toolbox.names)
        assert len(source.queries) <= MAX_GROUP
        for query in source.queries:
            query.record.request(source.toolbox).validate(query.plan)


def test_messages_without_added_tools_or_without_an_answer_are_omitted() -> None:
    plain = AnnotatedQuery.read({"id": "p", "query": "hello", "plan": "s1 = no_evidence()"})
    split = added_tool_sources("shop", SHOP, [plain, query_with_tool(1, "s1 = no_evidence()")])
    assert (split.training, split.validation) == ([], [])
