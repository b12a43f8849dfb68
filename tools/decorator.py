"""A function becomes a tool where it is defined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from casewright.tools.from_function import tool_from_function
from casewright.tools.spec import ToolSpec


@overload
def tool(function: Callable[..., Any], /) -> ToolSpec: ...


@overload
def tool(**settings: Any) -> Callable[[Callable[..., Any]], ToolSpec]: ...


def tool(function: Callable[..., Any] | None = None, /, **settings: Any) -> Any:
    """Return the tool that a function is, as a decorator: ``@tool`` or ``@tool(results=(…))``.

    Args:
        function: A plain or async function with type annotations.
        settings: ``name``, ``description``, ``results``, ``sources``, ``example`` and ``process``
            of ``tool_from_function``.

    Raises:
        ToolError: See ``tool_from_function``.
    """
    if function is not None:
        return tool_from_function(function)
    return lambda given: tool_from_function(given, **settings)
