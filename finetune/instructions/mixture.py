"""Draws a share of the sources' instructions for a training set, and adds constraints to some."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample
from casewright.finetune.instructions.data_sets import ColumnKind, read_data_set
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.rules import MAX_CONSTRAINTS, RuleEvolver
from casewright.finetune.section import Section, recipe_path

#: The name of the only reader; instructions' sources and reasons for refusals begin with the name.
READER = "hugging_face"


def _file_or_data_set(path: str, info: ValidationInfo) -> str:
    """Return the absolute path of a file if there is one, else the name of a data set."""
    resolved = recipe_path(info, path)
    return str(resolved) if resolved.exists() else path


class InstructionSource(Section):
    """An entry of ``[[data.instructions.sources]]``.

    Attributes:
        path: A data set's name; or a file or folder, relative to the recipe.
        limit: Maximum number of instructions. The seed decides which ones are used.
        columns: The columns' names by kind; by default, ``data_sets.columns_of`` finds them.
        licence: The licence, for the manifest.
    """

    reader: Literal["hugging_face"] = "hugging_face"
    path: Annotated[str, AfterValidator(_file_or_data_set)] = Field(min_length=1)
    limit: int | None = Field(default=None, ge=1)
    split: str = Field(default="train", min_length=1)
    columns: dict[ColumnKind, str] = Field(default_factory=dict)
    licence: str = "as the data set's page says"


class InstructionSettings(Section):
    """The generic instructions of a training set.

    Attributes:
        share: The share of the sources' instructions that is used. In Table 3 of the REAPER paper,
            60,000 of 147,000 instructions are 40 %.
        evolved: The share of the used instructions that get constraints.
        constraints: Maximum number of constraints in one instruction.
        max_characters: Maximum length of prompt and answer together.
    """

    sources: tuple[InstructionSource, ...] = ()
    share: float = Field(default=0.0, ge=0, le=1)
    evolved: float = Field(default=0.5, ge=0.0, le=1.0)
    constraints: int = Field(default=MAX_CONSTRAINTS, ge=1, le=MAX_CONSTRAINTS)
    max_characters: int = Field(default=6000, ge=1)

    @model_validator(mode="after")
    def _has_source(self) -> Self:
        if self.share and not self.sources:
            raise ValueError(
                f"share is {self.share:g}, and there are no instructions. Add "
                "[[data.instructions.sources]] with path, or set share = 0."
            )
        return self


#: Maximum number of attempts to evolve each instruction; each attempt draws new constraints.
_MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class InstructionSample:
    """Examples in random order, and the number of usable instructions in the sources."""

    examples: list[TrainingExample]
    pool_size: int


def instructions(
    settings: InstructionSettings, seed: int, *, refused: Counter[str] | None = None
) -> InstructionSample:
    """Return a share of the sources' instructions; equal arguments and files give equal results.

    If the sources have enough instructions, none is used both evolved and unchanged. ``refused``
    counts the omitted records by reason. ``InputError`` if a source cannot be read, or the
    sources have too few usable instructions.
    """
    refused = Counter() if refused is None else refused
    if not settings.share:
        return InstructionSample([], 0)
    rng = random.Random(f"instructions {seed}")
    pool = _read_pool(settings, rng, refused)
    if not pool:
        refusal = "".join(f" Left out: {n:,}, {why}." for why, n in refused.most_common(1))
        raise InputError(
            "The sources of instructions hold none that can be used. Add sources, or set "
            f"share = 0.{refusal}"
        )
    count = round(settings.share * len(pool))
    evolved_count = round(count * settings.evolved)
    rng.shuffle(pool)
    unchanged, others = pool[: count - evolved_count], pool[count - evolved_count :]
    by_id: dict[str, Instruction] = {}
    occurrences: Counter[str] = Counter()
    evolved = _evolve_in_order(settings, [*others, *unchanged], evolved_count, rng)
    for item in (*unchanged, *evolved):
        occurrences[item.id] += 1
        id_ = item.id if item.id not in by_id else f"{item.id}#{occurrences[item.id]}"
        by_id[id_] = replace(item, id=id_)
    examples = [item.to_example() for item in by_id.values()]
    rng.shuffle(examples)
    return InstructionSample(examples, len(pool))


def _read_pool(
    settings: InstructionSettings, rng: random.Random, refused: Counter[str]
) -> list[Instruction]:
    """Return the sources' usable instructions within the limits, each prompt once."""
    pool: list[Instruction] = []
    seen_keys: set[str] = set()

    def refuse(reason: str) -> None:
        refused[f"{READER}: {reason}"] += 1

    for source in settings.sources:
        usable = []
        for item in read_data_set(source.path, refuse, split=source.split, columns=source.columns):
            if item.characters > settings.max_characters:
                refuse("longer than max_characters")
            elif not item.is_readable:
                refuse("control characters, or no Unicode")
            elif item.key in seen_keys:
                refuse("a repeated prompt")
            else:
                seen_keys.add(item.key)
                usable.append(item)
        if source.limit is not None and source.limit < len(usable):
            usable = [usable[i] for i in sorted(rng.sample(range(len(usable)), source.limit))]
        pool += usable
    return pool


def _evolve_in_order(
    settings: InstructionSettings, pool: Sequence[Instruction], count: int, rng: random.Random
) -> list[Instruction]:
    """Evolve the pool's instructions in order, until ``count`` results have different prompts."""
    evolver = RuleEvolver(rng, settings.constraints)
    evolved: dict[str, Instruction] = {}
    for instruction in chain.from_iterable(repeat(pool, _MAX_ATTEMPTS)):
        if len(evolved) == count:
            break
        candidate = evolver.evolve(instruction)
        if candidate is not None and candidate.characters <= settings.max_characters:
            evolved.setdefault(candidate.key, candidate)
    if len(evolved) < count:
        raise InputError(
            f"{count:,} evolved instructions are needed, and only {len(evolved):,} could be made. "
            "Lower share or evolved, or add sources."
        )
    return list(evolved.values())
