"""What a plan parser is trained on: toolboxes under other names, anew in each pass."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence

from casewright.finetune.corpus import CorpusToolbox
from casewright.finetune.parser.episodes import Source, varied

#: Names and descriptions that a toolbox is seen under, its own included: each is encoded once.
VARIANTS = 12


def drawing(
    boxes: Sequence[CorpusToolbox], others: Sequence[Source] = ()
) -> Callable[[random.Random], list[Source]]:
    """Return what draws the sources of a pass: every toolbox once, under one of its variants.

    Args:
        boxes: Toolboxes for training.
        others: Further sources, such as parts of a domain's queries with its toolbox.
    """
    own = [Source(box.name, box.toolbox, box.pools, box.queries) for box in boxes]
    made: dict[tuple[int, int], Source] = {}

    def draw(rng: random.Random) -> list[Source]:
        found = []
        for place, source in enumerate([*own, *others]):
            key = place, rng.randrange(VARIANTS)
            if key not in made:
                made[key] = varied(source, key[1])
            found.append(made[key])
        return found

    return draw


def digest(boxes: Sequence[CorpusToolbox]) -> str:
    """Return a hash of what can be learned of toolboxes: tools, messages and plans."""
    made = hashlib.sha256()
    for box in boxes:
        made.update(f"{box.name} {box.toolbox.fingerprint()}".encode())
        for query in box.queries:
            made.update(f"{query.query}\n{query.plan}\n".encode())
    return made.hexdigest()[:16]


def parts_of(source: Source, count: int, rng: random.Random) -> list[Source]:
    """Deal a source's messages to so many sources of the same toolbox."""
    order = rng.sample(source.queries, len(source.queries))
    parts = [order[start::count] for start in range(count)]
    return [
        Source(f"{source.name}-{place}", source.toolbox, source.pools, part)
        for place, part in enumerate(parts)
    ]
