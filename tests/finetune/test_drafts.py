from __future__ import annotations

from casewright.finetune.queries.drafts import template_drafts
from casewright.tools import ToolExample, ToolSpec
from tests.planner.helpers import SHOP, make_queries


def test_template_drafts_omit_a_tool_whose_example_is_no_plan() -> None:
    broken = ToolSpec("tide", "The next high tide.", example=ToolExample("when is high tide", "("))
    drafts = [draft["query"] for draft in template_drafts(SHOP.with_(broken), make_queries())]
    assert "hello there" in drafts
    assert "when is high tide" not in drafts
