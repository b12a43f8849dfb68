"""Messages to tools of one's own: a folder with tools, messages to learn from and to measure on."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright.bench.unseen_sets import UnseenSet
from casewright.domains.python_file import object_of, own_code
from casewright.errors import InputError
from casewright.finetune.evaluation import EvaluationItem, items_of, plan_class
from casewright.planner import AnnotatedQuery, read_annotated
from casewright.tools import Toolbox

TOOLS, LEARN, TEST = "tools.py", "learn.jsonl", "test.jsonl"


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """A toolbox with messages.

    Attributes:
        name: The folder's.
        toolbox: The tools.
        learn: Annotated messages that planners may know.
        items: Messages that are measured on.
    """

    name: str
    toolbox: Toolbox
    learn: Sequence[AnnotatedQuery]
    items: Sequence[EvaluationItem]

    def known(self, cases: int, seed: int) -> UnseenSet:
        """Return the set in which planners know so many of the messages to learn from."""
        taught = stratified(self.learn, cases, seed)
        classes = [(item.query.label,) for item in self.items]
        key = self.toolbox.fingerprint()
        return UnseenSet(self.name, self.items, classes, range(len(self.items)), {key: taught})


def own_folder(folder: Path) -> OwnFolder:
    """Return the data of a folder with ``tools.py``, which is run, and two files of messages.

    ``toolbox`` in ``tools.py`` is a ``Toolbox``, or a function that returns one.

    Raises:
        InputError: A file is not there or cannot be read, or a plan is not valid for the tools.
    """
    name = f"{folder / TOOLS}:toolbox"
    toolbox: Any = object_of(name, "--data", "a Toolbox, or a function that returns one")
    if not isinstance(toolbox, Toolbox):
        with own_code(f"--data {name}"):
            toolbox = toolbox()
    if not isinstance(toolbox, Toolbox):
        raise InputError(f"--data {name} is a {type(toolbox).__name__}. Name a Toolbox so.")
    parts = []
    for name in (LEARN, TEST):
        try:
            parts.append(items_of(read_annotated(folder / name), toolbox))
        except InputError as error:
            raise InputError(f"--data {folder / name}: {error}") from error
    learn, test = parts
    if not test:
        raise InputError(f"--data {folder / TEST} holds no message to measure on.")
    return OwnFolder(folder.resolve().name, toolbox, [item.query for item in learn], test)


def stratified(queries: Sequence[AnnotatedQuery], count: int, seed: int) -> list[AnnotatedQuery]:
    """Return queries drawn by class in their shares; fewer are among those of a greater count.

    Args:
        queries: To draw from.
        count: How many; all of them where there are no more.
        seed: Of the draw.
    """
    rng = random.Random(seed)
    by_class: dict[str, list[AnnotatedQuery]] = defaultdict(list)
    for query in queries:
        by_class[query.label or plan_class(query.plan)].append(query)
    spread = []
    for members in by_class.values():
        rng.shuffle(members)
        start = rng.random()
        spread += [((n + start) / len(members), query) for n, query in enumerate(members)]
    return [query for _, query in sorted(spread, key=lambda pair: pair[0])[:count]]
