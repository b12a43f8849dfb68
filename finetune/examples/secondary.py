"""What the secondary tasks share: a query's prompt, an instruction before it, and the answer."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from casewright.finetune.examples.tevo import Evolved
from casewright.planner import PlanRequest, Prompt
from casewright.planner.prompt import ROLE, render_head, render_tail
from casewright.tools import Toolbox, ToolExample


@dataclass(frozen=True, slots=True)
class Posed:
    """A task posed for one query: its prompt, and the one answer that is right."""

    prompt: Prompt
    completion: str


@dataclass(frozen=True, slots=True)
class Subject:
    """A query that tasks are posed about, and the planner's prompt for it without plan cases."""

    evolved: Evolved
    prompt: Prompt

    @classmethod
    def of(cls, evolved: Evolved) -> Subject:
        """Render the planner's prompt."""
        return cls(evolved, prompt_of(evolved.request))

    @property
    def context(self) -> str:
        """The line of the prompt that shows the context; empty where there is none."""
        # It is JSON, which holds no line break.
        context, question, _ = self.prompt.tail.partition("\nQuestion: ")
        return context if question else ""


#: Poses a task, or returns ``None`` where it does not apply to the query.
Task = Callable[[Subject, random.Random], Posed | None]

_FILE = Path(__file__).parent / "wordings.toml"
#: How tasks are posed, by what is said.
WORDINGS: Mapping[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
#: What hides a part of a plan.
MASKS = ("[MASK]", "___", "<missing>", "???")


# A toolbox cannot change, so that it is known by its identity. A few are enough: queries that
# share one come one after the other.
@lru_cache(maxsize=16)
def shared_head(toolbox: Toolbox, role: str = ROLE) -> str:
    """Return what ``render_head`` renders, the same object for the same toolbox."""
    return render_head(toolbox, role)


def prompt_of(request: PlanRequest, shots: Sequence[ToolExample] = ()) -> Prompt:
    """Return the prompt that serving renders for a request, with plan cases in its tail."""
    return Prompt(shared_head(request.toolbox), render_tail(request, shots))


def instructed(prompt: Prompt, instruction: str, given: str = "") -> Prompt:
    """Return the planner's prompt with an instruction, and what it is about, before its tail."""
    return Prompt(prompt.head, "\n\n".join(filter(None, (instruction, given, prompt.tail))))
