"""A parameter of the type ``Tenant`` receives the tenant of the request."""

from __future__ import annotations

from typing import Any

import pytest

from casewright.errors import ToolError
from casewright.graph import RunContext
from casewright.tools import CallContext, Tenant, tool_from_function
from tests.graph.helpers import QUESTION, graph_of, values

ROWS = {"acme": "acme's row", "bolt": "bolt's row"}


def row(query: str, tenant: Tenant) -> str:
    """Finds a row."""
    return ROWS[tenant]


async def awaited_row(query: str, whose: Tenant, call: CallContext) -> str:
    """Finds a row."""
    assert call.tenant == whose
    return ROWS[whose]


TOOLS = [tool_from_function(function, results=("value",)) for function in (row, awaited_row)]


def run(plan: str, context: RunContext) -> Any:
    from tests.graph.helpers import Blocking

    return Blocking()(graph_of(TOOLS, plan), {"question": QUESTION}, context=context)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_tool_receives_the_tenant_of_the_request_and_plans_cannot_write_it(tool: Any) -> None:
    assert [parameter.name for parameter in tool.parameters] == ["query"]
    for tenant, value in ROWS.items():
        answer = run(f"s1 = {tool.name}(query=question)", RunContext(tenant=tenant))
        assert values(answer) == {"s1": [value]}


def test_request_without_a_tenant_fails_the_step_naming_the_option() -> None:
    step = run("s1 = row(query=question)", RunContext()).steps[0]
    assert step["status"] == "failed"
    assert "--tenant" in step["error"]
    with pytest.raises(ToolError, match="has no tenant"):
        _ = CallContext().tenant
