"""Prompts whose heads are rendered once for all queries that share a toolbox."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from casewright.planner import PlanRequest, Prompt
from casewright.planner.prompt import ROLE, render_head, render_tail
from casewright.tools import Toolbox, ToolExample


# A toolbox cannot change, so that it is known by its identity. A few are enough: queries that
# share one come one after the other.
@lru_cache(maxsize=16)
def shared_head(toolbox: Toolbox, role: str = ROLE) -> str:
    """Return what ``render_head`` renders, the same object for the same toolbox."""
    return render_head(toolbox, role)


def prompt_of(request: PlanRequest, shots: Sequence[ToolExample] = ()) -> Prompt:
    """Return the prompt that serving renders for a request, with plan cases in its tail."""
    return Prompt(shared_head(request.toolbox), render_tail(request, shots))
