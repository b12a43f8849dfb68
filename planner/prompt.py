"""Renders the planner's prompt, after REAPER (Joshi et al. 2024, section 3).

The first part (``head``) has role, tools, constraints and the tools' examples. It is the same for
all requests of a toolbox, so that its key/value states can be cached. The second part (``tail``)
has plan cases, history, failed calls, context and question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from casewright.errors import PlanError
from casewright.planner.parse import parse_plan
from casewright.planner.request import PlanRequest, Turn
from casewright.tools import Parameter, Source, Toolbox, ToolExample, ToolSpec

ROLE = """\
You plan look-ups for a question-answering assistant. Write the whole plan at once: the calls of \
tools that fetch all the evidence needed to answer the question, and nothing else. You do not \
answer the question."""

CONSTRAINTS = """\
Rules:
- One line a step: sN = tool(parameter=value, ...), N counting from 1.
- A value is a JSON string, a number, true, false, a flat list, question (the whole question), \
context.FIELD, sK.FIELD (of the first result of the earlier step K) or sK[i].FIELD (of result i, \
from 0).
- Each parameter lists what it may be: one of its choices, span (adjacent words of the question), \
literal (any short text), question, context, step; ? may be left out.
- Use only these tools. Steps that do not need each other are not chained.
- Nothing to look up: s1 = no_evidence()."""

#: Maximum number of characters of a text in the context. The whole context may be ten times longer.
MAX_VALUE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class PlanExample(ToolExample):
    """Question with its plan, the earlier turns, and the names of the context's fields."""

    history: tuple[Turn, ...] = ()
    context: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """Prompt of two parts: ``head``, which is cached and may be empty, and ``tail``."""

    head: str
    tail: str

    def __str__(self) -> str:
        return f"{self.head}\n\n{self.tail}" if self.head else self.tail


def render_prompt(request: PlanRequest, examples: Sequence[ToolExample] = ()) -> Prompt:
    """Return the prompt for a request.

    Args:
        examples: Plan cases, the most similar first; the prompt reverses the order.
    """
    return Prompt(render_head(request.toolbox), render_tail(request, examples))


def render_head(toolbox: Toolbox, role: str = ROLE) -> str:
    """Return the first part of a prompt, which depends only on toolbox and role."""
    tool_lines = ["Tools:"]
    for tool in toolbox:
        tool_lines += [tool.signature(), f"  {tool.description}"]
        tool_lines += [f"  {p.name}: {p.description}" for p in tool.parameters if p.description]
    examples = [t.example for t in toolbox if t.example and _has_tools(toolbox, t.example)]
    parts = [role, "\n".join(tool_lines), CONSTRAINTS]
    if examples:
        parts.append("Examples:\n" + "\n\n".join(map(_example_text, examples)))
    return "\n\n".join(parts)


def _has_tools(toolbox: Toolbox, example: ToolExample) -> bool:
    try:
        return all(name in toolbox for name in parse_plan(example.plan).tools)
    except PlanError:
        return False


def render_tail(request: PlanRequest, examples: Sequence[ToolExample] = ()) -> str:
    """Return the second part of a prompt: plan cases, history, failed calls, context, question."""
    parts = []
    if examples:
        # The most similar case comes last, since a model copies the end of a prompt most easily.
        cases = "\n\n".join(map(_example_text, reversed(examples)))
        parts.append("Plans for similar questions:\n" + cases)
    parts += map(_turn_text, request.history)
    context = {
        name: value[:MAX_VALUE_CHARACTERS] if isinstance(value, str) else value
        for name, value in request.context.items()
        if value is not None
    }
    context_text = json.dumps(context, ensure_ascii=False) if context else ""
    context_text = context_text[: 10 * MAX_VALUE_CHARACTERS]
    if request.failures:
        calls = "\n".join(f"- {step}: {reason}" for step, reason in request.failures.items())
        failed_text = f"Already called, without results, and not to be called again:\n{calls}"
        if request.fixed.steps:
            failed_text += f"\nAlready called; the plan begins with these steps:\n{request.fixed}"
        parts.append(failed_text)
    parts.append(f"{_context_line(context_text)}Question: {request.question}\nPlan:")
    return "\n\n".join(parts)


def _example_text(example: ToolExample) -> str:
    text = f"Question: {example.query}\nPlan:\n{example.plan}"
    if not isinstance(example, PlanExample):
        return text
    text = _context_line(", ".join(example.context)) + text
    return "\n\n".join([*map(_turn_text, example.history), text])


def _context_line(text: str) -> str:
    return f"Context: {text}\n" if text else ""


def _turn_text(turn: Turn) -> str:
    return f"Earlier question: {turn['question']}\nEarlier answer: {turn['answer']}"


@cache
def prompt_hash() -> str:
    """Return a hash of the prompt's format, which must be equal in a model's training and use."""
    # The hash is that of an example prompt.
    sources = frozenset({Source.SPAN, Source.STEP, Source.CONTEXT})
    tool = ToolSpec(
        name="look_up",
        description="Finds things.",
        parameters=(
            Parameter("query", "what to find", "string", sources),
            Parameter("kind", "of what kind", choices=("new", "used"), required=False),
        ),
        results=("thing_id", "evidence"),
        example=ToolExample("a thing", 's1 = look_up(query="thing")'),
    )
    request = PlanRequest(
        "what is it",
        Toolbox([tool]),
        {"page": "thing", "absent": None, "number": 7},
        [{"question": "is there one", "answer": "yes"}],
    )
    prompt = render_prompt(request, [ToolExample("another", "s1 = look_up(query=question)")])
    return hashlib.sha256(str(prompt).encode()).hexdigest()[:16]
