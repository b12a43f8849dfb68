"""Tool-Task Generator (TTG): training tasks about a query's plan, in addition to planning.

The tasks are those of REAPER (Joshi et al. 2024, section on the Tool-Task Generator). The answer of
most tasks is the complete plan. The prompts of such tasks begin with the planner's role, like
planning prompts, and have an instruction after the tools.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal, get_args

from pydantic import Field

from casewright.finetune.example import PLAN_TASK, TrainingExample
from casewright.finetune.examples.tevo import VariedQuery, example_plan
from casewright.finetune.section import Section
from casewright.planner import ListValue, Plan, Prompt, Step, StepRef, is_span, render_prompt
from casewright.planner.plan import Value, sub_plan, text_literals
from casewright.planner.prompt import ROLE, render_head, render_tail
from casewright.planner.sub_queries import with_dependencies
from casewright.tools import NO_EVIDENCE, Toolbox

#: The prompt and the correct answer of a task about one query.
PromptAndAnswer = tuple[Prompt, str]


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of tasks: a varied query, and its planning prompt without plan cases."""

    varied: VariedQuery
    prompt: Prompt

    def plan_task(self, instruction: str, material: str) -> PromptAndAnswer:
        """Return a task whose answer is the plan; the two texts begin the prompt's tail."""
        return _with_instruction(self.prompt, instruction, material), str(self.varied.plan)

    def with_role(self, role: str, *parts: str) -> Prompt:
        """Return a prompt with another role. In the tail, the context follows the first part."""
        # The context is a line of JSON before the question.
        context, separator, _ = self.prompt.tail.partition("\nQuestion: ")
        tail = [parts[0], *([context] if separator and context else []), *parts[1:]]
        return Prompt(_shared_head(self.varied.request.toolbox, role), "\n\n".join(tail))


#: Returns a task about a query; ``None`` if the task does not apply to the query.
Task = Callable[[Subject, random.Random], PromptAndAnswer | None]

_FILE = Path(__file__).parent / "wordings.toml"
#: The wordings of the tasks' instructions, by name.
WORDINGS: Mapping[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
#: Masks for the hidden part of a plan.
MASKS = ("[MASK]", "___", "<missing>", "???")


# Cached: successive queries often share a toolbox, which is immutable and hashed by identity.
@lru_cache(maxsize=16)
def _shared_head(toolbox: Toolbox, role: str = ROLE) -> str:
    return render_head(toolbox, role)


def _with_instruction(prompt: Prompt, *parts: str) -> Prompt:
    return Prompt(prompt.head, "\n\n".join((*parts, prompt.tail)))


def query_from_plan(subject: Subject, rng: random.Random) -> PromptAndAnswer | None:
    """Return the task to write the query from the plan; the answer is the query's question.

    Many questions have the same plan, so the prompt quotes the plan's literals that are copied
    from the question. The task does not apply to a plan without such literals.
    """
    varied = subject.varied
    texts = dict.fromkeys(text for _, _, text in text_literals(varied.plan))
    spans = [text for text in texts if is_span(text, varied.query.query)]
    if not spans:
        return None
    quoted = ", ".join(json.dumps(text, ensure_ascii=False) for text in spans)
    instruction = f"{rng.choice(WORDINGS['query'])} {WORDINGS['quoted'].format(quoted)}"
    material = f"Plan:\n{varied.plan}\nQuestion:"
    return subject.with_role(WORDINGS["query_role"], instruction, material), varied.query.query


def identify_tools(subject: Subject, rng: random.Random) -> PromptAndAnswer | None:
    """Return the task to name the tools that the plan calls, in the order of the toolbox."""
    varied = subject.varied
    instruction = f"{rng.choice(WORDINGS['tools'])} {WORDINGS['tools_form']}"
    question = f"Question: {varied.query.query}\nTools:"
    names = [name for name in varied.request.toolbox.names if name in set(varied.plan.tools)]
    return subject.with_role(WORDINGS["tools_role"], instruction, question), ", ".join(names)


def complete_plan(subject: Subject, rng: random.Random) -> PromptAndAnswer | None:
    """Return the task to complete a plan from its first steps; ``None`` for a plan of one step."""
    lines = str(subject.varied.plan).split("\n")
    if len(lines) < 2:
        return None
    beginning = "\n".join(lines[: rng.randrange(1, len(lines))])
    return subject.plan_task(rng.choice(WORDINGS["begun"]), f"Beginning of the plan:\n{beginning}")


def fill_step(subject: Subject, rng: random.Random) -> PromptAndAnswer | None:
    """Return the task to fill a masked step; ``None`` for a plan of one step."""
    lines = str(subject.varied.plan).split("\n")
    if len(lines) < 2:
        return None
    mask = rng.choice(MASKS)
    index = rng.randrange(len(lines))
    lines[index] = f"s{index + 1} = {mask}"
    material = "Plan with a gap:\n" + "\n".join(lines)
    return subject.plan_task(rng.choice(WORDINGS["lost_step"]).format(mask=mask), material)


def fill_parameters(subject: Subject, rng: random.Random) -> PromptAndAnswer | None:
    """Return the task to fill masked arguments; of one parameter, only equal values are masked."""
    plan = subject.varied.plan
    arguments = [
        (number, step.tool, name, value)
        for number, step in enumerate(plan.steps, 1)
        for name, value in step.arguments
    ]
    if not arguments:
        return None
    mask = rng.choice(MASKS)
    first_values: dict[tuple[str, str], Value] = {}
    masked = {
        (number, name)
        for number, tool, name, value in rng.sample(arguments, rng.randint(1, len(arguments)))
        if first_values.setdefault((tool, name), value) == value
    }
    material = "Plan with gaps:"
    for number, step in enumerate(plan.steps, 1):
        values = {n: mask if (number, n) in masked else v for n, v in step.arguments}
        listed = ", ".join(f"{name}={value}" for name, value in values.items())
        material += f"\ns{number} = {step.tool}({listed})"
    return subject.plan_task(rng.choice(WORDINGS["lost_values"]).format(mask=mask), material)


#: Maximum number of shuffles that are tried before two steps are swapped instead.
MAX_SHUFFLES = 20


def order_steps(subject: Subject, rng: random.Random) -> PromptAndAnswer | None:
    """Return the task to put shuffled steps in order.

    References do not determine the order of independent steps. So the prompt states a rule: of the
    steps that could come next, the first one in the list comes next. The list is shuffled so that
    this rule gives the annotated plan.
    """
    plan = subject.varied.plan
    if (listing := _draw_listing(plan, rng)) is None:
        return None
    instruction = f"{rng.choice(WORDINGS['order'])} {WORDINGS['ties']}"
    return subject.plan_task(instruction, "Steps:\n" + "\n".join(_lettered_steps(plan, listing)))


def _run_order(plan: Plan, listing: Sequence[int]) -> list[int]:
    """Return the indices of the steps in run order: always the first listed step that can run."""
    needed = [{ref.step - 1 for ref in step.references()} for step in plan.steps]
    order: list[int] = []
    while len(order) < len(listing):
        order.append(next(n for n in listing if n not in order and needed[n].issubset(order)))
    return order


def _draw_listing(plan: Plan, rng: random.Random) -> list[int] | None:
    """Return shuffled step indices whose run order is the plan's order; ``None`` if impossible."""
    steps = list(range(len(plan.steps)))
    # References count from 1, so ``n`` is the number of the step before the one with index ``n``.
    needs_previous = [n for n in steps[1:] if n in {r.step for r in plan.steps[n].references()}]
    if not needs_previous or len(steps) > len(ascii_uppercase):
        return None
    for _ in range(MAX_SHUFFLES):
        listing = rng.sample(steps, len(steps))
        if listing != steps and _run_order(plan, listing) == steps:
            return listing
    # Swap two successive steps of which the later needs the earlier, so the run order stays.
    later = rng.choice(needs_previous)
    steps[later - 1], steps[later] = later, later - 1
    return steps


def _lettered_steps(plan: Plan, listing: Sequence[int]) -> Iterator[str]:
    """Yield the steps in the listed order, with letters instead of numbers."""
    letters = {index: ascii_uppercase[position] for position, index in enumerate(listing)}

    def text_of(value: Value) -> str:
        if isinstance(value, ListValue):
            return f"[{', '.join(map(text_of, value.items))}]"
        if isinstance(value, StepRef):
            return letters[value.step - 1] + str(value).removeprefix(f"s{value.step}")
        return str(value)

    for index in listing:
        step = plan.steps[index]
        arguments = ", ".join(f"{name}={text_of(value)}" for name, value in step.arguments)
        yield f"{letters[index]} = {step.tool}({arguments})"


#: Share of tasks in which the plan does not need the removed tool.
UNNEEDED_TOOL_SHARE = 0.4


def provided_tools(subject: Subject, rng: random.Random) -> PromptAndAnswer | None:
    """Return the task to plan with only the provided tools; a needed tool may be missing.

    Either the toolbox lacks one tool, or an instruction allows all tools but one. The answer is the
    plan of the sub-queries that do not call this tool, or ``no_evidence`` if all call it. The task
    does not apply to a plan without tools, nor to a query for which other tools are right, too.
    """
    varied = subject.varied
    toolbox, plan = varied.request.toolbox, varied.plan
    needed = [name for name in dict.fromkeys(plan.tools) if name != NO_EVIDENCE.name]
    if not needed or varied.query.accept:
        return None
    others = [name for name in toolbox.names if name not in {*needed, NO_EVIDENCE.name}]
    is_unneeded = bool(others) and rng.random() < UNNEEDED_TOOL_SHARE
    removed = rng.choice(others if is_unneeded else needed)
    if rng.random() < 0.5:
        allowed = ", ".join(name for name in toolbox.names if name != removed)
        instruction, prompt = rng.choice(WORDINGS["allowed"]).format(tools=allowed), subject.prompt
    else:
        request = replace(varied.request, toolbox=_without_tool(toolbox, removed))
        instruction, prompt = rng.choice(WORDINGS["gone"]), render_prompt(request)
    answer = _plan_without(plan, removed) or Plan((Step(NO_EVIDENCE.name),))
    return _with_instruction(prompt, f"{instruction} {WORDINGS['rest']}"), str(answer)


def _plan_without(plan: Plan, tool: str) -> Plan | None:
    """Return the plan of the sub-queries that do not call a tool; ``None`` if all call it."""
    referred = {ref.step for step in plan.steps for ref in step.references()}
    last_steps = set(range(1, len(plan.steps) + 1)) - referred
    sub_queries = [with_dependencies(plan, last) for last in last_steps]
    kept = [steps for steps in sub_queries if all(plan.steps[n - 1].tool != tool for n in steps)]
    return sub_plan(plan, set().union(*kept))[0] if kept else None


def _without_tool(toolbox: Toolbox, removed: str) -> Toolbox:
    """Return the toolbox without a tool and without the examples whose plans call the tool."""
    tools = []
    for tool in toolbox:
        plan = None if tool.example is None else example_plan(tool.example)
        example = tool.example if plan and removed not in plan.tools else None
        if tool.name != removed:
            tools.append(replace(tool, example=example))
    return Toolbox(tools)


TaskName = Literal[
    "query_from_plan",
    "complete_plan",
    "identify_tools",
    "fill_step",
    "order_steps",
    "fill_parameters",
    "provided_tools",
]
TASK_NAMES: tuple[TaskName, ...] = get_args(TaskName)
#: The seven tasks of the paper, in the paper's order.
TASKS: Mapping[TaskName, Task] = {
    "query_from_plan": query_from_plan,
    "complete_plan": complete_plan,
    "identify_tools": identify_tools,
    "fill_step": fill_step,
    "order_steps": order_steps,
    "fill_parameters": fill_parameters,
    "provided_tools": provided_tools,
}


class TtgSettings(Section):
    """The tasks that are made from a query.

    Attributes:
        tasks_per_query: Number of tasks of each query including planning, as in the paper's Table
            3. With 0, the set has only generic instructions. With 1, planning is the only task.
            With 1.25, one query in four has a second task. A query has fewer tasks if fewer apply.
        tasks: The tasks, other than planning, from which the tasks of a query are drawn.
    """

    tasks_per_query: float = Field(default=3, ge=0, le=1 + len(TASK_NAMES))
    tasks: tuple[TaskName, ...] = TASK_NAMES


def task_examples(
    varied: VariedQuery, settings: TtgSettings, rng: random.Random, copy: int = 1
) -> list[TrainingExample]:
    """Return a query's training examples: planning as in serving, then other tasks."""
    count, fraction = divmod(settings.tasks_per_query, 1)
    if fraction and rng.random() < fraction:
        count += 1
    if not count:
        return []
    record = varied.query.record
    source = record.query if record.id is None else str(record.id)
    suffix = f"@{copy}" if copy > 1 else ""
    shared_head = _shared_head(varied.request.toolbox)
    prompt = Prompt(shared_head, render_tail(varied.request, varied.plan_cases))
    tasks: list[tuple[str, PromptAndAnswer]] = [(PLAN_TASK, (prompt, str(varied.plan)))]
    subject = Subject(varied, Prompt(shared_head, render_tail(varied.request, ())))
    names = list(dict.fromkeys(settings.tasks))
    for name in rng.sample(names, len(names)):
        if len(tasks) < count and (task := TASKS[name](subject, rng)) is not None:
            tasks.append((name, task))
    return [
        TrainingExample(f"{source}#{number}:{name}{suffix}", name, source, prompt, completion)
        for number, (name, (prompt, completion)) in enumerate(tasks)
    ]
