"""Responses that are JSON already, and what routes get from the service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Request, Response, Security
from fastapi.security import HTTPBearer

from casewright.graph.json_text import json_text
from casewright.serve.service.models import ThreadId
from casewright.serve.service.runs import Runs
from casewright.serve.service.tokens import Caller, caller_of


# FastAPI calls a dependency that is no coroutine in a thread: more than reading a field is worth.
async def runs_of(request: Request) -> Runs:
    """Return the service's runs."""
    found: Runs = request.app.state.runs
    return found


async def caller(request: Request) -> Caller:
    """Return whose request it is."""
    return caller_of(request)


def reply(value: Mapping[str, Any], status: int = 200) -> Response:
    """Return a JSON response; what the graph made is JSON-plain, and is not validated again."""
    body = json_text(value, separators=(",", ":"))
    return Response(body, status, media_type="application/json")


# The token is looked at before any route (see ``tokens.Authenticated``): this tells OpenAPI.
BEARER = Security(HTTPBearer(auto_error=False, description="A token of a tenant."))
TheRuns = Annotated[Runs, Depends(runs_of)]
TheCaller = Annotated[Caller, Depends(caller)]
TheKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r'^("[ !#-\[\]-~]{1,128}"|[A-Za-z0-9._~-]{1,128})$',
        description="Of this request alone, such as a UUID in quotes. The same request with the "
        "same key returns what the first one did, for a day; one that did not end goes on.",
    ),
]
ThreadPath = Annotated[ThreadId, Path(description="The thread's name, as its client gave it.")]
