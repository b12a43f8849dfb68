"""Changes plans about the open page's entity into plans about named entities, or the reverse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from casewright.planner.history.mentions import Mention
from casewright.planner.plan import (
    ContextRef,
    Literal,
    Plan,
    QuestionRef,
    Scalar,
    Step,
    StepRef,
    Value,
)
from casewright.tools import Source, Toolbox


class Rebinding:
    """Changes which entities the plans for a toolbox are about.

    Attributes:
        finders: The tools that find an entity by its name, each with its parameter for the name.
        page_fields: Context fields that identify the entity on a page, and that finders return.
    """

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        parameters = [parameter for tool in toolbox for parameter in tool.parameters]
        step_parameters = {p.name for p in parameters if Source.STEP in p.sources}
        self.finders: dict[str, str] = {}
        for tool in toolbox:
            required = [parameter for parameter in tool.parameters if parameter.required]
            # A finder needs only a name, and returns a field that another tool takes from a step.
            takes_name = len(required) == 1 and Source.LITERAL in required[0].sources
            if takes_name and not step_parameters.isdisjoint(tool.results):
                self.finders[tool.name] = required[0].name
        finder_results = {field for name in self.finders for field in toolbox[name].results}
        self.page_fields = {
            parameter.name
            for parameter in parameters
            if Source.CONTEXT in parameter.sources and parameter.name in finder_results
        }

    def searched_name(self, step: Step) -> Value | None:
        """Return the name for which a step searches, if its tool is a finder."""
        return step.argument(self.finders[step.tool]) if step.tool in self.finders else None

    def ends_with_search(self, plan: Plan) -> bool:
        """Return True if the last step of a plan calls a finder."""
        return plan.steps[-1].tool in self.finders

    def uses_page(self, plan: Plan) -> bool:
        """Return True if a plan uses context fields that identify the entity on the open page."""
        return any(map(self._step_uses_page, plan.steps))

    def _step_uses_page(self, step: Step) -> bool:
        fields = {value.field for value in step.scalars() if isinstance(value, ContextRef)}
        return not fields.isdisjoint(self.page_fields)

    def bound_to_entities(self, plan: Plan, entities: Sequence[Mention]) -> Plan:
        """Replace the page's fields in a plan by results of steps that find entities by name."""
        steps = [
            Step(entity.tool, ((self.finders[entity.tool], Literal(entity.name)),))
            for entity in entities
        ]
        # Maps the old number of a step to the new numbers of its copies, one or one per entity.
        new_numbers: dict[int, list[int]] = {}
        for number, step in enumerate(plan.steps, 1):
            inputs = [new_numbers[reference.step] for reference in step.references()]
            is_per_entity = self._step_uses_page(step) or any(len(new) > 1 for new in inputs)
            first_copy = len(steps) + 1
            for index in range(len(entities) if is_per_entity else 1):
                renumbering = {n: new[min(index, len(new) - 1)] for n, new in new_numbers.items()}
                steps.append(self._with_finder(step.renumbered(renumbering), index + 1))
            new_numbers[number] = [*range(first_copy, len(steps) + 1)]
        return Plan(tuple(steps))

    def _with_finder(self, step: Step, finder_step: int) -> Step:
        """Return the step with results of step ``finder_step`` instead of the page's fields."""

        def with_reference(value: Scalar) -> Scalar:
            if isinstance(value, ContextRef) and value.field in self.page_fields:
                return StepRef(finder_step, value.field)
            return value

        return step.mapped(with_reference)

    def bound_to_page(self, plan: Plan) -> Plan | None:
        """Return the plan with page fields instead of searches; ``None`` if that is impossible."""
        referenced = {reference.step for step in plan.steps for reference in step.references()}
        replaced_numbers = {
            number
            for number, step in enumerate(plan.steps, 1)
            if step.tool in self.finders and number in referenced
        }
        steps: list[Step] = []
        new_numbers: dict[int, int] = {}

        def with_page(value: Scalar) -> Scalar:
            if isinstance(value, StepRef) and value.step in replaced_numbers:
                return ContextRef(value.field)
            return value

        for number, step in enumerate(plan.steps, 1):
            if number in replaced_numbers:
                continue
            fields = [ref.field for ref in step.references() if ref.step in replaced_numbers]
            if not self.page_fields.issuperset(fields):
                return None
            rebound_step = step.mapped(with_page).renumbered(new_numbers)
            # Steps that differed only in the entity have become equal.
            if rebound_step not in steps:
                steps.append(rebound_step)
            new_numbers[number] = steps.index(rebound_step) + 1
        return Plan(tuple(steps)) if steps else None

    def with_names(self, plan: Plan, names: Mapping[int, str]) -> Plan:
        """Return the plan with other names in searches; ``names`` maps step indices to names."""
        steps = list(plan.steps)
        for index, name in names.items():
            tool = steps[index].tool
            steps[index] = Step(tool, ((self.finders[tool], Literal(name)),))
        return Plan(tuple(steps))

    def with_question(self, plan: Plan, text: str) -> Plan:
        """Return the plan with a text instead of ``question``, wherever literals are allowed."""

        def with_text(tool: str, name: str, value: Value) -> Value:
            parameter = self._toolbox[tool].parameter(name)
            takes_text = parameter is not None and Source.LITERAL in parameter.sources
            return Literal(text) if isinstance(value, QuestionRef) and takes_text else value

        steps = []
        for step in plan.steps:
            arguments = ((name, with_text(step.tool, name, v)) for name, v in step.arguments)
            steps.append(Step(step.tool, tuple(arguments)))
        return Plan(tuple(steps))


def concatenated(first: Plan, second: Plan) -> Plan:
    """Return a plan with the steps of ``first``, and then the steps of ``second``."""
    offset = len(first.steps)
    new_numbers = {number: number + offset for number in range(1, len(second.steps) + 1)}
    return Plan((*first.steps, *(step.renumbered(new_numbers) for step in second.steps)))
