"""What can be called: a tool's declaration, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, NewType

from casewright.errors import ToolError
from casewright.tools.alias import NAME
from casewright.tools.parameter import Parameter

Report = Callable[[Mapping[str, Any]], None]
#: A function's parameter of this type is filled with the request's tenant.
Tenant = NewType("Tenant", str)


def _unheard(told: Mapping[str, Any]) -> None:
    """Take a report that nobody asked for."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a tool may know of the call beside its arguments; no plan can write any of it.

    A tool that works in several rounds may tell of each: ``context.report({"round": 1, …})``.

    Attributes:
        run_id: The run.
        step: The step, for example ``"s2"``.
        key: The same for every attempt at this step of this run, resumed runs included: what a
            tool that changes something is idempotent by.
        question: What the user asked.
        scope: Who asks, as the caller of the graph said it: customer, tenant, ….
        report: Takes one JSON-plain object; those of a call's last attempt are kept with its
            outcome, and each is an event of the run.
    """

    run_id: str = ""
    step: str = ""
    key: str = ""
    question: str = ""
    scope: Mapping[str, str] = field(default_factory=dict)
    report: Report = field(default=_unheard, compare=False, repr=False)

    @property
    def tenant(self) -> Tenant:
        """Whose request it is: in the service by its token, and by nothing that it says.

        Raises:
            ToolError: Nobody said so.
        """
        if found := self.scope.get("tenant"):
            return Tenant(found)
        raise ToolError(
            "The request names no tenant. Give one: RunContext(tenant=…) in a program, --tenant on "
            "the command line."
        )


@dataclass(frozen=True, slots=True)
class ToolExample:
    """A question that the tool helps to answer, and the plan for it."""

    query: str
    plan: str


Run = Callable[[Mapping[str, Any], CallContext], Any]
RunAsync = Callable[[Mapping[str, Any], CallContext], Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as planner and executor know it.

    Attributes:
        name: An identifier; see ``alias`` for tools that have another name.
        description: For the planner's prompt.
        parameters: In the order in which a plan writes them.
        results: The fields that each of its results has.
        example: For the prompt, and a plan case of every request that has this tool.
        run: Calls it, blocking.
        run_async: Calls it on the running event loop.

    A tool without ``run`` and ``run_async`` can be planned with, not executed.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...] = ()
    results: tuple[str, ...] = ("evidence",)
    example: ToolExample | None = None
    run: Run | None = None
    run_async: RunAsync | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ToolError(
                f"A tool is named {self.name!r}. Names are letters, digits and underscores, and do "
                "not start with a digit; casewright.tools.alias makes one of any other name."
            )
        names = [parameter.name for parameter in self.parameters]
        if len(set(names)) != len(names):
            raise ToolError(f"Tool {self.name!r} has two parameters of one name: {names}.")
        if bad := [result for result in self.results if not NAME.fullmatch(result)]:
            raise ToolError(
                f"Tool {self.name!r} declares the result fields {bad}. "
                "Fields are letters, digits and underscores, and do not start with a digit."
            )

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of this name, if there is one."""
        return next((p for p in self.parameters if p.name == name), None)

    def signature(self) -> str:
        """Return the tool as the prompt shows it: parameters with sources, result fields."""
        shown = ", ".join(parameter.signature() for parameter in self.parameters)
        return f"{self.name}({shown}) -> {', '.join(self.results) or 'nothing'}"


#: The plan for questions that need no look-up; every toolbox holds it.
NO_EVIDENCE = ToolSpec(
    name="no_evidence",
    description="Small talk and general knowledge: nothing needs to be looked up.",
    results=(),
    example=ToolExample("thanks, have a nice day", "s1 = no_evidence()"),
    run=lambda arguments, context: [],
)
