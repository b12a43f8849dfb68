"""Prometheus metrics of this process, at ``/metrics``. No label contains a client's text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response, Security
from fastapi.security import HTTPBearer
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as MEDIA_TYPE
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from casewright.serve.service.problems import matching_templates, responses
from casewright.tools.deadline import abandoned_calls, running_calls

#: Upper bounds of the histogram's buckets, in seconds.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
REFUSAL_STATUSES = (400, 401, 413, 422, 503)
router = APIRouter(tags=["health"], dependencies=[Security(HTTPBearer(auto_error=False))])


class Metrics:
    """The metrics of a service; only calls of the tools in ``tool_names`` are counted."""

    def __init__(self, tool_names: Iterable[str] = ()) -> None:
        self._tools = frozenset(tool_names)
        self.registry = CollectorRegistry()
        counter = partial(Counter, namespace="casewright", registry=self.registry)
        gauge = partial(Gauge, namespace="casewright", registry=self.registry)
        self._requests = counter("requests", "Requests.", ["route", "status"])
        self._refused = counter("refused_requests", "Refused requests.", ["status"])
        self._active_runs = gauge("runs_in_flight", "Runs at work.")
        self._phase_seconds = Histogram(
            "casewright_phase_seconds",
            "Seconds of a run's planning, execution and generation.",
            ["phase"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._tool_calls = counter("tool_calls", "Ended steps of plans.", ["tool", "status"])
        gauge("tool_threads", "Threads that run tool calls.").set_function(running_calls)
        abandoned = gauge("abandoned_tool_threads", "Threads of tool calls that no run waits for.")
        abandoned.set_function(abandoned_calls)

    def track_run(self) -> AbstractContextManager[Any]:
        """Return a context in which a run counts as in flight."""
        return self._active_runs.track_inprogress()

    def count_request(self, route: str, status: int) -> None:
        """Count a request by its status and its route's path template."""
        self._requests.labels(route, str(status)).inc()
        if status in REFUSAL_STATUSES:
            self._refused.labels(str(status)).inc()

    def record_phase(self, name: str, milliseconds: float) -> None:
        """Record the time of a run's ``planning``, ``execution`` or ``generation``."""
        self._phase_seconds.labels(name).observe(milliseconds / 1000)

    def record_event(self, event: Mapping[str, Any]) -> None:
        """Update the metrics for an event of the graph; ignore events that a tool wrote."""
        match event:
            case {"event": "plan", "planner": {"milliseconds": milliseconds}}:
                self.record_phase("planning", milliseconds)
            case {"event": "step_ended", "tool": tool, "status": status} if tool in self._tools:
                self._tool_calls.labels(tool, status).inc()
            case {
                "event": "answer",
                "usage": {"execution_ms": execution, "generation_ms": generation},
            }:
                self.record_phase("execution", execution)
                self.record_phase("generation", generation)


class RequestCounter:
    """Middleware that counts all requests, including refused ones, by route and status."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def count_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.count_request(_route_template(scope), message["status"])
            await send(message)

        await self._app(scope, receive, count_and_send)


def _route_template(scope: Scope) -> str:
    """Return the path template of a request's route; ``other`` without a route."""
    if (route := scope.get("route")) is not None:
        return str(route.path)
    # A middleware refused the request before it was routed.
    return next(matching_templates(scope["app"], scope["path"]), "other")


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "Prometheus's text format.", "content": {"text/plain": {}}},
        **responses(),
    },
    summary="Metrics",
)
async def metrics(request: Request) -> Response:
    """Return the metrics of this process for all tenants together."""
    body = generate_latest(request.app.state.metrics.registry)
    return Response(body, headers={"Content-Type": MEDIA_TYPE})
