"""LangServe's routes over the service's own function.

LangServe is archived and knows neither threads nor LangGraph's context, so it is given a runnable
with one typed input and one typed output, and whose request it is; all else is ``runs.Runs``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from fastapi import APIRouter, FastAPI, Request

from casewright.errors import DependencyError
from casewright.serve.service.models import AnswerBody, AskBody
from casewright.serve.service.problems import RefusedError
from casewright.serve.service.runs import Runs, Waiting
from casewright.serve.service.tokens import Caller, caller_of

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable, RunnableConfig

PATH = "/casewright"
#: Where LangServe hands on whose request it is.
_CALLER = "casewright_caller"


def add_langserve(app: FastAPI) -> None:
    """Add the routes ``invoke``, ``batch``, ``stream``, ``playground`` and the schemas.

    They are not in the service's OpenAPI: their statuses are LangServe's.

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
        answering(app),
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


def answering(app: FastAPI) -> Runnable[Any, Any]:
    """Return the service's function as a runnable with a typed input and output."""
    from langchain_core.runnables import RunnableLambda
    from langchain_core.runnables.config import var_child_runnable_config

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

    made: Any = RunnableLambda(blocking, afunc=answer, name="casewright")
    return cast("Runnable[Any, Any]", made.with_types(input_type=AskBody, output_type=AnswerBody))


def _with_caller(config: dict[str, Any], request: Request) -> dict[str, Any]:
    # Whatever the client sent as configurable is left out.
    return {**config, "configurable": {_CALLER: caller_of(request)}}
