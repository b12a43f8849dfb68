"""The static checks: a plan that passes them can be run, and can reach nothing but its tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from casewright.errors import PlanError
from casewright.planner.plan import (
    ContextRef,
    ListValue,
    Literal,
    Plan,
    QuestionRef,
    Scalar,
    Step,
    StepRef,
    Value,
)
from casewright.planner.spans import is_span
from casewright.tools import Parameter, Source, Toolbox

#: Steps that a plan may have where nobody says otherwise.
MAX_STEPS = 12


def validate_plan(
    plan: Plan,
    toolbox: Toolbox,
    *,
    question: str,
    context: Mapping[str, Any],
    max_steps: int = MAX_STEPS,
) -> None:
    """Raise the first violation, if there is one.

    Raises:
        PlanError: Names the step, the rule and the mend.
    """
    for error in violations(plan, toolbox, question=question, context=context, max_steps=max_steps):
        raise error


def violations(
    plan: Plan,
    toolbox: Toolbox,
    *,
    question: str,
    context: Mapping[str, Any],
    max_steps: int = MAX_STEPS,
) -> Iterator[PlanError]:
    """Yield every violation of the static checks, in the order of the steps."""
    if len(plan.steps) > max_steps:
        yield PlanError(
            f"The plan has {len(plan.steps)} steps; at most {max_steps} are allowed.",
            "Leave out steps that do not help to answer.",
        )
    for number, step in enumerate(plan.steps, 1):
        label = f"s{number}"
        if step.tool not in toolbox:
            yield PlanError(
                f"There is no tool {step.tool}.",
                f"Use one of {', '.join(toolbox.names)}.",
                label,
            )
            continue
        check = _StepCheck(plan, number, toolbox, question, context)
        yield from check.arguments(step)


class _StepCheck:
    def __init__(
        self,
        plan: Plan,
        number: int,
        toolbox: Toolbox,
        question: str,
        context: Mapping[str, Any],
    ) -> None:
        self.plan = plan
        self.number = number
        self.toolbox = toolbox
        self.question = question
        self.context = context

    def arguments(self, step: Step) -> Iterator[PlanError]:
        tool = self.toolbox[step.tool]
        given = [name for name, _ in step.arguments]
        for parameter in tool.parameters:
            if parameter.required and parameter.name not in given:
                yield self._error(
                    f"{tool.name} needs the argument {parameter.name}.",
                    f"Call it as {tool.signature()}.",
                )
        for twice in sorted({name for name in given if given.count(name) > 1}):
            yield self._error(f"{twice} is given twice.", "Give each argument once.")
        for name, value in step.arguments:
            known = tool.parameter(name)
            if known is None:
                yield self._error(
                    f"{tool.name} has no parameter {name}.", f"Call it as {tool.signature()}."
                )
            else:
                yield from self._value(known, value)

    def _value(self, parameter: Parameter, value: Value) -> Iterator[PlanError]:
        if not isinstance(value, ListValue):
            yield from self._scalar(parameter, value, whole=True)
        elif parameter.kind in ("array", "any"):
            for item in value.items:
                yield from self._scalar(parameter, item, whole=False)
        else:
            yield self._error(
                f"{parameter.name} is a {parameter.kind}, not a list.", "Give a single value."
            )

    def _scalar(self, parameter: Parameter, value: Scalar, *, whole: bool) -> Iterator[PlanError]:
        match value:
            case Literal():
                yield from self._literal(parameter, value, whole=whole)
            case QuestionRef():
                yield from self._admitted(parameter, Source.QUESTION, "question")
                if whole:
                    yield from self._fits(parameter, "question", self.question)
            case ContextRef(field):
                yield from self._admitted(parameter, Source.CONTEXT, str(value))
                if self.context.get(field) is None:
                    known = [f for f in self.context if self.context[f] is not None]
                    there = f"It has {', '.join(known[:10])}." if known else "It is empty."
                    yield self._error(
                        f"The context of this request has no {field}.",
                        f"{there} Look it up with a step instead.",
                    )
                elif whole:
                    yield from self._fits(parameter, str(value), self.context[field])
            case StepRef():
                yield from self._admitted(parameter, Source.STEP, str(value))
                yield from self._reference(value)

    def _literal(
        self, parameter: Parameter, literal: Literal, *, whole: bool
    ) -> Iterator[PlanError]:
        value = literal.value
        if isinstance(value, str):
            if value in parameter.choices or Source.LITERAL in parameter.sources:
                pass
            elif Source.SPAN in parameter.sources:
                if not is_span(value, self.question):
                    yield self._error(
                        f"{parameter.name}={literal} is no run of adjacent words of the question.",
                        "Copy whole words that stand next to each other in the question.",
                    )
            elif parameter.choices and not parameter.sources:
                yield self._error(
                    f"{parameter.name}={literal} is none of its choices.",
                    f"Use one of {', '.join(parameter.choices)}.",
                )
            else:
                yield from self._refused(parameter, f"the text {literal}")
        elif isinstance(value, bool):
            yield from self._admitted(parameter, Source.BOOLEAN, f"{literal}")
        else:
            yield from self._admitted(parameter, Source.NUMBER, f"the number {literal}")
        if whole:
            yield from self._fits(parameter, str(literal), value)

    def _reference(self, reference: StepRef) -> Iterator[PlanError]:
        if not 1 <= reference.step < self.number:
            yield self._error(
                f"{reference} does not refer to an earlier step.",
                "Refer to steps that stand above this one.",
            )
            return
        tool = self.plan.steps[reference.step - 1].tool
        results = self.toolbox[tool].results if tool in self.toolbox else (reference.field,)
        if reference.field not in results:
            have = f"It returns {', '.join(results)}." if results else "It returns nothing."
            yield self._error(
                f"{reference}: the results of {tool} have no {reference.field}.", have
            )

    def _admitted(self, parameter: Parameter, source: Source, shown: str) -> Iterator[PlanError]:
        if source not in parameter.sources:
            yield from self._refused(parameter, shown)

    def _refused(self, parameter: Parameter, shown: str) -> Iterator[PlanError]:
        yield self._error(
            f"{parameter.name} may not be {shown}.",
            f"It takes {parameter.signature().partition(': ')[2]}.",
        )

    def _fits(self, parameter: Parameter, shown: str, value: Any) -> Iterator[PlanError]:
        if not parameter.fits(value):
            yield self._error(
                f"{parameter.name} is a {parameter.kind}; {shown} is none.",
                f"Give a {parameter.kind}.",
            )

    def _error(self, rule: str, mend: str) -> PlanError:
        return PlanError(rule, mend, f"s{self.number}")
