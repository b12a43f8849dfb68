"""Declarations of tools (``ToolSpec``), the context of their calls, and toolboxes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NewType

from casewright.errors import ToolError
from casewright.tools.alias import NAME
from casewright.tools.parameter import Parameter

#: Fields of ``ToolSpec`` that estimate what one call takes.
ESTIMATES = ("latency", "cost", "tokens")
#: The event that reports a search that found nothing: its query, and the nearest titles.
NEAREST_EVENT = "nearest"
#: Words in a tool's name that do not name its results.
VERBS = (
    *("fetch", "find", "get", "list", "look", "lookup", "query", "read", "retrieve", "search"),
    *("select", "show", "up"),
)
Report = Callable[[Mapping[str, Any]], None]
#: A parameter of this type, in a tool's function, gets the request's tenant.
Tenant = NewType("Tenant", str)


@dataclass(frozen=True, slots=True)
class CallContext:
    """Data that a tool gets with the arguments of a call; plans cannot write these data.

    A tool with several rounds may report each round: ``context.report({"round": 1, …})``.

    Attributes:
        run_id: The run's id.
        step: The step's name, for example ``"s2"``.
        key: The idempotency key, which is equal for all attempts of this step in this run.
        question: The user's question.
        scope: The user's identity from the caller of the graph: customer, tenant, ….
        report: Function that reports a mapping of JSON values as an event of the run; the step's
            outcome keeps the reports of the last attempt.
    """

    run_id: str = ""
    step: str = ""
    key: str = ""
    question: str = ""
    scope: Mapping[str, str] = field(default_factory=dict)
    report: Report = field(default=lambda event: None, compare=False, repr=False)

    @property
    def tenant(self) -> Tenant:
        """The tenant of the request; in the service, the token names the tenant.

        Raise ``ToolError`` if the request has no tenant.
        """
        if tenant := self.scope.get("tenant"):
            return Tenant(tenant)
        raise ToolError(
            "The request has no tenant. Give one: RunContext(tenant=…) in a program, --tenant on "
            "the command line."
        )


@dataclass(frozen=True, slots=True)
class ToolExample:
    """A question that the tool helps to answer, and the plan for the question."""

    query: str
    plan: str


Run = Callable[[Mapping[str, Any], CallContext], Any]
RunAsync = Callable[[Mapping[str, Any], CallContext], Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool's declaration, for the planner and the executor.

    Attributes:
        name: An identifier; see ``alias`` for tools with other names.
        description: The description in the planner's prompt.
        parameters: The parameters, in the order of the prompt and of plans that a grammar guides.
        results: The fields of each result.
        example: An example for the prompt; it is also a plan case of every request with this tool.
        run: The blocking function that executes a call.
        run_async: The async function that executes a call.
        latency: Seconds that a call takes; ``None`` if not declared.
        cost: The maximum cost of a call, in a currency of your choice; ``None`` if not declared.
        tokens: The maximum number of a language model's tokens in a call; ``None`` if not declared.
        approval: True if a plan that calls the tool runs only after a person has approved the plan.
        finds: The noun for the results in the sentence ``nothing``, such as ``"bookings"``; by
            default, the words of the tool's name without its verbs.

    A tool without ``run`` and ``run_async`` can be planned with, but not executed.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...] = ()
    results: tuple[str, ...] = ("evidence",)
    example: ToolExample | None = None
    run: Run | None = None
    run_async: RunAsync | None = None
    latency: float | None = None
    cost: float | None = None
    tokens: int | None = None
    approval: bool = False
    finds: str = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ToolError(
                f"A tool is named {self.name!r}. Names are letters, digits and underscores, and do "
                "not start with a digit; casewright.tools.alias converts any other name."
            )
        names = [parameter.name for parameter in self.parameters]
        if len(set(names)) != len(names):
            raise ToolError(f"Tool {self.name!r} has two parameters with the same name: {names}.")
        if invalid := [result for result in self.results if not NAME.fullmatch(result)]:
            raise ToolError(
                f"Tool {self.name!r} declares the result fields {invalid}. "
                "Fields are letters, digits and underscores, and do not start with a digit."
            )
        for estimate in ESTIMATES:
            value = getattr(self, estimate)
            if value is not None and not 0 <= value < math.inf:
                raise ToolError(
                    f"Tool {self.name!r} declares {estimate}={value!r}. Give a number from 0 up."
                )

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter with this name, or ``None``."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    @property
    def nothing(self) -> str:
        """The sentence that says that a call found nothing."""
        words = self.name.replace("_", " ").split()
        nouns = " ".join(word for word in words if word.lower() not in VERBS)
        return f"No {self.finds or nouns or 'result'} found."

    def signature(self) -> str:
        """Return the tool as the prompt lists it: name, parameters with sources, result fields."""
        parameters = ", ".join(parameter.signature() for parameter in self.parameters)
        return f"{self.name}({parameters}) -> {', '.join(self.results) or 'nothing'}"


#: The tool for questions that need no retrieval; every toolbox has it.
NO_EVIDENCE = ToolSpec(
    name="no_evidence",
    description="Small talk and general knowledge: nothing needs to be looked up.",
    results=(),
    example=ToolExample("thanks, have a nice day", "s1 = no_evidence()"),
    run=lambda arguments, context: [],
    latency=0.0,
    cost=0.0,
    tokens=0,
)


class Toolbox:
    """An immutable, ordered set of tools; ``no_evidence`` is added at the end if it is missing.

    Raise ``ToolError`` if two tools have the same name.
    """

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        members = list(tools)
        if all(tool.name != NO_EVIDENCE.name for tool in members):
            members.append(NO_EVIDENCE)
        self._tools = {tool.name: tool for tool in members}
        if len(self._tools) != len(members):
            names = [tool.name for tool in members]
            repeated = sorted({name for name in names if names.count(name) > 1})
            raise ToolError(f"The toolbox has two tools named {repeated}. Rename one of them.")

    def without(self, *names: str) -> Toolbox:
        """Return a toolbox without these tools; ``no_evidence`` stays in every toolbox.

        Raise ``ToolError`` if a name is not in this toolbox.
        """
        if unknown := [name for name in names if name not in self._tools]:
            raise ToolError(
                f"The toolbox has no tool {unknown}. Its tools are {list(self._tools)}."
            )
        return Toolbox(tool for tool in self if tool.name not in names)

    def with_(self, *tools: ToolSpec) -> Toolbox:
        """Return a toolbox with these tools added at the end, or before a final ``no_evidence``."""
        members = list(self)
        last_tools = [members.pop()] if members[-1].name == NO_EVIDENCE.name else []
        return Toolbox([*members, *tools, *last_tools])

    def __getitem__(self, name: str) -> ToolSpec:
        return self._tools[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"Toolbox({list(self._tools)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in order."""
        return tuple(self._tools)

    def fingerprint(self) -> str:
        """Return a hash (16 hexadecimal digits) of all that a planner sees of the tools."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        planner_view = [
            [
                tool.signature(),
                tool.description,
                [[parameter.kind, parameter.description] for parameter in tool.parameters],
                tool.example and [tool.example.query, tool.example.plan],
            ]
            for tool in self
        ]
        return hashlib.sha256(json.dumps(planner_view).encode()).hexdigest()[:16]
