"""The shop's training examples with a fast encoder, and the tools in prompts and plans."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

from casewright.domains import find_domain
from casewright.domains.shopping.tools import shopping_toolbox
from casewright.finetune.example import TrainingExample
from casewright.finetune.examples.tevo import (
    PromptVariation,
    TevoSettings,
    VariedQuery,
    draw_toolbox,
    vary_prompts,
)
from casewright.finetune.examples.ttg import TASK_NAMES, TtgSettings, task_examples
from casewright.finetune.neighbours import Neighbours
from casewright.finetune.tool_pools import ToolPool, read_pools
from casewright.planner import AnnotatedQuery, plan_store
from casewright.tools import Toolbox, ToolSpec
from tests.support.encoders import HashingEncoder

ALL_TASKS = TtgSettings(tasks_per_query=1 + len(TASK_NAMES))
_TOOL = re.compile(r"^(\w+)\(.*\) -> ", re.MULTILINE)
_CALL = re.compile(r"^s\d+ = (\w+)\(", re.MULTILINE)


@cache
def shop_toolbox() -> Toolbox:
    """Return the shop's toolbox over empty stores, for planning only."""
    empty = plan_store([], HashingEncoder())
    return shopping_toolbox(defaultdict(lambda: empty))


@cache
def shop_pools() -> dict[str, ToolPool]:
    path = find_domain("shopping").tool_pools
    assert path is not None
    return read_pools(path, shop_toolbox())


def evolve(
    query: AnnotatedQuery,
    toolbox: Toolbox,
    settings: TevoSettings,
    pools: Mapping[str, ToolPool],
    neighbours: Neighbours | None,
    rng: random.Random,
    *,
    distractors: Sequence[ToolSpec] = (),
) -> VariedQuery:
    """Return a query with a prompt that TEvo varies."""
    variation = PromptVariation(toolbox, settings, pools, neighbours, distractors)
    return vary_prompts([query], draw_toolbox([query], variation, rng), variation, rng)[0]


def shop_examples(
    queries: Sequence[AnnotatedQuery], seed: int, settings: TevoSettings | None = None
) -> list[tuple[VariedQuery, list[TrainingExample]]]:
    """Return each query with a varied prompt, and its examples for all tasks of TTG."""
    rng = random.Random(seed)
    neighbours = Neighbours(queries, HashingEncoder())
    arguments = (settings or TevoSettings(), shop_pools(), neighbours, rng)
    examples = []
    for query in queries:
        varied = evolve(query, shop_toolbox(), *arguments)
        examples.append((varied, task_examples(varied, ALL_TASKS, rng)))
    return examples


def digest(seed: int, count: int) -> str:
    """Return a hash of the examples of the shop's first ``count`` queries."""
    examples_by_query = shop_examples(find_domain("shopping").queries()[:count], seed)
    rows = [example.to_row() for _, examples in examples_by_query for example in examples]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def tools_of(example: TrainingExample) -> list[str]:
    """Return the names of the tools that a prompt lists."""
    listed = example.prompt.head.partition("\nTools:\n")[2].partition("\n\nRules:\n")[0]
    return _TOOL.findall(listed)


def calls_of(text: str) -> set[str]:
    """Return the names of the tools that plans in a text call."""
    return set(_CALL.findall(text))
