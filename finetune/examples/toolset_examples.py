"""Training examples of public tool-use sets, in the planner's own prompt."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from casewright.finetune.example import TrainingExample, without_duplicates
from casewright.finetune.examples.drawn_toolbox import DrawnToolbox
from casewright.finetune.examples.renaming import Renaming
from casewright.finetune.examples.tevo import pose
from casewright.finetune.examples.tevo_settings import TevoSettings
from casewright.finetune.examples.toolset import Toolset, ToolsetSource
from casewright.finetune.examples.toolset_groups import ToolsetGroups
from casewright.finetune.examples.ttg import TtgSettings, tasks_of
from casewright.finetune.instructions.readers.registry import READERS
from casewright.finetune.shots import Neighbours
from casewright.stores import Encoder
from casewright.stores.progress import progress_bar


def toolset_examples(
    sources: Sequence[ToolsetSource],
    tevo: TevoSettings,
    ttg: TtgSettings,
    encoder: Encoder,
    *,
    seed: int,
    measuring: Collection[str] = (),
) -> tuple[list[TrainingExample], list[dict[str, Any]]]:
    """Return the examples of all sets, and of each what a manifest says.

    Of TEvo, examples and plan cases vary, which are queries of the same set; names and words of
    the tools are as many as the sets have, and stay.

    Args:
        tevo: How many plan cases and examples prompts show, and how many share a toolbox.
        measuring: Questions that must not be learned from, as ``plain`` gives them.

    Raises:
        InputError: A set cannot be read, or has no query that can be used.
    """
    made: list[TrainingExample] = []
    told = []
    seen: set[str] = set()
    for number, source in enumerate(sources):
        rng = random.Random(f"{seed}:toolset:{number}")
        refused: Counter[str] = Counter()
        toolset = Toolset.read(source, measuring, seen, rng, refused)
        found = without_duplicates(_examples_of(toolset, source.copies, tevo, ttg, encoder, rng))
        made += found
        read = READERS[source.reader]
        # A part that was kept apart by questions and tools can still measure.
        kept = f" but {Path(source.measuring).name}" if source.measuring else ""
        told.append(
            {
                "reader": source.reader,
                "queries": len(toolset.queries),
                "tools": len(toolset.tools),
                "examples": len(found),
                "origin": read.origin,
                "licence": read.licence,
                "contaminates": [name + kept for name in read.contaminates],
                "refused": dict(sorted(refused.items())),
            }
        )
    return made, told


def _examples_of(
    toolset: Toolset,
    copies: int,
    tevo: TevoSettings,
    ttg: TtgSettings,
    encoder: Encoder,
    rng: random.Random,
) -> list[TrainingExample]:
    neighbours = None
    if tevo.shots or (tevo.enabled and tevo.examples):
        neighbours = Neighbours(toolset.queries, encoder)
    groups = ToolsetGroups(toolset, encoder, tevo.queries_per_toolbox)
    made = []
    count = len(toolset.queries) * copies
    with progress_bar(f"Making examples of {toolset.name}", count) as advance:
        for copy in range(1, copies + 1):
            for queries, toolbox in groups.deal(rng):
                drawn = DrawnToolbox(toolbox, Renaming(), changed=tevo.enabled)
                for one in pose(queries, drawn, tevo, {}, neighbours, rng):
                    for example in tasks_of(one, ttg, rng):
                        own = example.id if copy == 1 else f"{example.id}@{copy}"
                        made.append(replace(example, id=own))
                advance(len(queries))
    return made
