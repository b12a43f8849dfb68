"""What the grammar itself costs a plan, over the queries, and as the toolbox grows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from casewright.bench.decoding.script import ScriptWriter
from casewright.bench.decoding.turns import slow_progress
from casewright.errors import GrammarError
from casewright.planner import AnnotatedQuery
from casewright.planner.grammar import PlanGrammar
from casewright.tools import Source, Toolbox, tool_from_record

if TYPE_CHECKING:
    from casewright.planner.grammar import PlanMatcher
    from casewright.planner.language_model import LanguageModel

#: Tools of the larger toolboxes.
SIZES = (30, 100)


@dataclass(frozen=True, slots=True)
class GrammarCost:
    """What the grammar of one toolbox costs, in milliseconds.

    Attributes:
        toolbox: Which one.
        first: Of the first request, whose toolbox is new.
        made: Of each request after it: its grammar, ready to be followed.
        whole: Of each plan: its grammar, and following it to the plan's end.
    """

    toolbox: str
    first: float
    made: Sequence[float]
    whole: Sequence[float]


def grammar_costs(
    model: LanguageModel,
    toolbox: Toolbox,
    queries: Sequence[AnnotatedQuery],
    declared: Sequence[AnnotatedQuery],
) -> list[GrammarCost]:
    """Time a request's grammar, and following it through a whole plan.

    Args:
        model: Whose tokens.
        toolbox: The domain's tools.
        queries: What is asked of each toolbox, at least one. The plans that it can write are
            followed.
        declared: Queries that declare tools of their own, which larger toolboxes are filled with.
    """
    boxes: dict[str, Toolbox] = {}
    for size in (len(toolbox), *SIZES):
        box = filled(toolbox, declared, size)
        boxes[f"{len(box)}_tools"] = box
        boxes[f"{len(box)}_tools_spans_only"] = with_spans_only(box)
    scripts = ScriptWriter(model)
    costs = []
    with slow_progress("Timing grammars", len(boxes) * len(queries)) as advance:
        for name, box in boxes.items():
            # What one has learnt of a plan is not known to the other.
            grammar, other = (PlanGrammar(model.grammar_tokenizer) for _ in range(2))
            first = _milliseconds(grammar, queries[0], box)
            made, whole = [], []
            for query in queries:
                advance(1)
                made.append(_milliseconds(grammar, query, box))
                request = query.record.request(box)
                try:
                    script = scripts.script(other.plan(request), str(query.plan))
                except GrammarError:
                    continue
                spent = _followed(grammar.plan(request), script.choices, model.ends)
                whole.append(made[-1] + spent)
            costs.append(GrammarCost(name, first, made, whole))
    return costs


def with_spans_only(toolbox: Toolbox) -> Toolbox:
    """Return the toolbox with spans where it admits any text.

    The words of each question are then a part of its grammar.
    """
    tools = []
    for tool in toolbox:
        parameters = [
            replace(one, sources=one.sources - {Source.LITERAL} | {Source.SPAN})
            if Source.LITERAL in one.sources
            else one
            for one in tool.parameters
        ]
        tools.append(replace(tool, parameters=tuple(parameters)))
    return Toolbox(tools)


def filled(toolbox: Toolbox, declared: Sequence[AnnotatedQuery], size: int) -> Toolbox:
    """Return the toolbox with so many tools, added from queries that declare their own.

    Where these are too few, they are added again under other names; where there is none, none is.
    """
    records = [record for query in declared for record in query.record.tools_extra]
    own = {tool.name: tool for tool in map(tool_from_record, records)}
    box, number = toolbox, 0
    while own and len(box) < size:
        number += 1
        for tool in own.values():
            name = tool.name if number == 1 else f"{tool.name}_{number}"
            if name not in box and len(box) < size:
                box = box.with_(replace(tool, name=name, example=None))
    return box


def _milliseconds(grammar: PlanGrammar, query: AnnotatedQuery, box: Toolbox) -> float:
    request = query.record.request(box)
    started = time.perf_counter()
    grammar.plan(request)
    return (time.perf_counter() - started) * 1000


def _followed(matcher: PlanMatcher, choices: Sequence[int], ends: Sequence[int]) -> float:
    """Return the milliseconds that a matcher takes while the decoder makes these choices."""
    started = time.perf_counter()
    matcher.forced()
    for token in choices:
        if matcher.finished:
            break
        matcher.allowed()
        if token in ends:
            break
        matcher.consume(token)
        matcher.forced()
    return (time.perf_counter() - started) * 1000
