"""The compiled graph as a tool, for an agent that calls tools."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import StructuredTool, ToolException
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel, Field, ValidationError

from casewright.errors import CasewrightError, cleaned, told
from casewright.graph.answer import Answer
from casewright.graph.build import Graph
from casewright.graph.nested import nested_config
from casewright.graph.state import AskInput, RunContext


class QuestionArgument(BaseModel):
    """Arguments of a tool that takes no context from the model."""

    question: str = Field(description="One question, complete in itself.")


class ToolArguments(QuestionArgument):
    """Arguments of a tool that takes a context too."""

    context: dict[str, Any] | None = Field(
        default=None, description="What is known beside it, by name; leave it out if nothing is."
    )


def as_tool(
    graph: Graph,
    name: str,
    description: str,
    *,
    takes_context: bool = True,
    run_context: RunContext | None = None,
) -> StructuredTool:
    """Make a LangChain tool of the graph, for ``create_agent``, ``ToolNode`` or ``bind_tools``.

    Its content is the answer's text with the sources that it cites; its artifact is the answer,
    JSON-plain (``Answer.from_json``). What goes wrong is said in a message of status ``error``, so
    that the agent goes on. A pause, as of a tool that asks the user something, is the agent's.

    An agent that is given a ``RunContext`` as LangGraph's context hands it on.

    Args:
        graph: What ``build_graph`` made, without a checkpointer of its own.
        name: The tool's name.
        description: For the agent's model: what the tool knows, and what to ask it.
        takes_context: Whether the agent's model may give a context. A plan may take identifiers
            from there, so without it no model can name what it has not looked up.
        run_context: Of every call, in place of the agent's.
    """
    chosen: dict[str, Any] = {} if run_context is None else {"context": run_context}

    def blocking(question: str, context: dict[str, Any] | None = None) -> tuple[str, Any]:
        try:
            return _returned(graph.invoke(_asked(question, context), _config(), **chosen))
        except GraphBubbleUp:
            raise
        except Exception as error:
            raise _failed(name, error) from error

    async def awaiting(question: str, context: dict[str, Any] | None = None) -> tuple[str, Any]:
        try:
            return _returned(await graph.ainvoke(_asked(question, context), _config(), **chosen))
        except GraphBubbleUp:
            raise
        except Exception as error:
            raise _failed(name, error) from error

    return StructuredTool.from_function(
        blocking,
        awaiting,
        name=name,
        description=description,
        args_schema=ToolArguments if takes_context else QuestionArgument,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=_misused,
    )


def _config() -> RunnableConfig:
    # LangChain sets it for what a tool calls: its callbacks are those of the tool's own run.
    return nested_config(ensure_config())


def _asked(question: str, context: dict[str, Any] | None) -> Any:
    return AskInput(question=question, context=context or {})


def _returned(state: Any) -> tuple[str, dict[str, Any]]:
    answer = Answer.from_state(state)
    sources = [
        f"[{item['id']}] {item['source']}"
        for item in answer.evidence
        if item["id"] in answer.citations and item["source"]
    ]
    text = "\n".join([answer.text, "", "Sources:", *sources]) if sources else answer.text
    return text, answer.to_json()


def _failed(name: str, error: Exception) -> ToolException:
    # Our own errors say what to do; of others a model is told no more than what they were.
    said = cleaned(str(error)) if isinstance(error, CasewrightError) else told(error)
    return ToolException(f"{name} could not answer. {said}")


def _misused(error: Any) -> str:
    wrong = "; ".join(
        f"{'.'.join(map(str, one['loc'])) or 'the arguments'}: {one['msg']}"
        for one in (error.errors() if isinstance(error, ValidationError) else ())
    )
    return f"The tool was called wrongly: {wrong or error}. Give question, a text."
