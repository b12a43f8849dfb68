"""A tool finds only rows of the token's tenant, for any scope of a request."""

from __future__ import annotations

import httpx
import pytest

from casewright.graph import ExtractiveGenerator
from casewright.planner import parse_plan
from casewright.planner.fixed import FixedPlanner
from casewright.serve.service.app import create_app
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.settings.tokens import Grant
from casewright.tools import CallContext, Tenant, Toolbox, tool_from_function
from tests.serve.service.helpers import ACME, OTHER

TOKENS = {ACME: Grant("acme"), OTHER: Grant("other")}


def row(query: str, tenant: Tenant, call: CallContext) -> str:
    """Finds a row."""
    return f"{tenant}'s row, asked as {call.scope['company']}"


def make_parts(**scopes: list[str]) -> Parts:
    toolbox = Toolbox([tool_from_function(row, results=("value",))])
    planner = FixedPlanner(parse_plan("s1 = row(query=question)"))
    return Parts("tests", toolbox, planner, ExtractiveGenerator(), scopes)


@pytest.mark.asyncio
async def test_scope_that_names_another_tenant_finds_none_of_its_rows() -> None:
    app = create_app(make_parts(company=[]), ServiceOptions(tokens=TOKENS, langserve=False))
    transport = httpx.ASGITransport(app)
    headers = {"Authorization": f"Bearer {ACME}"}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://t", headers=headers) as client,
    ):
        body = {"question": "which row", "scope": {"company": "other"}}
        answer = (await client.post("/ask", json=body)).json()
        assert answer["steps"][0]["rows"] == [{"value": "acme's row, asked as other"}]
        body = {"question": "which row", "scope": {"company": "other", "tenant": "other"}}
        assert (await client.post("/ask", json=body)).status_code == 422


@pytest.mark.parametrize(
    ("scopes", "fields"),
    [
        ({"company": []}, ["company"]),
        ({"tenant_id": [], "hall": ["B"]}, ["tenant_id"]),
        ({"Org": []}, ["Org"]),
        ({"hall": ["acme", "C"]}, ["hall"]),
        ({"customer": ["C1"], "hall": []}, []),
    ],
)
def test_service_with_tokens_warns_of_scope_fields_that_look_like_tenants(
    caplog: pytest.LogCaptureFixture, scopes: dict[str, list[str]], fields: list[str]
) -> None:
    create_app(make_parts(**scopes), ServiceOptions(tokens=TOKENS, langserve=False))
    assert [record.args for record in caplog.records] == [(field,) for field in fields]
    caplog.clear()
    create_app(make_parts(**scopes), ServiceOptions(langserve=False))
    assert caplog.records == []
