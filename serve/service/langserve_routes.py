"""Adds LangServe's routes, which ask questions through ``runs.Runs``.

LangServe is archived, and supports neither threads nor LangGraph's context. Therefore LangServe
gets a runnable with typed input and output; the runnable passes the tenant to ``runs.Runs``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config

from casewright.errors import DependencyError
from casewright.serve.service.models import AnswerBody, AskBody
from casewright.serve.service.problems import RefusedError
from casewright.serve.service.runs import Runs, Waiting
from casewright.serve.service.tokens import tenant_of

PATH = "/casewright"
#: Key of the tenant in LangServe's configuration; LangChain traces no key that begins with ``__``.
_TENANT_KEY = "__casewright_tenant"
#: Maximum number of questions of a batch that run at the same time.
BATCH_CONCURRENCY = 4


def add_langserve(app: FastAPI, max_batch_size: int) -> None:
    """Add LangServe's routes.

    The OpenAPI schema leaves these routes out, because LangServe sets their status codes.
    """
    try:
        from langserve import add_routes
    except ImportError as error:
        raise DependencyError(
            "LangServe's routes need langserve. Run: pip install 'casewright[serve]'"
        ) from error
    router = APIRouter(include_in_schema=False)
    add_routes(
        router,
        ask_runnable(app, max_batch_size),
        path=PATH,
        enabled_endpoints=(
            *("invoke", "batch", "stream", "playground"),
            *("input_schema", "output_schema", "config_schema"),
        ),
        # This drops the configurable values that the client sent.
        per_req_config_modifier=lambda config, request: {
            **config,
            "configurable": {_TENANT_KEY: tenant_of(request.scope)},
        },
    )
    app.include_router(router)


class _BoundedBatchRunnable(RunnableLambda[Any, Any]):
    """A runnable that limits a batch's size and concurrency, and ends a batch if a question fails.

    LangChain's ``abatch`` starts all questions at once, and continues if one fails.
    """

    def __init__(self, answer: Any, max_batch_size: int) -> None:
        super().__init__(answer, name="casewright")
        self._max_batch_size = max_batch_size

    async def abatch(
        self,
        inputs: Sequence[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        if len(inputs) > self._max_batch_size:
            raise RefusedError(
                422,
                f"A batch may have at most {self._max_batch_size} questions. "
                "Split it into several batches.",
            )
        configs = config if isinstance(config, list) else [config] * len(inputs)
        slots = asyncio.Semaphore(BATCH_CONCURRENCY)

        async def invoke(body: Any, config: RunnableConfig | None) -> Any:
            async with slots:
                return await self.ainvoke(body, config, **kwargs)

        tasks = [asyncio.ensure_future(invoke(*pair)) for pair in zip(inputs, configs, strict=True)]
        try:
            return list(await asyncio.gather(*tasks, return_exceptions=return_exceptions))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def ask_runnable(app: FastAPI, max_batch_size: int) -> Runnable[Any, Any]:
    """Return ``Runs.ask`` as a runnable with a typed input and output."""

    async def answer(body: Any, config: RunnableConfig) -> Any:
        tenant: str = config["configurable"][_TENANT_KEY]
        runs: Runs = app.state.runs
        ask_body = body if isinstance(body, AskBody) else AskBody.model_validate(body)
        # LangServe collects the events of all child runnables, so the run must not be a child.
        reset_token = var_child_runnable_config.set(None)
        try:
            result = await runs.ask(ask_body, tenant)
        finally:
            var_child_runnable_config.reset(reset_token)
        if isinstance(result, Waiting):
            raise RefusedError(409, "The run waits for a reply. Send it to /threads/…/resume.")
        return result

    untyped: Any = _BoundedBatchRunnable(answer, max_batch_size)
    runnable: Runnable[Any, Any] = untyped.with_types(input_type=AskBody, output_type=AnswerBody)
    return runnable
