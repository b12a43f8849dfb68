"""Comparison of a plan with its annotated query: tools, arguments, graph, class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from casewright.finetune.plan_shape import plan_class
from casewright.planner import AnnotatedQuery, ListValue, Literal, Plan, Step, StepRef
from casewright.planner.plan import Value
from casewright.planner.spans import normalized

#: The paper measures arguments only on plans that use one of these.
PAPER_ARGUMENT_TOOLS = frozenset({"prod_search", "shipment_status"})
#: Stands for every reference where edges are compared instead.
_REFERENCE = StepRef(1, "reference")
#: Labels by referred and referring step, numbered from 0.
_Edges = Mapping[tuple[int, int], frozenset[Hashable]]
#: One colour a step, of the gold plan and of the other.
_Colours = tuple[Sequence[Hashable], Sequence[Hashable]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Comparison of one predicted plan with its annotated query.

    Attributes:
        gold: The query's class.
        predicted: The class of the predicted plan.
        tools: Its tool sequence is the gold one, or another accepted one.
        arguments: Tools and every argument are right.
        paper: The paper would measure this plan's arguments.
        milliseconds: Planning time.
    """

    gold: str
    predicted: str
    tools: bool
    arguments: bool
    paper: bool
    milliseconds: float


def judge(query: AnnotatedQuery, plan: Plan, milliseconds: float = 0.0) -> Verdict:
    """Compare a predicted plan with the annotated query.

    The arguments of another accepted tool sequence are compared, step by matching step, if it is
    the gold sequence in another order. If it has other tools, no arguments are compared.
    """
    same_tools = plan.tools == query.plan.tools
    tools = same_tools or plan.tools in query.accept
    if same_tools:
        pairs = zip(query.plan.steps, plan.steps, strict=True)
        arguments = all(_arguments_right(query, n, *pair) for n, pair in enumerate(pairs, 1))
    else:
        arguments = tools and same_graph(query, plan, arguments=True)
    return Verdict(
        gold=query.label,
        predicted=query.label if tools else plan_class(plan),
        tools=tools,
        arguments=arguments,
        paper=bool(PAPER_ARGUMENT_TOOLS & set(query.plan.tools)),
        milliseconds=milliseconds,
    )


def _arguments_right(query: AnnotatedQuery, number: int, gold: Step, step: Step) -> bool:
    """Return whether a step has the arguments of the gold step of this number."""
    values = dict(step.arguments)
    return dict(gold.arguments).keys() == values.keys() and all(
        _value_right(value, values[name], query.must.get(f"s{number}.{name}", ()))
        for name, value in gold.arguments
    )


def _value_right(gold: Value, value: Value, must: Sequence[str]) -> bool:
    """Return whether a value is the gold one, or a text that contains the words that it must."""
    if not isinstance(gold, Literal) or not isinstance(gold.value, str):
        return gold == value
    # The whole question holds every word, and is not the short literal of the gold plan.
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        return False
    text = normalized(value.value)
    return all(word in text for word in must) if must else text == normalized(gold.value)


def _unreferred(plan: Plan) -> list[Step]:
    return [
        step.mapped(lambda v: _REFERENCE if isinstance(v, StepRef) else v) for step in plan.steps
    ]


def same_graph(query: AnnotatedQuery, plan: Plan, *, arguments: bool = False) -> bool:
    """Return whether a plan's graph is isomorphic to the gold plan's; exact.

    Source: the success rate of TinyAgent (Erdogan et al. 2024). Steps are nodes, labelled by their
    tools; a reference from one step to another is an edge. With arguments, nodes are also labelled
    by the arguments, and edges by the reference's parameter, field and index.

    A plan of another accepted tool sequence with other tools counts as the same, and a literal that
    contains the words that it must as the gold one: as in ``judge``.
    """
    gold = query.plan
    if plan == gold:
        return True
    if sorted(plan.tools) != sorted(gold.tools):
        return plan.tools in query.accept
    edges = _edges(gold, arguments=arguments), _edges(plan, arguments=arguments)
    if len(edges[0]) != len(edges[1]):
        return False
    steps = _unreferred(plan)
    allowed = [
        {
            other
            for other, step in enumerate(steps)
            if not arguments or _arguments_right(query, number, gold_step, step)
        }
        for number, gold_step in enumerate(_unreferred(gold), 1)
    ]
    return _isomorphic(edges, (gold.tools, plan.tools), allowed)


def _edges(plan: Plan, *, arguments: bool) -> _Edges:
    edges: dict[tuple[int, int], set[Hashable]] = {}
    for number, step in enumerate(plan.steps):
        for name, value in step.arguments:
            for place, item in enumerate(value.items if isinstance(value, ListValue) else (value,)):
                if isinstance(item, StepRef):
                    label = (name, place, item.field, item.index) if arguments else ()
                    edges.setdefault((item.step - 1, number), set()).add(label)
    return {ends: frozenset(labels) for ends, labels in edges.items()}


def _isomorphic(
    edges: tuple[_Edges, _Edges], colours: _Colours, allowed: Sequence[set[int]]
) -> bool:
    """Search by individualisation and refinement: map one step, refine the colours, go on.

    Args:
        allowed: For each gold step, the steps of the other plan with right arguments.
    """
    gold, other = colours = _refined(edges, colours)
    sizes = Counter(gold)
    candidates = [
        [number for number in sorted(allowed[i]) if other[number] == colour]
        for i, colour in enumerate(gold)
    ]
    if sizes != Counter(other) or not all(candidates):
        return False
    unmapped = [i for i, colour in enumerate(gold) if sizes[colour] > 1]
    if not unmapped:
        return True
    first = min(unmapped, key=lambda i: len(candidates[i]))
    return any(
        _isomorphic(edges, (_with_own(gold, first), _with_own(other, number)), allowed)
        for number in candidates[first]
    )


def _with_own(colours: Sequence[Hashable], number: int) -> list[Hashable]:
    """Return the colours, with a unique colour (``None``) for the step of this number."""
    return [None if i == number else colour for i, colour in enumerate(colours)]


def _refined(edges: tuple[_Edges, _Edges], colours: _Colours) -> _Colours:
    """Return equal colours for the steps that no walk along edges tells apart.

    Colour refinement (Weisfeiler and Leman 1968), of both graphs at once.
    """
    count = 0
    while True:
        numbers: dict[Hashable, int] = {}
        gold, other = ([numbers.setdefault(c, len(numbers)) for c in part] for part in colours)
        if len(numbers) == count:
            return gold, other
        count = len(numbers)
        colours = _signatures(edges[0], gold), _signatures(edges[1], other)


def _signatures(edges: _Edges, colours: Sequence[int]) -> list[Hashable]:
    """Return the colours of the steps with those of their neighbours."""
    near: list[Counter[Hashable]] = [Counter() for _ in colours]
    for (referred, referring), labels in edges.items():
        # A plan that was never validated may refer to a step that it lacks.
        if 0 <= referred < len(colours):
            near[referring]["from", colours[referred], labels] += 1
            near[referred]["to", colours[referring], labels] += 1
    return [
        (colour, frozenset(around.items())) for colour, around in zip(colours, near, strict=True)
    ]
