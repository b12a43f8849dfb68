"""Prompts whose heads are rendered once for all queries that share a toolbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from casewright.planner import PlanRequest, Prompt, render_prompt
from casewright.planner.prompt import ROLE, render_head
from casewright.tools import Toolbox, ToolExample

_NO_TOOLS = Toolbox([])


# A toolbox cannot change, so that it is known by its identity. A few are enough: queries that
# share one come one after the other.
@lru_cache(maxsize=16)
def shared_head(toolbox: Toolbox, role: str = ROLE) -> str:
    """Return what ``render_head`` renders, the same object for the same toolbox."""
    return render_head(toolbox, role)


def prompt_of(request: PlanRequest, shots: Sequence[ToolExample] = ()) -> Prompt:
    """Return the prompt that serving renders for a request, with plan cases in its tail."""
    # The tail does not depend on the tools.
    tail = render_prompt(replace(request, toolbox=_NO_TOOLS), shots).tail
    return Prompt(shared_head(request.toolbox), tail)
