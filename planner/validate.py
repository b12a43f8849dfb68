"""The static checks of plans: a plan that passes can run, and calls only tools of the toolbox."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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

#: Default maximum number of steps of a plan.
MAX_STEPS = 12


def validate_plan(
    plan: Plan,
    toolbox: Toolbox,
    *,
    question: str,
    context: Mapping[str, Any],
    max_steps: int = MAX_STEPS,
) -> None:
    """Raise a plan's first violation, a ``PlanError`` with step, rule and correction."""
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
        check = _StepCheck(plan, number, toolbox, question, context)
        if step.tool in toolbox:
            yield from check.check_arguments(step)
        else:
            yield check.error(
                f"There is no tool {step.tool}.", f"Use one of {', '.join(toolbox.names)}."
            )


@dataclass(frozen=True, slots=True)
class _StepCheck:
    plan: Plan
    number: int  # the number of the checked step
    toolbox: Toolbox
    question: str
    context: Mapping[str, Any]

    def check_arguments(self, step: Step) -> Iterator[PlanError]:
        tool = self.toolbox[step.tool]
        names = [name for name, _ in step.arguments]
        for parameter in tool.parameters:
            if parameter.required and parameter.name not in names:
                yield self.error(
                    f"{tool.name} needs the argument {parameter.name}.",
                    f"Call it as {tool.signature()}.",
                )
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield self.error(f"{name} is given twice.", "Give each argument once.")
        for name, value in step.arguments:
            declared = tool.parameter(name)
            if declared is None:
                yield self.error(
                    f"{tool.name} has no parameter {name}.", f"Call it as {tool.signature()}."
                )
            else:
                yield from self._check_value(declared, value)

    def _check_value(self, parameter: Parameter, value: Value) -> Iterator[PlanError]:
        if not isinstance(value, ListValue):
            yield from self._check_scalar(parameter, value, in_list=False)
        elif parameter.kind in ("array", "any"):
            for item in value.items:
                yield from self._check_scalar(parameter, item, in_list=True)
        else:
            yield self.error(
                f"{parameter.name} is a {parameter.kind}, not a list.", "Give a single value."
            )

    def _check_scalar(
        self, parameter: Parameter, value: Scalar, *, in_list: bool
    ) -> Iterator[PlanError]:
        content: Any
        match value:
            case Literal(content):
                yield from self._check_literal(parameter, value)
            case QuestionRef():
                yield from self._check_source(parameter, Source.QUESTION, str(value))
                content = self.question
            case ContextRef(field):
                yield from self._check_source(parameter, Source.CONTEXT, str(value))
                if (content := self.context.get(field)) is None:
                    fields = [f for f in self.context if self.context[f] is not None]
                    fields_text = f"It has {', '.join(fields[:10])}." if fields else "It is empty."
                    yield self.error(
                        f"The context of this request has no {field}.",
                        f"{fields_text} Look the value up with a step instead.",
                    )
                    return
            case StepRef():
                yield from self._check_source(parameter, Source.STEP, str(value))
                yield from self._check_reference(value)
                return
        if not in_list and not parameter.fits(content):  # a list's items have no declared kind
            yield self.error(
                f"{parameter.name} must be a {parameter.kind}; {value} is not.",
                f"Give a {parameter.kind}.",
            )

    def _check_literal(self, parameter: Parameter, literal: Literal) -> Iterator[PlanError]:
        value = literal.value
        if isinstance(value, bool):
            yield from self._check_source(parameter, Source.BOOLEAN, f"{literal}")
        elif not isinstance(value, str):
            yield from self._check_source(parameter, Source.NUMBER, f"the number {literal}")
        elif value in parameter.choices or Source.LITERAL in parameter.sources:
            pass
        elif Source.SPAN in parameter.sources:
            if not is_span(value, self.question):
                yield self.error(
                    f"{parameter.name}={literal} is no run of adjacent words of the question.",
                    "Copy whole words that stand next to each other in the question.",
                )
        elif parameter.choices and not parameter.sources:
            yield self.error(
                f"{parameter.name}={literal} is none of its choices.",
                f"Use one of {', '.join(parameter.choices)}.",
            )
        else:
            yield from self._check_source(parameter, Source.LITERAL, f"the text {literal}")

    def _check_reference(self, reference: StepRef) -> Iterator[PlanError]:
        if not 1 <= reference.step < self.number:
            yield self.error(
                f"{reference} does not refer to an earlier step.",
                "Refer to steps that stand above this one.",
            )
            return
        name = self.plan.steps[reference.step - 1].tool
        # The check of the earlier step reports an unknown tool.
        fields = self.toolbox[name].results if name in self.toolbox else (reference.field,)
        if reference.field not in fields:
            yield self.error(
                f"{reference}: the results of {name} have no {reference.field}.",
                f"It returns {', '.join(fields) or 'nothing'}.",
            )

    def _check_source(
        self, parameter: Parameter, source: Source, value_text: str
    ) -> Iterator[PlanError]:
        if source not in parameter.sources:
            yield self.error(
                f"{parameter.name} may not be {value_text}.",
                # Without the parameter's name, the signature lists the choices and sources.
                f"It takes {parameter.signature().partition(': ')[2]}.",
            )

    def error(self, rule: str, correction: str) -> PlanError:
        return PlanError(rule, correction, f"s{self.number}")
