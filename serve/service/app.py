"""Creates the service's FastAPI application: routes and middleware around a compiled graph."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from casewright import __version__
from casewright.errors import InputError
from casewright.serve.service import plan_routes, problems, routes
from casewright.serve.service.answers import AnswerStore
from casewright.serve.service.checkpoints import lock_threads, open_checkpoints
from casewright.serve.service.limits import Admission
from casewright.serve.service.metrics import Metrics, RequestCounter
from casewright.serve.service.metrics import router as metrics_router
from casewright.serve.service.models import Problem
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.serve.service.page_routes import add_pages
from casewright.serve.service.retirement import retire_in_background
from casewright.serve.service.runs import Runs
from casewright.serve.service.tokens import Authentication, Tokens
from casewright.serve.session.scopes import tenant_like_fields
from casewright.tools.deadline import bound_call_threads

log = logging.getLogger("casewright.service")
_DESCRIPTION = (
    "Answers questions with planned look-ups and checked citations. The bearer token determines "
    "the tenant of a request; a tenant has only its own threads and retained answers."
)


def create_app(
    parts: Parts, options: ServiceOptions, answers: AnswerStore | None = None
) -> FastAPI:
    """Return the FastAPI application of the service.

    Args:
        parts: The components that answer questions.
        options: The service's options.
        answers: The store of retained answers; required unless ``options.retain`` is off. The
            caller closes the store and the parts after the service has ended.

    Raises:
        InputError: The threads' file or database cannot be used, or ``answers`` is missing.
        DependencyError: A package that the options need is not installed.
    """
    threads_lock = lock_threads(options)
    if options.retain != "off" and answers is None:
        raise InputError(f"retain is {options.retain!r}, so answers must be an AnswerStore.")
    tenants = {grant.tenant for grant in options.tokens.values()}
    for name in tenant_like_fields(parts.scopes, tenants):
        log.warning(
            "The scope field %r looks like a tenant, but a request can set it to any value. Give "
            "tools the token's tenant: by a parameter of type casewright.tools.Tenant, or "
            "per_tenant=True.",
            name,
        )

    metrics = Metrics(tool.name for tool in parts.toolbox)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with threads_lock:
            async with open_checkpoints(options) as (saver, locks, responses, find_older):
                max_threads = options.max_tool_threads
                bound_call_threads(max_threads, options.share_of(max_threads))
                runs = Runs(parts, options, saver, answers, locks, responses, metrics)
                app.state.runs = runs
                async with retire_in_background(runs, find_older):
                    yield
                runs.close()

    app = FastAPI(
        title="Casewright",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    problems.add_error_handlers(app)
    app.state.metrics = metrics
    for router in (*routes.ROUTERS, plan_routes.plans, metrics_router):
        app.include_router(router)
    add_pages(app)
    if options.langserve:
        from casewright.serve.service.langserve_routes import add_langserve

        add_langserve(app, options.max_concurrency)
    if options.mcp:
        from casewright.serve.service.mcp_tools import router as mcp_router

        app.include_router(mcp_router)
    # Requests pass the middleware in the reverse order of these calls.
    app.add_middleware(Admission, options=options, path_limits=routes.PATH_LIMITS)
    app.add_middleware(Authentication, tokens=Tokens(options.tokens, options.changed_tokens))
    app.add_middleware(problems.ErrorBoundary)
    app.add_middleware(RequestCounter, metrics=metrics)
    _describe_errors(app)
    return app


def _describe_errors(app: FastAPI) -> None:
    """Replace FastAPI's error schemas in OpenAPI by the schema of problem documents."""
    default_openapi = app.openapi

    def openapi() -> dict[str, Any]:
        document = default_openapi()
        schemas = document["components"]["schemas"]
        schemas["Problem"] = Problem.model_json_schema()
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        return document

    app.openapi = openapi  # type: ignore[method-assign]
