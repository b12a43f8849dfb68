"""Public tool-use sets as sources of episodes for the plan parser."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from casewright.finetune.examples.toolset import Toolset, ToolsetGroups, ToolsetSource
from casewright.finetune.parser.episodes import MAX_GROUP, Source
from casewright.planner import AnnotatedQuery
from casewright.planner.plan import text_literals
from casewright.planner.spans import is_span
from casewright.stores import Encoder
from casewright.tools import Toolbox

#: For each public set: a key of ``READERS``, the path, and the test set's path ("" for none).
SETS = (
    ("sealtools", "sealtools/dev-dev.jsonl", "sealtools/test_out_domain-dev.jsonl"),
    ("sealtools", "sealtools/test_in_domain-dev.jsonl", "sealtools/test_out_domain-dev.jsonl"),
    ("toolalpaca", "toolalpaca", ""),
)


def public_sources(folder: Path, encoder: Encoder, rng: random.Random) -> Iterator[Source]:
    """Yield sources that lack the tools of test sets; messages contain the texts of their plans.

    ``folder`` is the folder of the paths in ``SETS``. ``InputError`` if a set cannot be read.
    """
    seen_keys: set[str] = set()
    for reader, path, test_path in SETS:
        test_set = str(folder / test_path) if test_path else ""
        source = ToolsetSource(reader=reader, path=str(folder / path), measuring=test_set)
        toolset = Toolset.read(source, (), seen_keys, rng, Counter())
        groups = ToolsetGroups(toolset, encoder, MAX_GROUP).draw_groups(rng)
        for index, (queries, toolbox) in enumerate(groups):
            if verbatim := [query for query in queries if _is_verbatim(query, toolbox)]:
                yield Source(f"{reader}-{index}", toolbox, {}, verbatim)


def _is_verbatim(query: AnnotatedQuery, toolbox: Toolbox) -> bool:
    """Return True if every text of the plan is a parameter's choice or a span of the message."""
    choices = {text for tool in toolbox for p in tool.parameters for text in p.choices}
    texts = {text for _, _, text in text_literals(query.plan)}
    return all(is_span(text, query.query) for text in texts - choices)
