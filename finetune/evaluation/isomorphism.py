"""Whether two plans are one graph: the order of steps that do not need each other is no matter.

TinyAgent's success rate (Erdogan et al. 2024): a plan is right where its graph is
isomorphic to the gold plan's. Steps are nodes, labelled by their tool; what one step refers to in
another is an edge. Here, a second, stricter figure labels nodes by the arguments that the plan
itself gives too, and edges by where a reference stands and what it takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from casewright.finetune.evaluation.argument_values import value_right
from casewright.planner import AnnotatedQuery, ListValue, Literal, Plan, Step, StepRef
from casewright.planner.plan import Scalar, Value

#: Stands for a reference where edges say what is referred to.
_REFERENCE = Literal("")
Edges = Mapping[tuple[int, int], frozenset[Hashable]]
Candidates = list[set[int]]


def same_graph(query: AnnotatedQuery, plan: Plan, *, arguments: bool = False) -> bool:
    """Say whether a plan's graph is isomorphic to the gold plan's; exact.

    A plan of another accepted tool sequence with other tools counts as the same, and a literal that
    contains the words that it must as the gold one: as in ``judge``.

    Args:
        query: With the gold plan.
        plan: Another plan.
        arguments: Compare arguments too, not only tools and which step needs which.
    """
    gold = query.plan
    if plan == gold:
        return True
    if sorted(plan.tools) != sorted(gold.tools):
        return plan.tools in query.accept
    return _Match(query, plan, arguments=arguments).exists()


@dataclass(frozen=True, slots=True)
class _Graph:
    steps: tuple[Step, ...]
    edges: Edges

    @classmethod
    def of(cls, plan: Plan, *, arguments: bool) -> _Graph:
        edges: dict[tuple[int, int], set[Hashable]] = {}
        for place, step in enumerate(plan.steps):
            for name, value in step.arguments:
                for position, item in enumerate(_items(value)):
                    if isinstance(item, StepRef):
                        label = (name, position, item.field, item.index) if arguments else ()
                        edges.setdefault((item.step - 1, place), set()).add(label)
        return cls(plan.steps, {ends: frozenset(labels) for ends, labels in edges.items()})

    def edge(self, one: int, other: int) -> frozenset[Hashable]:
        return self.edges.get((one, other), frozenset())


class _Match:
    """A search for the mapping of gold steps to a plan's own."""

    def __init__(self, query: AnnotatedQuery, plan: Plan, *, arguments: bool) -> None:
        self.gold = _Graph.of(query.plan, arguments=arguments)
        self.own = _Graph.of(plan, arguments=arguments)
        self.size = len(plan.steps)
        colours, own_colours = _colours(self.gold, self.own)
        self.start: Candidates = [
            {
                j
                for j, step in enumerate(self.own.steps)
                if colours[i] == own_colours[j]
                and (not arguments or _arguments_match(query, i, step))
            }
            for i in range(self.size)
        ]

    def exists(self) -> bool:
        return len(self.gold.edges) == len(self.own.edges) and self._exists(self.start)

    def _exists(self, candidates: Candidates) -> bool:
        if not self._narrowed(candidates) or not _has_matching(candidates):
            return False
        open_ = [i for i in range(self.size) if len(candidates[i]) > 1]
        if not open_:
            return True
        first = min(open_, key=lambda i: len(candidates[i]))
        for choice in sorted(candidates[first]):
            tried = [{choice} if i == first else own - {choice} for i, own in enumerate(candidates)]
            if self._exists(tried):
                return True
        return False

    def _narrowed(self, candidates: Candidates) -> bool:
        """Leave out candidates that some other step has no partner for, until none is left out."""
        changed = True
        while changed:
            changed = False
            for i in range(self.size):
                kept = {j for j in candidates[i] if self._supported(i, j, candidates)}
                changed |= kept != candidates[i]
                candidates[i] = kept
                if not kept:
                    return False
        return True

    def _supported(self, i: int, j: int, candidates: Candidates) -> bool:
        gold, own = self.gold, self.own
        return all(
            any(
                gold.edge(i, k) == own.edge(j, m) and gold.edge(k, i) == own.edge(m, j)
                for m in candidates[k]
                if m != j
            )
            for k in range(self.size)
            if k != i
        )


def _colours(*graphs: _Graph) -> list[list[int]]:
    """Return a colour a step, the same for steps that no walk along edges tells apart.

    Colour refinement (Weisfeiler and Leman 1968), of all graphs at once.
    """
    seen: list[list[Hashable]] = [[step.tool for step in graph.steps] for graph in graphs]
    counts = [0, 1]
    while counts[-1] > counts[-2]:
        numbers: dict[Hashable, int] = {}
        seen = [[numbers.setdefault(c, len(numbers)) for c in colours] for colours in seen]
        counts.append(len(numbers) + 1)
        refined: list[list[Hashable]] = []
        for graph, colours in zip(graphs, seen, strict=True):
            into: list[list[Hashable]] = [[] for _ in graph.steps]
            out: list[list[Hashable]] = [[] for _ in graph.steps]
            for (one, other), label in graph.edges.items():
                # A plan that was never validated may refer to a step that it lacks.
                if 0 <= one < len(colours):
                    into[other].append((colours[one], label))
                    out[one].append((colours[other], label))
            refined.append(
                [
                    (own, frozenset(Counter(before).items()), frozenset(Counter(after).items()))
                    for own, before, after in zip(colours, into, out, strict=True)
                ]
            )
        seen = refined
    numbers = {}
    return [[numbers.setdefault(c, len(numbers)) for c in colours] for colours in seen]


def _has_matching(candidates: Candidates) -> bool:
    """Say whether every step can have a candidate of its own (augmenting paths)."""
    taken: dict[int, int] = {}

    def place(i: int, tried: set[int]) -> bool:
        for j in candidates[i] - tried:
            tried.add(j)
            if j not in taken or place(taken[j], tried):
                taken[j] = i
                return True
        return False

    return all(place(i, set()) for i in range(len(candidates)))


def _arguments_match(query: AnnotatedQuery, place: int, own: Step) -> bool:
    gold = query.plan.steps[place]
    given = dict(own.arguments)
    if dict(gold.arguments).keys() != given.keys():
        return False
    return all(
        value_right(
            _unreferred(value),
            _unreferred(given[name]),
            () if isinstance(value, StepRef) else query.must.get(f"s{place + 1}.{name}", ()),
        )
        for name, value in gold.arguments
    )


def _unreferred(value: Value) -> Value:
    if isinstance(value, ListValue):
        return ListValue(tuple(_REFERENCE if isinstance(v, StepRef) else v for v in value.items))
    return _REFERENCE if isinstance(value, StepRef) else value


def _items(value: Value) -> Sequence[Scalar]:
    return value.items if isinstance(value, ListValue) else (value,)
