"""OpenTelemetry spans with GenAI attributes, made only if the program sets a tracer provider.

Attributes hold counts, and the names of tools and planners. They hold questions, plans, arguments
and results only with ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

OPERATION = "gen_ai.operation.name"
#: The environment variable that OpenTelemetry's GenAI instrumentations read.
CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
#: A function that adds attributes to a span.
AddAttributes = Callable[[Mapping[str, Any]], None]
#: LangGraph's exceptions that pause a run; they do not count as errors.
_PAUSES = ("GraphInterrupt", "GraphBubbleUp")


def tracer() -> Any:
    """Return the tracer of the global provider; ``None`` if the program has set no provider."""
    if (trace := sys.modules.get("opentelemetry.trace")) is None:
        return None
    provider = trace.get_tracer_provider()
    is_unset = isinstance(provider, trace.ProxyTracerProvider)
    return None if is_unset else provider.get_tracer("casewright")


def content_attributes(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values as texts, by attribute name; nothing unless ``CONTENT_VARIABLE`` is true."""
    if os.environ.get(CONTENT_VARIABLE, "").lower() != "true":
        return {}
    return {
        name: value if isinstance(value, str) else json.dumps(value, default=str)
        for name, value in values.items()
    }


@contextmanager
def span(
    operation: str, target: str = "", attributes: Mapping[str, Any] | None = None
) -> Iterator[AddAttributes]:
    """Open a span around a block; yield a function that adds attributes to the span.

    ``operation`` and ``target`` make the span's name. A span with the attribute ``error.type``
    counts as failed; an exception sets it to the exception's class, and its text is not recorded.
    """
    if (active_tracer := tracer()) is None:
        yield lambda new_attributes: None
        return
    from opentelemetry.trace import StatusCode

    name = f"{operation} {target}".rstrip()
    attributes = {OPERATION: operation, **(attributes or {})}
    settings = {"record_exception": False, "set_status_on_exception": False}
    with active_tracer.start_as_current_span(name, attributes=attributes, **settings) as otel_span:

        def add_attributes(new_attributes: Mapping[str, Any]) -> None:
            otel_span.set_attributes(new_attributes)
            if "error.type" in new_attributes:
                otel_span.set_status(StatusCode.ERROR)

        try:
            yield add_attributes
        except BaseException as error:
            if type(error).__name__ not in _PAUSES:
                add_attributes({"error.type": type(error).__name__})
            raise


def retrieval_span(store: str, k: int) -> AbstractContextManager[AddAttributes]:
    """Open a span for a search of k cases in a store; see ``span``."""
    return span("retrieval", store, {"gen_ai.data_source.id": store, "gen_ai.request.top_k": k})
