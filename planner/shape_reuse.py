"""Plans made from the plan case of the elected shape, with its literals adapted.

No training beyond a linear fit when it is made: what a team has before it trains a reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from casewright.planner.known_plans import KnownPlans
from casewright.planner.literals import LiteralFinder, text_literals, with_literals, words_of
from casewright.planner.plan import Literal, Plan, QuestionRef, Step, Value
from casewright.planner.plan_cases import runnable
from casewright.planner.request import PlanRequest
from casewright.planner.spans import is_span, normalized
from casewright.stores import CaseStore
from casewright.tools import Source, ToolSpec


class ShapeReuse:
    """Elects a shape, takes its nearest case, adapts the case's literals.

    A tool that no plan case uses is known by its own example alone: it is planned with where the
    question is nearer to that example, or to the tool's description, than to any plan case.

    Args:
        store: Plan cases; see ``plan_store``. Read once.
    """

    def __init__(self, store: CaseStore) -> None:
        self._known = KnownPlans(store)
        self._finder = LiteralFinder(zip(self._known.questions, self._known.plans, strict=True))

    def plans(self, request: PlanRequest) -> Iterator[Plan]:
        """Yield plans for a request, the likeliest first; they may break static checks."""
        for question, plan in self._candidates(request):
            yield self._adapted(question, plan, request)

    def readings(self, request: PlanRequest) -> Iterator[tuple[Plan, None]]:
        """Yield the same; an elected shape has no probability."""
        return ((plan, None) for plan in self.plans(request))

    def _candidates(self, request: PlanRequest) -> Iterator[tuple[str, Plan]]:
        """Yield cases to adapt, the best first: a question and its plan."""
        known = self._known
        asked = known.vector(request)
        near = known.vectors @ asked
        nearest = float(near.max(initial=0.0))
        # Examples of tools that no plan case uses, where they are nearer than any.
        new = [one for one in known.unknown_tools(request, asked) if one.likeness >= nearest]
        for one in sorted(new, key=lambda one: (-one.likeness, one.question)):
            if one.plan is not None:
                yield one.question, one.plan
        for elected, _ in known.shapes.ranked(
            request.question,
            asked,
            known.has_context(request),
            lambda plan: runnable(plan, request),
        ):
            best = max(elected.cases, key=lambda case: (near[case], known.questions[case]))
            yield known.questions[best], known.plans[best]

    def _adapted(self, old_question: str, plan: Plan, request: PlanRequest) -> Plan:
        """Return the case's plan with literals that are found in the new question."""
        slots = [
            (index, name, text)
            for index, name, text in text_literals(plan)
            if not _is_choice(request.toolbox[plan.steps[index].tool], name, text)
        ]
        if not slots:
            return plan
        old = normalized(old_question)
        # Literals keep their order: the first in the old question takes the first in the new one.
        order = sorted(range(len(slots)), key=lambda i: old.find(normalized(slots[i][2])))
        spoken = [i for i in order if is_span(slots[i][2], old_question)] or order
        inside = {normalized(w.text) for _, _, text in slots for w in words_of(text)}
        filler = [w.text for w in words_of(old_question) if normalized(w.text) not in inside]
        found = self._finder.find(request.question, len(spoken), filler)
        texts = {(slots[i][0], slots[i][1]): text for i, text in zip(spoken, found, strict=False)}
        return _ask_the_question(with_literals(plan, texts), request, replaced=set(texts))


def _is_choice(tool: ToolSpec, name: str, text: str) -> bool:
    """Say whether a text is one of its parameter's choices: no words of a question."""
    parameter = tool.parameter(name)
    return parameter is not None and text in parameter.choices


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
        parameter = tool.parameter(name)
        stale = (
            isinstance(value, Literal)
            and isinstance(value.value, str)
            and (index, name) not in replaced
            and not _is_choice(tool, name, value.value)
        )
        if stale and parameter is not None and Source.QUESTION in parameter.sources:
            value = QuestionRef()
        arguments.append((name, value))
    return arguments
