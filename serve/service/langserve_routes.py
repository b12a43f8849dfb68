"""LangServe's routes over the service's own function.

LangServe is archived and knows neither threads nor LangGraph's context, so it is given a runnable
with one typed input and one typed output, and whose request it is; all else is ``runs.Runs``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from fastapi import APIRouter, FastAPI, Request
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config

from casewright.errors import DependencyError
from casewright.serve.service.models import AnswerBody, AskBody
from casewright.serve.service.problems import RefusedError
from casewright.serve.service.runs import Runs, Waiting
from casewright.serve.service.tokens import Caller, caller_of

PATH = "/casewright"
#: Where LangServe hands on whose request it is.
_CALLER = "casewright_caller"
#: Questions of a batch that are worked on at a time: it is one request among others'.
BATCH_AT_ONCE = 4


def add_langserve(app: FastAPI, most_in_batch: int) -> None:
    """Add the routes ``invoke``, ``batch``, ``stream``, ``playground`` and the schemas.

    They are not in the service's OpenAPI: their statuses are LangServe's.

    Args:
        app: The service.
        most_in_batch: Questions of one ``batch``.

    Raises:
        DependencyError: LangServe is not installed.
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
        answering(app, most_in_batch),
        path=PATH,
        enabled_endpoints=(
            "invoke",
            "batch",
            "stream",
            "playground",
            "input_schema",
            "output_schema",
            "config_schema",
        ),
        per_req_config_modifier=_with_caller,
    )
    app.include_router(router)


class _Answering(RunnableLambda[Any, Any]):
    """The service's function, of which a batch asks a bounded number of questions.

    LangChain's own ``abatch`` begins all at once, and leaves the others at work when one fails.
    """

    def __init__(self, blocking: Any, answer: Any, most: int) -> None:
        super().__init__(blocking, answer, name="casewright")
        self._most = most

    async def abatch(
        self,
        inputs: Sequence[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """Answer all questions; where one fails and that is not to be returned, none goes on.

        Raises:
            RefusedError: There are too many.
        """
        if len(inputs) > self._most:
            raise RefusedError(422, f"A batch has at most {self._most} questions. Send several.")
        each = config if isinstance(config, list) else [config] * len(inputs)
        places = asyncio.Semaphore(BATCH_AT_ONCE)

        async def answered(body: Any, own: RunnableConfig | None) -> Any:
            async with places:
                return await self.ainvoke(body, own, **kwargs)

        tasks = [
            asyncio.ensure_future(answered(body, own))
            for body, own in zip(inputs, each, strict=True)
        ]
        try:
            return list(await asyncio.gather(*tasks, return_exceptions=return_exceptions))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def answering(app: FastAPI, most: int) -> Runnable[Any, Any]:
    """Return the service's function as a runnable with a typed input and output."""

    def blocking(body: Any) -> Any:
        raise NotImplementedError("The service answers asynchronously.")

    async def answer(body: Any, config: RunnableConfig) -> Any:
        caller: Caller = config["configurable"][_CALLER]
        runs: Runs = app.state.runs
        asked = body if isinstance(body, AskBody) else AskBody.model_validate(body)
        # LangServe gathers every event of every runnable below: the run is no child of its own.
        outer = var_child_runnable_config.set(None)
        try:
            ended = await runs.ask(asked, caller)
        finally:
            var_child_runnable_config.reset(outer)
        if isinstance(ended, Waiting):
            raise RefusedError(409, "A tool waits for a reply. Send it to /threads/…/resume.")
        return ended

    made: Any = _Answering(blocking, answer, most)
    return cast("Runnable[Any, Any]", made.with_types(input_type=AskBody, output_type=AnswerBody))


def _with_caller(config: dict[str, Any], request: Request) -> dict[str, Any]:
    # Whatever the client sent as configurable is left out.
    return {**config, "configurable": {_CALLER: caller_of(request)}}
