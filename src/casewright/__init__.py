"""Casewright plans all look-ups in one call, runs them over case stores, and cites its answers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from casewright.domains import own_domain
    from casewright.graph import Answer, build_graph
    from casewright.planner import AnnotatedQuery, CasePlanner, ModelPlanner, Turn
    from casewright.serve.session.asking import ask
    from casewright.stores import Case, CaseStore, Facet
    from casewright.tools import CallContext, Toolbox, ToolExample, tool

__version__ = "0.1.0"

#: Each public name and the module that exports it, which is imported when the name is first used.
_MODULE_BY_NAME = {
    **dict.fromkeys(("Case", "CaseStore", "Facet"), "stores"),
    **dict.fromkeys(("CallContext", "ToolExample", "Toolbox", "tool"), "tools"),
    **dict.fromkeys(("AnnotatedQuery", "CasePlanner", "ModelPlanner", "Turn"), "planner"),
    **dict.fromkeys(("Answer", "build_graph"), "graph"),
    "own_domain": "domains",
    "ask": "serve.session.asking",
}

__all__ = [
    "AnnotatedQuery",
    "Answer",
    "CallContext",
    "Case",
    "CasePlanner",
    "CaseStore",
    "Facet",
    "ModelPlanner",
    "ToolExample",
    "Toolbox",
    "Turn",
    "ask",
    "build_graph",
    "own_domain",
    "tool",
]


def __getattr__(name: str) -> Any:
    """Return a public name from the module that exports it.

    Raises:
        AttributeError: There is no such name.
    """
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"casewright.{_MODULE_BY_NAME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted([*__all__, "__version__"])
