"""Exports OpenTelemetry spans; the standard ``OTEL_…`` variables configure the export."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from casewright.errors import DependencyError, InputError

_VARIABLE = "OTEL_TRACES_EXPORTER"


@contextmanager
def export_spans() -> Iterator[None]:
    """Export this process's spans while the context lasts; send the remaining spans at its end.

    Raises:
        DependencyError: The extra ``otel`` is not installed.
        InputError: ``OTEL_TRACES_EXPORTER`` is neither ``otlp``, ``console`` nor ``none``.
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
    has_name = "OTEL_SERVICE_NAME" in os.environ or "service.name" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    attributes = {} if has_name else {"service.name": "casewright"}
    provider = TracerProvider(resource=Resource.create(attributes))
    exporter: export.SpanExporter
    match os.environ.get(_VARIABLE) or "otlp":
        case "otlp":
            exporter = OTLPSpanExporter()
        case "console":
            exporter = export.ConsoleSpanExporter(out=sys.stderr)
        case "none":
            yield
            return
        case name:
            raise InputError(f"{_VARIABLE}={name:.80} is unknown. Give otlp, console or none.")
    provider.add_span_processor(export.BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
