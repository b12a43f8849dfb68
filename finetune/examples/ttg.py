"""Tool-Task Generator (TTG): secondary tasks about a query's plan, beside planning itself.

REAPER (Joshi et al. 2024, section on the Tool-Task Generator). Every task that writes a plan asks
for a whole one, under the planner's own role; what is to be done stands in the prompt's tail.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Literal, get_args

from pydantic import Field

from casewright.finetune.example import PLAN_TASK, TrainingExample
from casewright.finetune.examples.plan_tasks import (
    complete_plan,
    fill_parameters,
    fill_step,
    order_steps,
    provided_tools,
)
from casewright.finetune.examples.reading_tasks import identify_tools, query_from_plan
from casewright.finetune.examples.secondary import Posed, Subject, Task, prompt_of
from casewright.finetune.examples.tevo import Evolved
from casewright.finetune.section import Section

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
    """Which tasks are made of a query.

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
