"""The compiled graph as a LangChain tool for an agent."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import ensure_config
from langchain_core.tools import StructuredTool, ToolException
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel, Field, ValidationError

from casewright.errors import CasewrightError, cleaned, one_line
from casewright.graph.answer import Answer
from casewright.graph.build import Graph, nested_config
from casewright.graph.state import AskInput, RunContext
from casewright.tools.body import Body, Work, arun, run


class QuestionArgument(BaseModel):
    """Arguments of a tool that takes only a question."""

    question: str = Field(description="One question, complete in itself.")


class ToolArguments(QuestionArgument):
    """Arguments of a tool that takes a question and a context."""

    context: dict[str, Any] | None = Field(
        default=None, description="Known facts by name; leave it out if there are none."
    )


def as_tool(
    graph: Graph,
    name: str,
    description: str,
    *,
    takes_context: bool = True,
    run_context: RunContext | None = None,
) -> StructuredTool:
    """Return the graph as a LangChain tool, for ``create_agent``, ``ToolNode`` or ``bind_tools``.

    The content of the tool's message is the answer's text with the cited sources; the artifact is
    the answer as JSON, which ``Answer.from_json`` reads. An error becomes a message of status
    ``error``, which does not stop the agent. An interrupt within the graph interrupts the agent.

    Args:
        graph: The graph of ``build_graph``, without a checkpointer of its own.
        description: Tells the agent's model the subject of the tool, and when to call the tool.
        takes_context: True if the tool has an argument ``context``, in which the agent's model may
            pass known facts. Without this argument, plans use only identifiers that tools returned.
        run_context: The LangGraph context of the graph's runs; by default the agent's context, if
            this context is a ``RunContext``.
    """
    options: dict[str, Any] = {} if run_context is None else {"context": run_context}

    # ``call`` runs this body in a thread that may block, ``acall`` on the event loop.
    def body(question: str, context: dict[str, Any] | None) -> Body[tuple[str, Any]]:
        inputs = AskInput(question=question, context=context or {})
        try:
            # LangChain sets this config, with the callbacks of the tool's run, for the call.
            config = nested_config(ensure_config())
            state = yield Work(
                lambda: graph.invoke(inputs, config, **options),
                lambda: graph.ainvoke(inputs, config, **options),
            )
            return _content_and_artifact(Answer.from_state(state))
        except GraphBubbleUp:
            # An interrupt must reach the agent.
            raise
        except Exception as error:
            # The message of a Casewright error is clear without the error's type.
            is_casewright_error = isinstance(error, CasewrightError)
            message = cleaned(str(error)) if is_casewright_error else one_line(error)
            raise ToolException(f"{name} could not answer. {message}") from error

    def call(question: str, context: dict[str, Any] | None = None) -> tuple[str, Any]:
        return run(body(question, context))

    async def acall(question: str, context: dict[str, Any] | None = None) -> tuple[str, Any]:
        return await arun(body(question, context))

    return StructuredTool.from_function(
        call,
        acall,
        name=name,
        description=description,
        args_schema=ToolArguments if takes_context else QuestionArgument,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=_invalid_arguments,
    )


def _content_and_artifact(answer: Answer) -> tuple[str, dict[str, Any]]:
    sources = [
        f"[{item['id']}] {item['source']}"
        for item in answer.evidence
        if item["id"] in answer.citations and item["source"]
    ]
    text = "\n".join([answer.text, "", "Sources:", *sources]) if sources else answer.text
    return text, answer.to_json()


def _invalid_arguments(error: Any) -> str:
    reasons = "; ".join(
        f"{'.'.join(map(str, item['loc'])) or 'the arguments'}: {item['msg']}"
        for item in (error.errors() if isinstance(error, ValidationError) else ())
    )
    return f"The tool was called wrongly: {reasons or error}. Give the question as a text."
