"""The graph that plans, executes and answers a question: its parts, inputs and results."""

from casewright.graph.answer import Answer
from casewright.graph.approval import Approve
from casewright.graph.as_node import as_node
from casewright.graph.as_runnable import AskRunnable, as_runnable
from casewright.graph.as_tool import as_tool
from casewright.graph.build import build_graph
from casewright.graph.chat_generator import ChatGenerator
from casewright.graph.evidence import Evidence
from casewright.graph.extractive import ExtractiveGenerator
from casewright.graph.generator import Generation, GenerationRequest, Generator
from casewright.graph.latencies import Latencies
from casewright.graph.limits import Limits
from casewright.graph.outcome import Outcome
from casewright.graph.state import AskInput, AskOutput, RunContext, RunState

__all__ = [
    "Answer",
    "Approve",
    "AskInput",
    "AskOutput",
    "AskRunnable",
    "ChatGenerator",
    "Evidence",
    "ExtractiveGenerator",
    "Generation",
    "GenerationRequest",
    "Generator",
    "Latencies",
    "Limits",
    "Outcome",
    "RunContext",
    "RunState",
    "as_node",
    "as_runnable",
    "as_tool",
    "build_graph",
]
