"""The tools that a planner named, also where what it wrote is no plan."""

from __future__ import annotations

import re

from casewright.planner import PlanResult
from casewright.tools import Toolbox

_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
#: A step however it is written; names with dots are none of ours, but are named all the same.
_STEP = re.compile(r"\bs[0-9]+\s*=\s*([A-Za-z_][\w.\-]*)\s*\(")


def named_tools(result: PlanResult) -> tuple[str, ...]:
    """Return the tools that a planner named, in order.

    Those of its plan; where a language model wrote no valid plan, those of the text that it wrote,
    read leniently: every ``sN = name(`` outside of texts. Empty where a fallback plan stands in
    for a text that is not known.
    """
    if result.written:
        return tuple(_STEP.findall(_TEXT.sub('""', result.written)))
    return () if result.fallback else result.plan.tools


def unknown_tools(result: PlanResult, toolbox: Toolbox) -> tuple[str, ...]:
    """Return the tools that a planner named and the toolbox lacks, in order."""
    return tuple(name for name in named_tools(result) if name not in toolbox)
