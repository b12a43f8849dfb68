"""Planning by reuse of the nearest plan cases, without a language model."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from casewright.errors import PlanError
from casewright.planner.fallback import fallback_plan
from casewright.planner.literals import (
    LiteralFinder,
    masked,
    text_literals,
    with_literals,
    words_of,
)
from casewright.planner.parse import parse_plan
from casewright.planner.plan import ListValue, Literal, Plan, QuestionRef, Step, Value
from casewright.planner.plan_cases import runnable, usable
from casewright.planner.request import PlanRequest, PlanResult
from casewright.planner.spans import is_span, normalized
from casewright.stores import CaseStore
from casewright.tools import Source, ToolSpec

#: Plan cases that are looked at.
NEIGHBOURS = 64
#: How fast a neighbour's vote falls with its distance to the nearest one, in cosine: for what is
#: asked, and for how.
TASK_TEMPERATURE, SHAPE_TEMPERATURE = 0.15, 0.1
#: What it costs, in cosine, that one question was asked on a product's page and the other not.
TASK_CONTEXT_COST, SHAPE_CONTEXT_COST = 0.1, 0.3
#: Share of the masked question in the similarity that shapes are voted for by.
FORM_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """A plan case beside the question, with its similarities in both respects."""

    question: str
    plan: Plan
    task: float
    form: float


class CasePlanner:
    """Reuses the plan of similar questions: retrieve, vote, adapt the literals.

    The neighbours vote twice: on what is asked (which tools answer), each task's votes divided by
    the root of its number of cases, and among those on the plan's shape (where the product comes
    from), by the question with its literals masked.

    Args:
        store: Plan cases; see ``plan_store``. Read once, when the planner is made.
    """

    name = "case"

    def __init__(self, store: CaseStore) -> None:
        self._store = store
        known = [(str(c.problem["question"]), parse_plan(str(c.solution))) for c in store.all()]
        self._plans = dict(known)
        self._finder = LiteralFinder(known)
        self._tasks = Counter(task(plan) for _, plan in known)

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the adapted plan of the nearest cases, or a fallback plan; see ``Planner``."""
        started = time.perf_counter()
        attempts = 0
        reason = "No plan case uses only the tools of this request."
        for neighbour in self._ranked(request):
            attempts += 1
            adapted = self._adapted(neighbour, request)
            try:
                request.validate(adapted)
            except PlanError as error:
                reason = str(error)
                continue
            return PlanResult(adapted, self.name, attempts, "", _since(started))
        return PlanResult(fallback_plan(request), self.name, attempts + 1, reason, _since(started))

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """The same; it takes a few milliseconds and does not wait for anything."""
        return self.plan(request)

    def _ranked(self, request: PlanRequest) -> list[_Neighbour]:
        """Return neighbours: those of the elected task first, then shape, nearest first."""
        near = list(self._near(request))
        if not near:
            return []
        nearest = max(n.task for n in near), max(n.form for n in near)
        tasks: dict[str, float] = defaultdict(float)
        shapes: dict[str, float] = defaultdict(float)
        for n in near:
            cases = max(self._tasks[task(n.plan)], 1)
            vote = math.exp((n.task - nearest[0]) / TASK_TEMPERATURE)
            tasks[task(n.plan)] += vote / math.sqrt(cases)
            shapes[shape(n.plan)] += math.exp((n.form - nearest[1]) / SHAPE_TEMPERATURE)
        return sorted(
            near,
            key=lambda n: (-tasks[task(n.plan)], -shapes[shape(n.plan)], -n.form, n.question),
        )

    def _near(self, request: PlanRequest) -> Iterator[_Neighbour]:
        """Yield plan cases that this request could run, and its tools' own examples."""
        here = request.context.get("product_id") is not None
        form = masked(request.question, self._finder.find(request.question, 1))
        asked = {"question": request.question, "form": form}
        for hit in self._store.search(asked, NEIGHBOURS):
            if usable(hit, request):
                question = str(hit.case.problem["question"])
                there = "product_id" in hit.case.metadata.get("context", ())
                yield _neighbour(
                    question,
                    self._plans[question],
                    hit.facet_scores["question"],
                    hit.facet_scores["form"],
                    same_page=here == there,
                )
        yield from self._tool_examples(asked, request)

    def _tool_examples(
        self, asked: Mapping[str, str], request: PlanRequest
    ) -> Iterator[_Neighbour]:
        """Yield the tools' own examples: plan cases of this request."""
        known = []
        for tool in request.toolbox:
            if tool.example is not None:
                with suppress(PlanError):
                    known.append((tool.example.query, parse_plan(tool.example.plan)))
        problems = [
            {"question": query, "form": masked(query, [t for _, _, t in text_literals(plan)])}
            for query, plan in known
        ]
        schema = self._store.schema
        vectors = schema.vectors([*problems, asked], query=True)
        for (query, plan), vector in zip(known, vectors[:-1], strict=True):
            if runnable(plan, request):
                scores = {
                    name: float(vector[part] @ vectors[-1][part])
                    for name, part in schema.slices.items()
                }
                yield _neighbour(query, plan, scores["question"], scores["form"], same_page=True)

    def _adapted(self, neighbour: _Neighbour, request: PlanRequest) -> Plan:
        """Return the neighbour's plan with literals that are found in the question."""
        slots = text_literals(neighbour.plan)
        if not slots:
            return neighbour.plan
        old = normalized(neighbour.question)
        # Literals keep their order: the first in the old question takes the first in the new one.
        order = sorted(range(len(slots)), key=lambda i: old.find(normalized(slots[i][2])))
        spoken = [i for i in order if is_span(slots[i][2], neighbour.question)] or order
        inside = {normalized(w.text) for _, _, text in slots for w in words_of(text)}
        filler = [w.text for w in words_of(neighbour.question) if normalized(w.text) not in inside]
        found = self._finder.find(request.question, len(spoken), filler)
        texts = {(slots[i][0], slots[i][1]): text for i, text in zip(spoken, found, strict=False)}
        plan = with_literals(neighbour.plan, texts)
        return _ask_the_question(plan, request, replaced=set(texts))


def _neighbour(
    question: str, plan: Plan, whole: float, form: float, *, same_page: bool
) -> _Neighbour:
    mixed = FORM_SHARE * form + (1 - FORM_SHARE) * whole
    return _Neighbour(
        question,
        plan,
        whole - (0.0 if same_page else TASK_CONTEXT_COST),
        mixed - (0.0 if same_page else SHAPE_CONTEXT_COST),
    )


def task(plan: Plan) -> str:
    """Return what is asked: the one tool whose results nothing else needs, or ``several``."""
    needed = {reference.step for step in plan.steps for reference in step.references()}
    last = [step.tool for number, step in enumerate(plan.steps, 1) if number not in needed]
    return last[0] if len(last) == 1 else "several"


def shape(plan: Plan) -> str:
    """Return the plan's form with every literal left open."""
    return str(Plan(tuple(_open(step) for step in plan.steps)))


def _open(step: Step) -> Step:
    return Step(step.tool, tuple((name, _opened(value)) for name, value in step.arguments))


def _opened(value: Value) -> Value:
    if isinstance(value, ListValue):
        return ListValue(tuple(Literal("") if isinstance(v, Literal) else v for v in value.items))
    return Literal("") if isinstance(value, Literal) else value


def _ask_the_question(plan: Plan, request: PlanRequest, *, replaced: set[tuple[int, str]]) -> Plan:
    """Put the question where a literal of the old question would stay: it means nothing here."""
    steps = []
    for index, step in enumerate(plan.steps):
        tool = request.toolbox[step.tool]
        steps.append(Step(step.tool, tuple(_asked(step, index, tool, replaced))))
    return Plan(tuple(steps))


def _asked(
    step: Step, index: int, tool: ToolSpec, replaced: set[tuple[int, str]]
) -> Sequence[tuple[str, Value]]:
    arguments: list[tuple[str, Value]] = []
    for name, value in step.arguments:
        text = isinstance(value, Literal) and isinstance(value.value, str)
        parameter = tool.parameter(name)
        stale = text and (index, name) not in replaced
        if stale and parameter is not None and Source.QUESTION in parameter.sources:
            value = QuestionRef()
        arguments.append((name, value))
    return arguments


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
