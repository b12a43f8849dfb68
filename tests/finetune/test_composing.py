"""Messages with several sub-queries, composed of messages of the corpus."""

from __future__ import annotations

import random

import pytest

from casewright.finetune.corpus import CorpusToolbox
from casewright.finetune.examples.composing import joined_queries, with_joined_queries
from casewright.planner import AnnotatedQuery
from casewright.tools import NO_EVIDENCE
from tests.support.shipped import validation_toolboxes

BOXES = validation_toolboxes()
IDS = [box.name for box in BOXES]


@pytest.mark.parametrize("box", BOXES, ids=IDS)
def test_joined_messages_have_a_valid_plan_with_the_tools_of_their_parts(
    box: CorpusToolbox,
) -> None:
    plans = {query.record.id: query.plan for query in box.queries}
    queries = joined_queries(box.queries, 12, random.Random(1))
    assert queries
    for query in queries:
        query.record.request(box.toolbox).validate(query.plan)
        parts = [plans[part] for part in str(query.record.id).split("+")]
        assert len(parts) in (2, 3)
        assert set(query.plan.tools) == {tool for part in parts for tool in part.tools}
        assert len(query.plan.steps) <= sum(len(part.steps) for part in parts)
        assert NO_EVIDENCE.name not in query.plan.tools


def test_each_message_is_used_once_alone_or_in_a_joined_message() -> None:
    for box in BOXES:
        ids = [
            part
            for query in with_joined_queries(box.queries, 0.5, random.Random(2))
            for part in str(query.record.id).split("+")
        ]
        assert sorted(ids) == sorted(str(query.record.id) for query in box.queries)


def test_joined_plan_makes_a_shared_look_up_only_once() -> None:
    rows = [
        ("is the crane hot", "temperature"),
        ("does the crane shake", "vibration"),
    ]
    queries = [
        AnnotatedQuery.read(
            {
                "id": sensor,
                "query": text,
                "plan": f's1 = find(name="crane")\ns2 = read(machine=s1.id, sensor="{sensor}")',
            }
        )
        for text, sensor in rows
    ]
    (query,) = joined_queries(queries, 2, random.Random(0))
    assert query.plan.tools == ("find", "read", "read")
    assert all(reference.step == 1 for step in query.plan.steps for reference in step.references())
