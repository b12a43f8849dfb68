"""OpenTelemetry's spans of a run, as the SDK's in-memory exporter gets them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from casewright.graph import build_graph
from casewright.planner import parse_plan
from casewright.planner.fixed import FixedPlanner
from casewright.stores import Case, CaseSchema, CaseStore, text_facet
from casewright.tools import Toolbox, tool_from_function, tool_from_store
from tests.support.encoders import HashingEncoder

trace = pytest.importorskip("opentelemetry.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
sdk = pytest.importorskip("opentelemetry.sdk.trace")
processors = pytest.importorskip("opentelemetry.sdk.trace.export")
SECRET = "kept to themselves"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Install a tracer provider for this test, and return its exporter."""
    provider, exporter = sdk.TracerProvider(), export.InMemorySpanExporter()
    provider.add_span_processor(processors.SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


def make_graph(plan: str, **options: Any) -> Any:
    store = CaseStore(CaseSchema("films", (text_facet("text", HashingEncoder()),)))
    store.add([Case({"text": "a film of the north"}, "a film of the north")])

    def broken(query: str) -> str:
        """Fails."""
        with trace.get_tracer("tool's own").start_as_current_span("request"):
            raise ValueError(query)

    def asks(query: str) -> str:
        """Asks the user."""
        return str(interrupt("which one?"))

    tools = [
        tool_from_store(store, name="films", description="Looks films up."),
        *(tool_from_function(broken), tool_from_function(asks)),
    ]
    return build_graph(Toolbox(tools), FixedPlanner(parse_plan(plan)), **options)


def parent_names(exporter: Any) -> Mapping[str, str | None]:
    """Return the name of each span with the name of its parent."""
    finished = exporter.get_finished_spans()
    names = {span.context.span_id: span.name for span in finished}
    return {span.name: span.parent and names[span.parent.span_id] for span in finished}


def attributes(exporter: Any, name: str) -> Mapping[str, Any]:
    (span,) = (span for span in exporter.get_finished_spans() if span.name == name)
    return dict(span.attributes)


PLAN = "s1 = films(query=question)\ns2 = broken(query=question)"
RUN_TREE = {
    "invoke_agent casewright": None,
    "plan casewright": "invoke_agent casewright",
    "execute_tool films": "invoke_agent casewright",
    "retrieval films": "execute_tool films",
    "execute_tool broken": "invoke_agent casewright",
    "request": "execute_tool broken",
    "generate_content extractive": "invoke_agent casewright",
}


@pytest.mark.parametrize("is_async", [False, True])
def test_run_span_is_the_parent_of_plan_tool_search_and_answer_spans(
    spans: Any, is_async: bool
) -> None:
    compiled, inputs = make_graph(PLAN), {"question": SECRET}
    asyncio.run(compiled.ainvoke(inputs)) if is_async else compiled.invoke(inputs)
    assert parent_names(spans) == RUN_TREE
    planned = attributes(spans, "plan casewright")
    assert (planned["gen_ai.operation.name"], planned["gen_ai.agent.name"]) == (
        "plan",
        "casewright",
    )
    assert planned["casewright.planner"] == "fixed"
    tool = attributes(spans, "execute_tool films")
    assert (tool["gen_ai.operation.name"], tool["gen_ai.tool.name"]) == ("execute_tool", "films")
    assert tool["casewright.results"] == 1
    assert attributes(spans, "retrieval films")["gen_ai.data_source.id"] == "films"
    assert attributes(spans, "execute_tool broken")["error.type"] == "tool_error"


def test_two_concurrent_runs_have_separate_traces(spans: Any) -> None:
    async def run_both() -> None:
        compiled = make_graph(PLAN)
        await asyncio.gather(*(compiled.ainvoke({"question": "a film"}) for _ in range(2)))

    asyncio.run(run_both())
    traces = [span.context.trace_id for span in spans.get_finished_spans()]
    assert sorted(map(traces.count, set(traces))) == [len(RUN_TREE), len(RUN_TREE)]


def test_spans_contain_question_plan_and_results_only_with_content_capture(
    spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def captured_text() -> str:
        # The tool creates this span itself.
        finished = [span for span in spans.get_finished_spans() if span.name != "request"]
        return "".join(span.to_json() for span in finished)

    compiled = make_graph(PLAN)
    compiled.invoke({"question": SECRET})
    for text in (SECRET, "a film of the north", "query=question"):
        assert text not in captured_text()
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    compiled.invoke({"question": SECRET})
    for text in (SECRET, "a film of the north", "query=question"):
        assert text in captured_text()


def test_spans_have_an_error_for_a_failed_but_not_a_waiting_run(spans: Any) -> None:
    compiled = make_graph("s1 = asks(query=question)", checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    compiled.invoke({"question": "a film"}, config)
    compiled.invoke(Command(resume="the red one"), config)
    finished = spans.get_finished_spans()
    assert [span.name for span in finished].count("invoke_agent casewright") == 2
    assert not [span.name for span in finished if "error.type" in span.attributes]
    spans.clear()
    with pytest.raises(Exception, match="no tool rm"):
        make_graph("s1 = rm()").invoke({"question": "a film"})
    assert attributes(spans, "invoke_agent casewright")["error.type"] == "PlanError"
