"""Declarations of tools, the context of their calls, and toolboxes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NewType

from casewright.errors import ToolError
from casewright.tools.alias import NAME
from casewright.tools.parameter import Parameter

#: Figures of one call that a tool may declare.
FIGURES = ("latency", "cost", "tokens")
#: The event of a report of a search that found nothing: its query, and the nearest titles.
NEAREST = "nearest"
#: Words of a tool's name that say what it does, not what it finds.
VERBS = (
    *("fetch", "find", "get", "list", "look", "lookup", "query", "read", "retrieve", "search"),
    *("select", "show", "up"),
)
Report = Callable[[Mapping[str, Any]], None]
#: A function's parameter of this type is filled with the request's tenant.
Tenant = NewType("Tenant", str)


@dataclass(frozen=True, slots=True)
class CallContext:
    """Facts of a call beside its arguments; no plan can write any of them.

    A tool that works in several rounds may report each: ``context.report({"round": 1, …})``.

    Attributes:
        run_id: The run.
        step: The step, for example ``"s2"``.
        key: The idempotency key: the same for every attempt at this step of this run, resumed runs
            included.
        question: The user's question.
        scope: The asker, as the caller of the graph gave it: customer, tenant, ….
        report: Takes one JSON-plain object; those of a call's last attempt are kept with its
            outcome, and each is an event of the run.
    """

    run_id: str = ""
    step: str = ""
    key: str = ""
    question: str = ""
    scope: Mapping[str, str] = field(default_factory=dict)
    report: Report = field(default=lambda facts: None, compare=False, repr=False)

    @property
    def tenant(self) -> Tenant:
        """The request's tenant: in the service its token's, whatever the request says.

        Raises:
            ToolError: The request names none.
        """
        if tenant := self.scope.get("tenant"):
            return Tenant(tenant)
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
    """A tool's declaration, for the planner and the executor.

    Attributes:
        name: An identifier; see ``alias`` for tools that have another name.
        description: For the planner's prompt.
        parameters: In the order in which a plan writes them.
        results: The fields of each of its results.
        example: For the prompt, and a plan case of every request that has this tool.
        run: Calls it, blocking.
        run_async: Calls it on the running event loop.
        latency: Seconds that a call takes; ``None`` if not declared.
        cost: Most that a call costs, in any one currency; ``None`` if not declared.
        tokens: Most tokens that a call spends; ``None`` if not declared.
        approval: No plan that calls it runs before a person has approved it.
        finds: What an answer calls its results, ``"bookings"``; by default the name's nouns.

    A tool without ``run`` and ``run_async`` can be planned with, not executed.
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
        for figure in FIGURES:
            value = getattr(self, figure)
            if value is not None and not 0 <= value < math.inf:
                raise ToolError(
                    f"Tool {self.name!r} declares {figure}={value!r}. Give a number from 0 on."
                )

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of this name, if there is one."""
        return next((p for p in self.parameters if p.name == name), None)

    @property
    def nothing(self) -> str:
        """The sentence for a call that found nothing."""
        words = self.name.replace("_", " ").split()
        nouns = " ".join(word for word in words if word.lower() not in VERBS)
        return f"No {self.finds or nouns or 'result'} found."

    def signature(self) -> str:
        """Return the tool as the prompt shows it: parameters with sources, result fields."""
        parameters = ", ".join(parameter.signature() for parameter in self.parameters)
        return f"{self.name}({parameters}) -> {', '.join(self.results) or 'nothing'}"


#: The plan for questions that need no look-up; every toolbox holds it.
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
    """An immutable, ordered set of tools; always holds ``no_evidence``.

    Raises:
        ToolError: Two tools have one name.
    """

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        members = list(tools)
        if all(tool.name != NO_EVIDENCE.name for tool in members):
            members.append(NO_EVIDENCE)
        self._tools = {tool.name: tool for tool in members}
        if len(self._tools) != len(members):
            names = [tool.name for tool in members]
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ToolError(f"The toolbox has two tools named {twice}. Rename one of them.")

    def without(self, *names: str) -> Toolbox:
        """Return a toolbox without these tools; ``no_evidence`` stays in every toolbox.

        Raises:
            ToolError: A name is not in this toolbox.
        """
        if unknown := [name for name in names if name not in self._tools]:
            raise ToolError(
                f"The toolbox has no tool {unknown}. Its tools are {list(self._tools)}."
            )
        return Toolbox(tool for tool in self if tool.name not in names)

    def with_(self, *tools: ToolSpec) -> Toolbox:
        """Return a toolbox with these tools added, before ``no_evidence`` if it stands last."""
        current = list(self)
        end = [current.pop()] if current[-1].name == NO_EVIDENCE.name else []
        return Toolbox([*current, *tools, *end])

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
        """Return a hash of all that a planner sees of the tools."""
        content = [
            [
                tool.signature(),
                tool.description,
                [[parameter.kind, parameter.description] for parameter in tool.parameters],
                tool.example and [tool.example.query, tool.example.plan],
            ]
            for tool in self
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
