"""The context and the state of a run. The state is JSON that every checkpointer can save."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Annotated, Any, NoReturn, Required

from langgraph.runtime import get_runtime
from pydantic import BaseModel, GetPydanticSchema
from pydantic_core import PydanticOmit, core_schema
from typing_extensions import TypedDict

from casewright.errors import InputError
from casewright.graph.approval import Approve, check_approve
from casewright.graph.limits import Limits
from casewright.graph.mend import Mend, check_mend
from casewright.planner import Planner
from casewright.planner.request import Turn
from casewright.tools import Toolbox

#: Name of the scope's field in which tools find the tenant.
TENANT = "tenant"


def _omit(*_: Any) -> NoReturn:
    raise PydanticOmit


# LangGraph Studio makes a form from the schema, without the fields that have this annotation.
_NOT_JSON = GetPydanticSchema(lambda *_: core_schema.any_schema(), _omit)


class AskInput(TypedDict, total=False):
    """Input of a run: the question, a JSON object as context, and the earlier turns."""

    question: Required[str]
    context: dict[str, Any]
    history: list[Turn]


class AskOutput(TypedDict, total=False):
    """Output of a run: ``answer`` is the JSON form of ``Answer``."""

    answer: dict[str, Any]


class RunState(AskInput, AskOutput, total=False):
    """State of a run.

    ``run_id`` stays the same when the run is resumed. ``plan`` is the plan's text form.
    ``planning`` is the record of ``Answer.planner``; its field ``mended`` records a replanning.
    ``outcomes`` has one ``Outcome`` per step, as JSON. ``budget`` has the limits of the plan's
    price. ``approval`` has the reason why the plan needs approval, and the reply.
    """

    run_id: str
    plan: str
    planning: dict[str, Any]
    outcomes: list[dict[str, Any]]
    budget: dict[str, Any]
    approval: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunContext:
    """The caller's choices for one run, passed as LangGraph's ``context``.

    The context is never checkpointed, so a resumed run needs it again.

    Attributes:
        scope: Identity of the user: customer, tenant, …. Tools read it; no plan can set it.
        toolbox: Replaces the graph's toolbox.
        planner: Replaces the graph's planner.
        limits: Limits of this run, which can only lower the graph's; see ``Limits.within``.
        mend: Replaces the graph's mode of replanning; see ``build_graph``.
        tenant: The tenant whose cases the run uses. Tools get it as ``tenant`` of the scope; a
            ``per_tenant`` tool searches the tenant's own store.
        approve: A rule of approval in addition to the graph's; see ``build_graph``.
    """

    scope: Mapping[str, str] = field(default_factory=dict)
    toolbox: Annotated[Toolbox | None, _NOT_JSON] = None
    planner: Annotated[Planner | None, _NOT_JSON] = None
    limits: Annotated[Limits, _NOT_JSON] | Mapping[str, Any] | None = None
    mend: Mend | None = None
    tenant: str | None = None
    approve: Approve = "declared"


def run_context() -> RunContext:
    """Return the context of this run; its scope includes the tenant, if any.

    The context of a parent graph may be a mapping, a dataclass or a pydantic model with more
    fields; only the fields with names of ``RunContext`` fields are used. Raise ``InputError`` if a
    value has the wrong type.
    """
    context = _as_run_context(get_runtime(RunContext).context)
    if context.toolbox is not None and not isinstance(context.toolbox, Toolbox):
        raise _context_error("toolbox", context.toolbox, "a Toolbox")
    if context.planner is not None and not callable(getattr(context.planner, "plan", None)):
        raise _context_error("planner", context.planner, "a Planner")
    if context.limits is not None and not isinstance(context.limits, (Limits, Mapping)):
        raise _context_error("limits", context.limits, "Limits, or a mapping of limits")
    check_approve(context.approve)
    if context.mend is not None:
        check_mend(context.mend)
    if not isinstance(context.scope, Mapping):
        raise _context_error("scope", context.scope, 'a mapping such as {"customer": "C1"}')
    if context.tenant is None:
        return context
    if not isinstance(context.tenant, str) or not context.tenant:
        raise _context_error("tenant", context.tenant, "the tenant's name")
    if context.scope.get(TENANT, context.tenant) != context.tenant:
        raise InputError(
            f"The run's context names two tenants: {context.tenant!r} as tenant and "
            f"{context.scope[TENANT]!r} in the scope. Name one."
        )
    return replace(context, scope={**context.scope, TENANT: context.tenant})


def _as_run_context(context: Any) -> RunContext:
    if isinstance(context, RunContext):
        return context
    names = [context_field.name for context_field in fields(RunContext)]
    if isinstance(context, Mapping):
        values = {name: context[name] for name in names if name in context}
    elif isinstance(context, BaseModel) or (
        is_dataclass(context) and not isinstance(context, type)
    ):
        values = {name: getattr(context, name) for name in names if hasattr(context, name)}
    else:
        values = {}
    # ``None`` in a parent's context means the default.
    for name in ("scope", "approve"):
        if name in values and values[name] is None:
            del values[name]
    return RunContext(**values)


def _context_error(name: str, value: Any, expected: str) -> InputError:
    return InputError(
        f"The run's context has {name}={type(value).__name__} {str(value)[:60]!r}. Give "
        f"{expected}; if a parent graph's context uses this name for something else, convert it "
        "with as_node(run_context=…)."
    )
