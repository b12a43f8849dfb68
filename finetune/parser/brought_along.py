"""A domain's messages that bring tools along, as sources: its tools with those of some messages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from casewright.finetune.parser.episodes import Source
from casewright.planner import AnnotatedQuery
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec

#: Messages of a source, and the share of the tools that are kept for validation.
TOGETHER, HELD = 12, 4


@dataclass(frozen=True, slots=True)
class BroughtAlong:
    """Messages that bring tools along, split by tool.

    Attributes:
        training: Sources, each of some messages and the tools that these bring.
        held: Messages for validation; no tool that they bring is trained on.
    """

    training: list[Source]
    held: list[AnnotatedQuery]


def brought_along(name: str, toolbox: Toolbox, queries: Sequence[AnnotatedQuery]) -> BroughtAlong:
    """Split a domain's messages that bring tools along, and group them.

    Args:
        name: The domain's.
        toolbox: Its own tools.
        queries: Its annotated messages; those without tools of their own, and those that no tool
            answers, since that may not hold beside others' tools, are left out.
    """
    bringing = [
        query
        for query in queries
        if query.record.tools_extra
        and not query.record.tools_removed
        and NO_EVIDENCE.name not in query.plan.tools
    ]
    held = [query for query in bringing if any(map(_is_held, _brought(query, toolbox)))]
    ids = {id(query) for query in held}
    groups: list[tuple[dict[str, ToolSpec], list[AnnotatedQuery]]] = []
    for query in bringing:
        if id(query) in ids:
            continue
        tools = {tool.name: tool for tool in _brought(query, toolbox)}
        for known, own in groups:
            # One name may be declared in two ways.
            if len(own) < TOGETHER and all(known.get(n, tool) == tool for n, tool in tools.items()):
                known.update(tools)
                own.append(query)
                break
        else:
            groups.append((tools, [query]))
    training = [
        Source(f"{name}+{number}", toolbox.with_(*tools.values()), {}, [_plain(q) for q in own])
        for number, (tools, own) in enumerate(groups)
    ]
    return BroughtAlong(training, held)


def _brought(query: AnnotatedQuery, toolbox: Toolbox) -> Iterable[ToolSpec]:
    own = set(toolbox.names)
    return [tool for tool in query.record.request(toolbox).toolbox if tool.name not in own]


def _is_held(tool: ToolSpec) -> bool:
    return hashlib.sha256(tool.name.encode()).digest()[0] % HELD == 0


def _plain(query: AnnotatedQuery) -> AnnotatedQuery:
    record = query.record.model_copy(update={"tools_extra": []})
    return AnnotatedQuery(record, query.plan, query.label, query.must, query.accept)
