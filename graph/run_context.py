"""What the caller decided for the run that is going on, read from LangGraph's context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from langgraph.runtime import get_runtime
from pydantic import BaseModel

from casewright.errors import InputError
from casewright.graph.limits import Limits
from casewright.graph.state import RunContext
from casewright.tools import Toolbox

#: Where tools find the tenant in their scope.
TENANT = "tenant"
_NAMES = tuple(field.name for field in fields(RunContext))


def run_context() -> RunContext:
    """Return the context of this run; its scope holds the tenant, where there is one.

    A parent graph's own context may be a mapping, a dataclass or a pydantic model that holds more:
    what it has under the names of ``RunContext`` counts.

    Raises:
        InputError: One of its values is no such thing; the message names it.
    """
    return checked(get_runtime(RunContext).context)


def checked(given: Any) -> RunContext:
    """Return a run's context as it was given, checked; see ``run_context``.

    Raises:
        InputError: One of its values is no such thing; the message names it.
    """
    context = _read(given)
    if context.toolbox is not None and not isinstance(context.toolbox, Toolbox):
        raise _unusable("toolbox", context.toolbox, "a Toolbox")
    if context.planner is not None and not callable(getattr(context.planner, "plan", None)):
        raise _unusable("planner", context.planner, "a Planner")
    if context.limits is not None and not isinstance(context.limits, (Limits, Mapping)):
        raise _unusable("limits", context.limits, "Limits, or some of them by name")
    if not isinstance(context.scope, Mapping):
        raise _unusable("scope", context.scope, 'a mapping such as {"customer": "C1"}')
    if context.tenant is None:
        return context
    if not isinstance(context.tenant, str) or not context.tenant:
        raise _unusable("tenant", context.tenant, "a text that names one")
    if context.scope.get(TENANT, context.tenant) != context.tenant:
        raise InputError(
            f"The run's context names two tenants: {context.tenant!r}, and in its scope "
            f"{context.scope[TENANT]!r}. Name one."
        )
    return replace(context, scope={**context.scope, TENANT: context.tenant})


def _read(given: Any) -> RunContext:
    if isinstance(given, RunContext):
        return given
    if isinstance(given, Mapping):
        own = {name: given[name] for name in _NAMES if name in given}
    elif isinstance(given, BaseModel) or (is_dataclass(given) and not isinstance(given, type)):
        own = {name: getattr(given, name) for name in _NAMES if hasattr(given, name)}
    else:
        own = {}
    if own.get("scope", {}) is None:
        del own["scope"]
    return RunContext(**own)


def _unusable(name: str, value: Any, wanted: str) -> InputError:
    return InputError(
        f"The run's context has {name}={type(value).__name__} {str(value)[:60]!r}. Give {wanted}; "
        "where a parent graph's own context means something else by it, as_node(run_context=…) "
        "says what is meant for this one."
    )
