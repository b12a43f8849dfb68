"""The planner's prompt (REAPER, Joshi et al. 2024, section 3).

Its order is fixed: role, tools, constraints and fixed examples do not change between the requests
of one toolbox and stand first (``head``), so that a model's key/value cache can keep them;
retrieved plan cases, context and question follow (``tail``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from casewright.errors import PlanError
from casewright.planner.parse import parse_plan
from casewright.planner.request import PlanRequest, Turn
from casewright.tools import Toolbox, ToolExample

ROLE = """\
You plan look-ups for a question-answering assistant. Write the whole plan at once: the calls of \
tools that fetch all the evidence needed to answer the question, and nothing else. You do not \
answer the question."""

CONSTRAINTS = """\
Constraints:
- One line a step: sN = tool(parameter=value, ...), N counting from 1.
- A value is a JSON string, a number, true, false, a flat list of values, question (the user's \
question, verbatim), context.FIELD, sK.FIELD (a field of the first result of the earlier step K), \
or sK[i].FIELD (the same of result i, counting from 0).
- Each parameter lists where its value may come from: span means words of the question that stand \
next to each other, literal any short text, question, context and step the references above.
- Use only the tools above, with all their parameters; a parameter marked ? may be left out.
- Steps that do not need each other run at the same time: do not chain them.
- If nothing needs to be looked up, the plan is s1 = no_evidence()."""

#: Characters of a context value that the prompt shows.
CONTEXT_VALUE = 200


@dataclass(frozen=True, slots=True)
class PlanExample(ToolExample):
    """A question with its plan, and the turns that the question leans on."""

    history: tuple[Turn, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """The two parts of a prompt; see the module. A prompt of another task may have no head."""

    head: str
    tail: str

    def __str__(self) -> str:
        return f"{self.head}\n\n{self.tail}" if self.head else self.tail


def render_prompt(request: PlanRequest, examples: Sequence[ToolExample] = ()) -> Prompt:
    """Render the prompt for a request, with retrieved plan cases as further examples.

    Args:
        request: The request.
        examples: Plan cases, the one most like the question first; it stands last in the prompt.
    """
    return Prompt(render_head(request.toolbox), render_tail(request, examples))


def render_head(toolbox: Toolbox, role: str = ROLE) -> str:
    """Render what depends on the toolbox alone.

    Args:
        toolbox: The tools.
        role: What is asked of the model; another than planning in secondary training tasks.
    """
    tools = []
    for tool in toolbox:
        lines = [f"{tool.signature()}", f"  {tool.description}"]
        lines += [f"  {p.name}: {p.description}" for p in tool.parameters if p.description]
        tools.append("\n".join(lines))
    fixed = [tool.example for tool in toolbox if tool.example and _callable(tool.example, toolbox)]
    parts = [role, "Tools:\n" + "\n".join(tools), CONSTRAINTS]
    if fixed:
        parts.append("Examples:\n" + "\n\n".join(_example(example) for example in fixed))
    return "\n\n".join(parts)


def _callable(example: ToolExample, toolbox: Toolbox) -> bool:
    """Say whether an example calls no tool that this request lacks."""
    try:
        return all(name in toolbox for name in parse_plan(example.plan).tools)
    except PlanError:
        return False


def render_tail(request: PlanRequest, examples: Sequence[ToolExample] = ()) -> str:
    """Render what is of one request: plan cases, history, context and question; not its tools.

    Args:
        request: The request.
        examples: Plan cases, the one most like the question first; it stands last.
    """
    parts = []
    if examples:
        # The one most like the question next to it: what stood last is copied most easily.
        shown = "\n\n".join(map(_example, reversed(examples)))
        parts.append("Plans for similar questions:\n" + shown)
    parts += map(_turn, request.history)
    context = {
        name: value if not isinstance(value, str) else value[:CONTEXT_VALUE]
        for name, value in request.context.items()
        if value is not None
    }
    parts.append(f"Context: {json.dumps(context, ensure_ascii=False)[: 10 * CONTEXT_VALUE]}")
    parts.append(f"Question: {request.question}\nPlan:")
    return "\n\n".join(parts)


def _example(example: ToolExample) -> str:
    history = example.history if isinstance(example, PlanExample) else ()
    return "\n\n".join([*map(_turn, history), f"Question: {example.query}\nPlan:\n{example.plan}"])


def _turn(turn: Turn) -> str:
    return f"Earlier question: {turn['question']}\nEarlier answer: {turn['answer']}"
