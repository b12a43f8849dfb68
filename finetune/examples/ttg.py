"""Tool-Task Generator (TTG): secondary tasks about a query's plan, beside planning itself.

REAPER (Joshi et al. 2024, section on the Tool-Task Generator). Every task that writes a plan asks
for a whole one, under the planner's own role; what is to be done stands in the prompt's tail.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal, get_args

from pydantic import Field

from casewright.errors import PlanError
from casewright.finetune.example import PLAN_TASK, TrainingExample
from casewright.finetune.examples.tevo import Evolved
from casewright.finetune.section import Section
from casewright.planner import (
    ListValue,
    Plan,
    PlanRequest,
    Prompt,
    Step,
    StepRef,
    is_span,
    parse_plan,
    render_prompt,
)
from casewright.planner.asks import feeders, restricted
from casewright.planner.literals import text_literals
from casewright.planner.plan import Value
from casewright.planner.prompt import ROLE, render_head, render_tail
from casewright.tools import NO_EVIDENCE, Toolbox, ToolExample, ToolSpec


@dataclass(frozen=True, slots=True)
class Posed:
    """A task posed for one query: its prompt, and the one answer that is right."""

    prompt: Prompt
    completion: str


@dataclass(frozen=True, slots=True)
class Subject:
    """A query that tasks are posed about, and the planner's prompt for it without plan cases."""

    evolved: Evolved
    prompt: Prompt

    @classmethod
    def of(cls, evolved: Evolved) -> Subject:
        """Render the planner's prompt."""
        return cls(evolved, prompt_of(evolved.request))

    @property
    def context(self) -> str:
        """The line of the prompt that shows the context; empty where there is none."""
        # It is JSON, which holds no line break.
        context, question, _ = self.prompt.tail.partition("\nQuestion: ")
        return context if question else ""


#: Poses a task, or returns ``None`` where it does not apply to the query.
Task = Callable[[Subject, random.Random], Posed | None]

_FILE = Path(__file__).parent / "wordings.toml"
#: How tasks are posed, by what is said.
WORDINGS: Mapping[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
#: What hides a part of a plan.
MASKS = ("[MASK]", "___", "<missing>", "???")


# A toolbox cannot change, so that it is known by its identity. A few are enough: queries that
# share one come one after the other.
@lru_cache(maxsize=16)
def shared_head(toolbox: Toolbox, role: str = ROLE) -> str:
    """Return what ``render_head`` renders, the same object for the same toolbox."""
    return render_head(toolbox, role)


def prompt_of(request: PlanRequest, shots: Sequence[ToolExample] = ()) -> Prompt:
    """Return the prompt that serving renders for a request, with plan cases in its tail."""
    return Prompt(shared_head(request.toolbox), render_tail(request, shots))


def instructed(prompt: Prompt, instruction: str, given: str = "") -> Prompt:
    """Return the planner's prompt with an instruction, and what it is about, before its tail."""
    return Prompt(prompt.head, "\n\n".join(filter(None, (instruction, given, prompt.tail))))


def query_from_plan(subject: Subject, rng: random.Random) -> Posed | None:
    """Write the query from the plan.

    Many questions have one plan. The prompt therefore quotes what the plan's literals took from
    the question, and a plan that took nothing from it does not tell what was asked: the task does
    not apply. The answer is the annotated question, one of those that are right.
    """
    evolved = subject.evolved
    quoted = _quoted(evolved)
    if not quoted:
        return None
    shown = ", ".join(json.dumps(text, ensure_ascii=False) for text in quoted)
    instruction = f"{rng.choice(WORDINGS['query'])} {WORDINGS['quoted'].format(shown)}"
    prompt = _prompt(
        subject, WORDINGS["query_role"], instruction, f"Plan:\n{evolved.plan}\nQuestion:"
    )
    return Posed(prompt, evolved.query.query)


def _quoted(evolved: Evolved) -> list[str]:
    question = evolved.query.query
    texts = [text for _, _, text in text_literals(evolved.plan)]
    return [text for text in dict.fromkeys(texts) if is_span(text, question)]


def identify_tools(subject: Subject, rng: random.Random) -> Posed | None:
    """Identify the tools that the plan calls, each once, in the order of the toolbox.

    That order is asked for since steps that do not need each other have none of their own.
    """
    evolved = subject.evolved
    instruction = f"{rng.choice(WORDINGS['tools'])} {WORDINGS['tools_form']}"
    asked = f"Question: {evolved.query.query}\nTools:"
    names = [name for name in evolved.request.toolbox.names if name in set(evolved.plan.tools)]
    return Posed(_prompt(subject, WORDINGS["tools_role"], instruction, asked), ", ".join(names))


def _prompt(subject: Subject, role: str, instruction: str, asked: str) -> Prompt:
    tail = "\n\n".join(filter(None, (instruction, subject.context, asked)))
    return Prompt(shared_head(subject.evolved.request.toolbox, role), tail)


def complete_plan(subject: Subject, rng: random.Random) -> Posed | None:
    """Complete a plan of which the first steps are given; one of a single step has none to give."""
    lines = str(subject.evolved.plan).split("\n")
    if len(lines) < 2:
        return None
    begun = "\n".join(lines[: rng.randrange(1, len(lines))])
    given = f"Beginning of the plan:\n{begun}"
    return _posed(subject, rng.choice(WORDINGS["begun"]), given)


def fill_step(subject: Subject, rng: random.Random) -> Posed | None:
    """Fill a masked step; where there is no other step, that would be planning itself."""
    lines = str(subject.evolved.plan).split("\n")
    if len(lines) < 2:
        return None
    mask = rng.choice(MASKS)
    index = rng.randrange(len(lines))
    lines[index] = f"s{index + 1} = {mask}"
    given = "Plan with a gap:\n" + "\n".join(lines)
    return _posed(subject, rng.choice(WORDINGS["lost_step"]).format(mask=mask), given)


def fill_parameters(subject: Subject, rng: random.Random) -> Posed | None:
    """Fill masked parameters: one at least.

    Two calls of one tool could exchange their values where both are hidden: of a parameter of one
    tool, values that differ are never hidden together.
    """
    plan = subject.evolved.plan
    places = [
        (number, step.tool, name, value)
        for number, step in enumerate(plan.steps, 1)
        for name, value in step.arguments
    ]
    if not places:
        return None
    mask = rng.choice(MASKS)
    chosen: dict[tuple[str, str], Value] = {}
    hidden = set()
    for number, tool, name, value in rng.sample(places, rng.randint(1, len(places))):
        if chosen.setdefault((tool, name), value) == value:
            hidden.add((number, name))
    lines = []
    for number, step in enumerate(plan.steps, 1):
        shown = ", ".join(
            f"{name}={mask if (number, name) in hidden else value}"
            for name, value in step.arguments
        )
        lines.append(f"s{number} = {step.tool}({shown})")
    given = "Plan with gaps:\n" + "\n".join(lines)
    return _posed(subject, rng.choice(WORDINGS["lost_values"]).format(mask=mask), given)


def _posed(subject: Subject, instruction: str, given: str) -> Posed:
    return Posed(instructed(subject.prompt, instruction, given), str(subject.evolved.plan))


#: How often steps are shuffled before the simplest listing is taken.
TRIES = 20


def order_steps(subject: Subject, rng: random.Random) -> Posed | None:
    """Put shuffled steps in order.

    Nothing but the references between them says what order steps must have: two that do not need
    each other may stand either way. The prompt therefore says which comes first, the one listed
    first, and steps are listed in such a way that this rule gives the plan as annotated. There is
    such a listing, other than the plan itself, where a step needs the one directly before it.
    """
    plan = subject.evolved.plan
    order = _listing(plan, rng)
    if order is None:
        return None
    lines = _lettered(plan, order)
    given = "Steps:\n" + "\n".join(lines)
    instruction = f"{rng.choice(WORDINGS['order'])} {WORDINGS['ties']}"
    return Posed(instructed(subject.prompt, instruction, given), str(plan))


def first_ready(plan: Plan, order: Sequence[int]) -> list[int]:
    """Return steps in the order in which they run: always the first listed that may come next.

    Args:
        plan: The plan, whose steps count from 0 here.
    """
    needs = [{ref.step - 1 for ref in step.references()} for step in plan.steps]
    waiting = list(order)
    done: list[int] = []
    while waiting:
        step = next(step for step in waiting if needs[step].issubset(done))
        waiting.remove(step)
        done.append(step)
    return done


def _listing(plan: Plan, rng: random.Random) -> list[int] | None:
    """Return another order of the steps that the rule turns into the plan's own."""
    own = list(range(len(plan.steps)))
    fed = [
        number
        for number in own[1:]
        if any(ref.step == number for ref in plan.steps[number].references())
    ]
    if not fed or len(own) > len(ascii_uppercase):
        return None
    for _ in range(TRIES):
        order = rng.sample(own, len(own))
        if order != own and first_ready(plan, order) == own:
            return order
    # A step that is listed before the one that it needs has to wait for it, and for nothing else.
    later = rng.choice(fed)
    own[later - 1], own[later] = later, later - 1
    return own


def _lettered(plan: Plan, order: Sequence[int]) -> list[str]:
    letters = {step: ascii_uppercase[position] for position, step in enumerate(order)}

    def shown(value: Value) -> str:
        match value:
            case StepRef(step, field, index):
                position = f"[{index}]" if index else ""
                return f"{letters[step - 1]}{position}.{field}"
            case ListValue(items):
                return "[" + ", ".join(map(shown, items)) + "]"
        return str(value)

    def call(step: Step) -> str:
        return f"{step.tool}({', '.join(f'{name}={shown(v)}' for name, v in step.arguments)})"

    return [f"{letters[number]} = {call(plan.steps[number])}" for number in order]


#: How often every tool that the plan needs is provided: not every such instruction takes one away.
ALL_PROVIDED = 0.4


def provided_tools(subject: Subject, rng: random.Random) -> Posed | None:
    """Use only the provided tools, whether or not that is all that the plan needs.

    A tool is taken away, out of the toolbox or by an instruction that lists those allowed. The
    answer is the plan without the asks that needed it, and ``no_evidence`` where nothing else was
    asked: the prompt says so, since a question may often be answered by a makeshift. It does not
    apply to a plan that needs no tool, nor where other tools too are annotated as right.
    """
    evolved = subject.evolved
    toolbox, plan = evolved.request.toolbox, evolved.plan
    needed = [name for name in dict.fromkeys(plan.tools) if name != NO_EVIDENCE.name]
    if not needed or evolved.query.accept:
        return None
    others = [name for name in toolbox.names if name not in {*needed, NO_EVIDENCE.name}]
    # Where there is no other tool, an instruction that takes away none would say nothing.
    spared = bool(others) and rng.random() < ALL_PROVIDED
    gone = rng.choice(others if spared else needed)
    if rng.random() < 0.5:
        left = ", ".join(name for name in toolbox.names if name != gone)
        instruction, prompt = rng.choice(WORDINGS["allowed"]).format(tools=left), subject.prompt
    else:
        request = replace(evolved.request, toolbox=_reduced(toolbox, gone))
        instruction, prompt = rng.choice(WORDINGS["gone"]), render_prompt(request)
    answer = without(plan, gone) or Plan((Step(NO_EVIDENCE.name),))
    return Posed(instructed(prompt, f"{instruction} {WORDINGS['rest']}"), str(answer))


def without(plan: Plan, gone: str) -> Plan | None:
    """Return what is left of a plan without a tool, or ``None`` where that is nothing.

    A step whose results no other needs answers something that was asked; it is left, with the
    steps that it feeds on, where none of them calls it.
    """
    fed = {ref.step for step in plan.steps for ref in step.references()}
    asks = [feeders(plan, last) for last in set(range(1, len(plan.steps) + 1)) - fed]
    kept = [own for own in asks if all(plan.steps[number - 1].tool != gone for number in own)]
    return restricted(plan, set().union(*kept)) if kept else None


def _reduced(toolbox: Toolbox, gone: str) -> Toolbox:
    """Return the toolbox without a tool and without the examples that call it."""

    def clean(tool: ToolSpec) -> ToolSpec:
        if tool.example is None:
            return tool
        try:
            calls = parse_plan(tool.example.plan).tools
        except PlanError:
            return replace(tool, example=None)
        return replace(tool, example=None) if gone in calls else tool

    return Toolbox(clean(tool) for tool in toolbox if tool.name != gone)


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
#: The paper's seven, in its order.
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
    """The tasks that are made of a query.

    Attributes:
        tasks_per_query: How many, planning itself included, as the paper's Table 3 counts: 0 is no
            planning data at all (instructions alone), 1 planning alone, 1.25 a second task for
            every fourth query, drawn. A query that fewer tasks apply to has fewer.
        tasks: The secondary tasks to draw from.
    """

    tasks_per_query: float = Field(default=3, ge=0, le=1 + len(TASK_NAMES))
    tasks: tuple[TaskName, ...] = TASK_NAMES


def tasks_of(evolved: Evolved, settings: TtgSettings, rng: random.Random) -> list[TrainingExample]:
    """Make training examples of a query: planning first, then different secondary tasks.

    Of 0 tasks there is none. Planning has the prompt that serving renders. What is drawn depends
    on the state of ``rng`` and the other arguments alone.
    """
    wanted, part = divmod(settings.tasks_per_query, 1)
    if part and rng.random() < part:
        wanted += 1
    if not wanted:
        return []
    given = evolved.query.record.id
    source = evolved.query.query if given is None else str(given)
    prompt = prompt_of(evolved.request, evolved.shots)
    posed: list[tuple[str, Posed]] = [(PLAN_TASK, Posed(prompt, str(evolved.plan)))]
    subject = Subject.of(evolved)
    names = list(dict.fromkeys(settings.tasks))
    for name in rng.sample(names, len(names)):
        if len(posed) >= wanted:
            break
        if (task := TASKS[name](subject, rng)) is not None:
            posed.append((name, task))
    return [
        TrainingExample(f"{source}#{number}:{name}", name, source, task.prompt, task.completion)
        for number, (name, task) in enumerate(posed)
    ]
