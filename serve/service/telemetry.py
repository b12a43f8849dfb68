"""Exports OpenTelemetry spans; the standard ``OTEL_…`` variables configure the export."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from casewright.errors import DependencyError, InputError

_ENV_NAME = "OTEL_TRACES_EXPORTER"


@contextmanager
def export_spans() -> Iterator[None]:
    """Export this process's spans while the context lasts; at the end, send the remaining spans.

    Raises:
        DependencyError: The extra ``otel`` is not installed.
        InputError: ``OTEL_TRACES_EXPORTER`` is not ``otlp``, ``console`` or ``none``.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider, export
    except ImportError as error:
        raise DependencyError(
            "Spans need OpenTelemetry's SDK. Run: pip install 'casewright[otel]'"
        ) from error
    has_service_name = "OTEL_SERVICE_NAME" in os.environ or "service.name" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    attributes = {} if has_service_name else {"service.name": "casewright"}
    provider = TracerProvider(resource=Resource.create(attributes))
    exporter: export.SpanExporter
    match os.environ.get(_ENV_NAME) or "otlp":
        case "otlp":
            exporter = OTLPSpanExporter()
        case "console":
            exporter = export.ConsoleSpanExporter(out=sys.stderr)
        case "none":
            yield
            return
        case other:
            raise InputError(f"{_ENV_NAME}={other:.80} is unknown. Give otlp, console or none.")
    provider.add_span_processor(export.BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
