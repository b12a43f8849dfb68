"""Comparison of a plan with its annotated query: tools, arguments, graph, class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from casewright.planner import AnnotatedQuery, ListValue, Literal, Plan, Step, StepRef
from casewright.planner.plan import Scalar, Value
from casewright.planner.spans import normalized


def value_right(gold: Value, given: Value, must: Sequence[str]) -> bool:
    """Return whether an argument is right.

    Args:
        gold: The annotated one.
        given: The plan's own.
        must: The lower-case words that a text must contain instead of being the annotated one.
    """
    if not isinstance(gold, Literal) or not isinstance(gold.value, str):
        return gold == given
    # The whole question holds every word, and is not the short literal that was asked for.
    if not isinstance(given, Literal) or not isinstance(given.value, str):
        return False
    text = normalized(given.value)
    return all(word in text for word in must) if must else text == normalized(gold.value)


#: Stands for a reference where edges say what is referred to.
_REFERENCE = Literal("")
Edges = Mapping[tuple[int, int], frozenset[Hashable]]
Candidates = list[set[int]]


def same_graph(query: AnnotatedQuery, plan: Plan, *, arguments: bool = False) -> bool:
    """Return whether a plan's graph is isomorphic to the gold plan's; exact.

    Source: the success rate of TinyAgent (Erdogan et al. 2024). Steps are nodes, labelled by their
    tools; a reference from one step to another is an edge. With arguments, nodes are also labelled
    by the arguments, and edges by the reference's parameter, field and index.

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
        for index, step in enumerate(plan.steps):
            for name, value in step.arguments:
                for position, item in enumerate(_items(value)):
                    if isinstance(item, StepRef):
                        label = (name, position, item.field, item.index) if arguments else ()
                        edges.setdefault((item.step - 1, index), set()).add(label)
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
            for (item, other), label in graph.edges.items():
                # A plan that was never validated may refer to a step that it lacks.
                if 0 <= item < len(colours):
                    into[other].append((colours[item], label))
                    out[item].append((colours[other], label))
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
    """Return whether every step can have a candidate of its own (augmenting paths)."""
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


#: The paper measures arguments only on plans that use one of these.
PAPER_ARGUMENT_TOOLS = frozenset({"prod_search", "shipment_status"})
MULTI_STEP = "multi_step"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Comparison of one predicted plan with its annotated query.

    Attributes:
        gold: The query's class.
        predicted: The class of the predicted plan.
        tools: Its tool sequence is the gold one, or one that also counts as right.
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

    The arguments of another accepted tool sequence are compared, step by matching step, where it is
    the gold one in another order; where it has other tools, there are none to compare them with.
    """
    same_tools = plan.tools == query.plan.tools
    tools = same_tools or plan.tools in query.accept
    if same_tools:
        arguments = _arguments_right(query, plan)
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


def plan_class(plan: Plan) -> str:
    """Return the class of a plan: the one tool whose results nothing else needs, or multi-step."""
    needed = {reference.step for step in plan.steps for reference in step.references()}
    last = [step.tool for number, step in enumerate(plan.steps, 1) if number not in needed]
    return last[0] if len(last) == 1 else MULTI_STEP


def _arguments_right(query: AnnotatedQuery, plan: Plan) -> bool:
    for number, (gold, own) in enumerate(zip(query.plan.steps, plan.steps, strict=True), 1):
        if dict(gold.arguments).keys() != dict(own.arguments).keys():
            return False
        for name, value in gold.arguments:
            words = query.must.get(f"s{number}.{name}", ())
            given = own.argument(name)
            if given is None or not value_right(value, given, words):
                return False
    return True
