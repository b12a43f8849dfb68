"""Toolboxes whose texts are the question's own words, where a request has any."""

from __future__ import annotations

from dataclasses import replace

from casewright.planner.grammar.latest import Latest
from casewright.planner.request import PlanRequest
from casewright.tools import Parameter, Source, Toolbox


class SpansOnly:
    """Takes from requests what lets a text be written that is no span of the question.

    A small model that misspells a product's name cannot then: what it begins to copy, it copies.

    Args:
        toolboxes: How many toolboxes are kept, those used last.
    """

    def __init__(self, toolboxes: int) -> None:
        self._made: Latest[tuple[Toolbox, Toolbox]] = Latest(toolboxes)

    def __call__(self, request: PlanRequest) -> PlanRequest:
        """Return the request with spans in the place of literals; plans for it are valid for it."""
        given = request.toolbox
        # Both are kept, so that no other toolbox comes to have the identity of one.
        _, made = self._made.get(id(given), lambda: (given, _toolbox(given)))
        return replace(request, toolbox=made)


def _toolbox(toolbox: Toolbox) -> Toolbox:
    return Toolbox(
        replace(tool, parameters=tuple(_parameter(one) for one in tool.parameters))
        for tool in toolbox
    )


def _parameter(parameter: Parameter) -> Parameter:
    # A list's items, and a text among other kinds of values, may be what no question says.
    if parameter.kind != "string" or Source.LITERAL not in parameter.sources or parameter.choices:
        return parameter
    return replace(parameter, sources=parameter.sources - {Source.LITERAL} | {Source.SPAN})
