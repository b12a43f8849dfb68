"""Training examples of the corpus of toolboxes: TEvo and TTG, toolbox by toolbox."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import Field

from casewright.finetune.corpus import (
    CorpusToolbox,
    read_corpus,
    training_toolboxes,
)
from casewright.finetune.example import TrainingExample, without_duplicates
from casewright.finetune.examples.composing import joined
from casewright.finetune.examples.guests import guests, strangers
from casewright.finetune.examples.query_pool import queries_hash
from casewright.finetune.examples.shared_toolboxes import Posing, posed
from casewright.finetune.examples.tevo_settings import TevoSettings
from casewright.finetune.examples.ttg import TtgSettings, tasks_of
from casewright.finetune.section import Section
from casewright.finetune.shots import Neighbours
from casewright.planner import AnnotatedQuery
from casewright.stores import Encoder
from casewright.stores.progress import progress_bar
from casewright.tools import Toolbox


class CorpusSettings(Section):
    """``[data.corpus]``: toolboxes of other fields beside the one that is planned for.

    Attributes:
        copies: How often each of their messages is posed; 0 takes none.
        guests: For each toolbox, messages of others that bring their tools along.
        strangers: For each toolbox, messages of others that no tool of it answers.
        composed: For each toolbox, messages of it that are joined to such with several asks.
        domain_guests: Guests of the toolbox that is planned for.
        domain_strangers: Strangers of the toolbox that is planned for.
        validation: Messages of each toolbox for validation that are validated with.
    """

    copies: int = Field(default=0, ge=0, le=1000)
    guests: int = Field(default=6, ge=0)
    strangers: int = Field(default=3, ge=0)
    composed: int = Field(default=0, ge=0)
    domain_guests: int = Field(default=0, ge=0)
    domain_strangers: int = Field(default=0, ge=0)
    validation: int = Field(default=6, ge=0)


@dataclass(frozen=True, slots=True)
class CorpusExamples:
    """What is made of the corpus.

    Attributes:
        validation: Of those for validation, under the prompts that serving renders.
    """

    train: list[TrainingExample]
    validation: list[TrainingExample]
    told: dict[str, Any]


def among(
    toolbox: Toolbox, settings: CorpusSettings, encoder: Encoder, seed: int
) -> list[AnnotatedQuery]:
    """Return the guests and strangers of the toolbox that is planned for."""
    if not (settings.domain_guests or settings.domain_strangers):
        return []
    rng = random.Random(f"{seed}:domain guests")
    boxes = training_toolboxes()
    return [
        *guests(toolbox, boxes, settings.domain_guests, rng),
        *strangers(toolbox, boxes, settings.domain_strangers, encoder, rng),
    ]


def corpus_examples(
    settings: CorpusSettings,
    tevo: TevoSettings,
    ttg: TtgSettings,
    encoder: Encoder,
    *,
    seed: int,
) -> CorpusExamples:
    """Return the examples of all toolboxes."""
    if not settings.copies:
        return CorpusExamples([], [], {})
    boxes = training_toolboxes()
    train: list[TrainingExample] = []
    taken: list[AnnotatedQuery] = []
    with progress_bar("Making examples of the corpus", len(boxes)) as advance:
        for place, box in enumerate(boxes):
            rng = random.Random(f"{seed}:corpus:{box.name}")
            others = [*boxes[:place], *boxes[place + 1 :]]
            queries = [
                *box.queries,
                *guests(box.toolbox, others, settings.guests, rng),
                *strangers(box.toolbox, others, settings.strangers, encoder, rng),
                *joined(box.queries, settings.composed, rng),
            ]
            taken += queries
            train += _examples(box, queries, settings.copies, tevo, ttg, encoder, seed)
            advance(1)
    plain = tevo.model_copy(update={"enabled": False})
    alone = TtgSettings(tasks_per_query=1)
    held = []
    for box in read_corpus("validation"):
        count = min(settings.validation, len(box.queries))
        chosen = random.Random(f"{seed}:held:{box.name}").sample(box.queries, count)
        held += _examples(box, chosen, 1, plain, alone, encoder, seed)
    told = {
        "toolboxes": len(boxes),
        "queries": len(taken),
        "examples": len(train),
        "validation": len(held),
        "sha256": hashlib.sha256(queries_hash(taken).encode()).hexdigest(),
    }
    return CorpusExamples(train, held, told)


def _examples(
    box: CorpusToolbox,
    queries: Sequence[AnnotatedQuery],
    copies: int,
    tevo: TevoSettings,
    ttg: TtgSettings,
    encoder: Encoder,
    seed: int,
) -> list[TrainingExample]:
    # Plan cases of a prompt are other messages of its toolbox.
    posing = Posing(box.toolbox, tevo, box.pools, Neighbours([*box.queries, *queries], encoder))
    made = []
    for copy, evolved, rng in posed(queries, posing, encoder, seed=seed, copies=copies):
        for one in evolved:
            for example in tasks_of(one, ttg, rng):
                # Guests of two toolboxes may be one message.
                made.append(replace(example, id=f"{box.name}:{example.id}@{copy}"))
    return without_duplicates(made)
