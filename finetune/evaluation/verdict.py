"""Comparison of a plan with an annotated query, by tools, arguments, graph and class."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from warnings import warn

from casewright.finetune.plan_shape import plan_class
from casewright.planner import AnnotatedQuery, ListValue, Literal, Plan, Step, StepRef
from casewright.planner.plan import Value
from casewright.planner.spans import normalized

#: The REAPER paper (Joshi et al. 2024) measures arguments only of plans with one of these tools.
PAPER_ARGUMENT_TOOLS = frozenset({"prod_search", "shipment_status"})
#: The placeholder for every reference to a step; references are compared as edges of the graph.
_REFERENCE = StepRef(1, "reference")
#: Labels of references by edge. An edge is the indices of a step and of a step that refers to it.
_Edges = Mapping[tuple[int, int], frozenset[Hashable]]
#: The colours (classes of equivalent steps) of the gold plan's steps, and of the other plan's.
_Colours = tuple[Sequence[Hashable], Sequence[Hashable]]
#: Former names of attributes, which work for one release, with the present names.
_OLD_NAMES = {"tools": "right_tools", "arguments": "right_arguments", "paper": "in_paper"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Comparison of one predicted plan with its annotated query.

    Attributes:
        gold: The class of the query.
        predicted: The class of the predicted plan; ``gold`` if the tools are right.
        right_tools: True if the tool sequence is the gold sequence, or another accepted one.
        right_arguments: True if the tools and every argument are right.
        in_paper: True if the gold plan calls one of ``PAPER_ARGUMENT_TOOLS``.
    """

    gold: str
    predicted: str
    right_tools: bool
    right_arguments: bool
    in_paper: bool
    milliseconds: float

    def __getattr__(self, name: str) -> bool:
        """Warn, and return an attribute by its former name."""
        if name not in _OLD_NAMES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warn(f"Verdict.{name} is now {_OLD_NAMES[name]}", DeprecationWarning, stacklevel=2)
        return bool(getattr(self, _OLD_NAMES[name]))


def judge(query: AnnotatedQuery, plan: Plan, milliseconds: float = 0.0) -> Verdict:
    """Return the comparison of a predicted plan with the annotated query.

    If the plan calls the gold tools in another accepted order, ``same_graph`` compares the
    arguments. If an accepted plan calls other tools, its arguments count as right.
    """
    same_tools = plan.tools == query.plan.tools
    right_tools = same_tools or plan.tools in query.accept
    if same_tools:
        pairs = zip(query.plan.steps, plan.steps, strict=True)
        right_arguments = all(_is_right_step(query, n, *pair) for n, pair in enumerate(pairs, 1))
    else:
        right_arguments = right_tools and same_graph(query, plan, arguments=True)
    return Verdict(
        gold=query.label,
        predicted=query.label if right_tools else plan_class(plan),
        right_tools=right_tools,
        right_arguments=right_arguments,
        in_paper=bool(PAPER_ARGUMENT_TOOLS & set(query.plan.tools)),
        milliseconds=milliseconds,
    )


def _is_right_step(query: AnnotatedQuery, number: int, gold: Step, step: Step) -> bool:
    """Return True if a step has right arguments; ``number`` is the gold step's number."""
    values = dict(step.arguments)
    return dict(gold.arguments).keys() == values.keys() and all(
        _is_right_value(value, values[name], query.must.get(f"s{number}.{name}", ()))
        for name, value in gold.arguments
    )


def _is_right_value(gold: Value, value: Value, must: Sequence[str]) -> bool:
    """Return True if a value is the gold value or, with ``must``, a text with all of its texts."""
    if not isinstance(gold, Literal) or not isinstance(gold.value, str):
        return gold == value
    # A reference to the whole question is not right, although it contains the texts of ``must``.
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        return False
    text = normalized(value.value)
    return all(word in text for word in must) if must else text == normalized(gold.value)


def same_graph(query: AnnotatedQuery, plan: Plan, *, arguments: bool = False) -> bool:
    """Return True if an exact search finds a plan's graph isomorphic to the gold plan's graph.

    Source: the success rate of TinyAgent (Erdogan et al. 2024). The nodes are the steps, labelled
    by their tools; the edges are the references from one step to another. With ``arguments``, a
    node's label includes the arguments, and an edge's label the parameter, field and index.

    As in ``judge``, an accepted plan with other tools than the gold plan counts as isomorphic, and
    a literal with the texts of ``must`` counts as the gold literal.
    """
    gold = query.plan
    if plan == gold:
        return True
    if sorted(plan.tools) != sorted(gold.tools):
        return plan.tools in query.accept
    edges = _edges(gold, arguments=arguments), _edges(plan, arguments=arguments)
    if len(edges[0]) != len(edges[1]):
        return False
    gold_steps, steps = (
        [step.mapped(lambda v: _REFERENCE if isinstance(v, StepRef) else v) for step in side.steps]
        for side in (gold, plan)
    )
    allowed_steps = [
        {
            step_index
            for step_index, step in enumerate(steps)
            if not arguments or _is_right_step(query, number, gold_step, step)
        }
        for number, gold_step in enumerate(gold_steps, 1)
    ]
    return _is_isomorphic(edges, (gold.tools, plan.tools), allowed_steps)


def _edges(plan: Plan, *, arguments: bool) -> _Edges:
    edges: dict[tuple[int, int], frozenset[Hashable]] = defaultdict(frozenset)
    for step_index, step in enumerate(plan.steps):
        for name, value in step.arguments:
            items = value.items if isinstance(value, ListValue) else (value,)
            for position, item in enumerate(items):
                if isinstance(item, StepRef):
                    label = (name, position, item.field, item.index) if arguments else ()
                    edges[item.step - 1, step_index] |= {label}
    return edges


def _is_isomorphic(
    edges: tuple[_Edges, _Edges], colours: _Colours, allowed_steps: Sequence[set[int]]
) -> bool:
    """Return True if the graphs are isomorphic, by individualisation and colour refinement.

    ``allowed_steps`` holds, for each gold step, the other plan's steps with right arguments.
    """
    gold, other = colours = _refine(edges, colours)
    sizes = Counter(gold)
    candidates = [
        [step for step in sorted(allowed_steps[index]) if other[step] == colour]
        for index, colour in enumerate(gold)
    ]
    if sizes != Counter(other) or not all(candidates):
        return False
    unmapped = [index for index, colour in enumerate(gold) if sizes[colour] > 1]
    if not unmapped:
        return True
    chosen = min(unmapped, key=lambda index: len(candidates[index]))
    # ``chosen`` and a candidate get the colour None, which no other step has, and so correspond.
    marked = [*gold[:chosen], None, *gold[chosen + 1 :]]
    return any(
        _is_isomorphic(edges, (marked, [*other[:step], None, *other[step + 1 :]]), allowed_steps)
        for step in candidates[chosen]
    )


def _refine(edges: tuple[_Edges, _Edges], colours: _Colours) -> _Colours:
    """Return the colours after colour refinement of both graphs (Weisfeiler and Leman 1968).

    Two steps get the same colour if no walk along edges distinguishes them.
    """
    colour_count = 0
    while True:
        numbering: dict[Hashable, int] = {}
        gold, other = ([numbering.setdefault(c, len(numbering)) for c in side] for side in colours)
        if len(numbering) == colour_count:
            return gold, other
        colour_count = len(numbering)
        colours = _signatures(edges[0], gold), _signatures(edges[1], other)


def _signatures(edges: _Edges, colours: Sequence[int]) -> list[Hashable]:
    """Return each step's colour, with each edge's label and the colour at the edge's other end."""
    neighbours: list[Counter[Hashable]] = [Counter() for _ in colours]
    for (referred, referring), labels in edges.items():
        # An invalid plan may refer to a missing step.
        if 0 <= referred < len(colours):
            neighbours[referring]["from", colours[referred], labels] += 1
            neighbours[referred]["to", colours[referring], labels] += 1
    return [(colour, frozenset(n.items())) for colour, n in zip(colours, neighbours, strict=True)]
