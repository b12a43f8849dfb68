"""Instructions for a training set: a share of the sources', deduplicated, some of it evolved."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers.calls import Refuse
from casewright.finetune.instructions.readers.hugging_face import check_fields, read_hugging_face
from casewright.finetune.instructions.readers.registry import HUGGING_FACE, READERS, reader
from casewright.finetune.instructions.rules import MOST_CONSTRAINTS, RuleEvolver
from casewright.finetune.section import Section, beside, folder_of, looked_for
from casewright.planner import AnnotatedQuery
from casewright.tools import Toolbox

T = TypeVar("T")


def _resolved(path: str, info: ValidationInfo) -> str:
    """Return the path of a source's files, relative to the recipe, or a data set's name."""
    if info.context is None or not path:
        return path
    resolved, name = beside(info, path), info.data.get("reader", HUGGING_FACE)
    if resolved.exists():
        return str(resolved)
    if name != HUGGING_FACE and looked_for(info):
        raise ValueError(
            f'There is nothing at "{path}" in {folder_of(info)}. Give {READERS[name].files}, of '
            f"{READERS[name].origin}: beside the recipe, or in the folder of --sets."
        )
    return path


#: The files that a reader reads, relative to the recipe; or a data set's name.
SourcePath = Annotated[str, AfterValidator(_resolved)]


class InstructionSource(Section):
    """An entry of ``[[data.instructions.sources]]``.

    Attributes:
        reader: ``hugging_face``, ``toolalpaca``, ``bfcl`` or ``sealtools``.
        path: A file or folder, or a data set's name for ``hugging_face``.
        limit: Most instructions to take, drawn by the seed; all by default.
        split: The split of a data set by name.
        columns: For a data set by name, the columns of its ``prompt``, ``input`` and ``answer``, or
            of its ``messages``.
        licence: The licence of a data set by name; kept in the manifest.
    """

    reader: str
    path: SourcePath = Field(min_length=1)
    limit: int | None = Field(default=None, ge=1)
    split: str = Field(default="train", min_length=1)
    columns: dict[str, str] = Field(default_factory=dict)
    licence: str = ""

    @field_validator("reader")
    @classmethod
    def _known(cls, name: str) -> str:
        reader(name)
        return name

    @model_validator(mode="after")
    def _own_settings(self) -> Self:
        named = {"split", "columns", "licence"} & self.model_fields_set
        if named and self.reader != HUGGING_FACE:
            raise ValueError(
                f"{sorted(named)} are settings of the reader {HUGGING_FACE}, not of {self.reader}."
            )
        check_fields(self.columns)
        return self


class InstructionSettings(Section):
    """The generic instructions beside the plans.

    Attributes:
        share: The share of the sources' instructions that is taken, as in the paper's Table 3
            (60,000 of 147,000 are 40 %).
        evolved: The share of these that gets constraints.
        constraints: Most constraints by rules in one instruction.
        length_bins: Number of ranges of prompt length, which have equal shares.
        max_characters: Longest prompt and answer together.
    """

    sources: tuple[InstructionSource, ...] = ()
    share: float = Field(default=0.0, ge=0, le=1)
    evolved: float = Field(default=0.5, ge=0.0, le=1.0)
    constraints: int = Field(default=MOST_CONSTRAINTS, ge=1, le=MOST_CONSTRAINTS)
    length_bins: int = Field(default=8, ge=1, le=1000)
    max_characters: int = Field(default=6000, ge=1)

    @model_validator(mode="after")
    def _some_source(self) -> Self:
        if self.share and not self.sources:
            raise ValueError(
                f"share is {self.share:g}, and there are no instructions. Add "
                "[[data.instructions.sources]] with reader and path, or set share = 0."
            )
        return self


#: Most times that an instruction is evolved, with other constraints each time.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Taken:
    """Instructions in random order, and the number in the sources (0 if none were read)."""

    examples: list[TrainingExample]
    pool: int


def instructions(
    settings: InstructionSettings,
    seed: int,
    *,
    refused: Counter[str] | None = None,
) -> Taken:
    """Return a share of the sources' instructions, the same for the same settings, files and seed.

    While there are enough, evolved instructions come from others than the plain ones. The
    share is as in REAPER (Joshi et al. 2024, Table 3).

    Args:
        refused: Counter of the reasons why records were left out; updated.

    Raises:
        InputError: A source cannot be read, or has too few usable instructions.
    """
    refused = Counter() if refused is None else refused
    if not settings.share:
        return Taken([], 0)
    rng = random.Random(f"instructions {seed}")
    pool = _pool(settings, rng, refused)
    if not pool:
        raise InputError(
            "The sources of instructions hold none that can be used. Add sources, or set "
            "share = 0." + "".join(f" Left out: {n:,}, {why}." for why, n in refused.most_common(1))
        )
    count = round(settings.share * len(pool))
    wanted = round(count * settings.evolved)
    plain = equal_shares(pool, settings.length_bins, count - wanted, rng)
    taken = {item.id for item in plain}
    rest = [item for item in pool if item.id not in taken]
    evolved = _evolved(settings, [rest, plain], wanted, rng) if wanted else []
    chosen = _with_unique_ids([*plain, *evolved])
    rng.shuffle(chosen)
    return Taken([item.to_example() for item in chosen], len(pool))


def tool_queries(
    name: str, path: Path, refused: Counter[str] | None = None
) -> list[tuple[AnnotatedQuery, Toolbox]]:
    """Return the queries of a reader's data, with their gold plans and toolboxes.

    Args:
        name: A reader of plans: ``toolalpaca``, ``bfcl`` or ``sealtools``.
        refused: Counter of the reasons why records were left out; updated.

    Raises:
        InputError: The reader is unknown, or its data cannot be read.
    """
    items = reader(name).read(path, _counting(Counter() if refused is None else refused, name))
    return [(item.planned.query, item.planned.toolbox) for item in items if item.planned]


def _pool(
    settings: InstructionSettings, rng: random.Random, refused: Counter[str]
) -> list[Instruction]:
    """Return the sources' usable instructions, each prompt once, within the limits."""
    pool: list[Instruction] = []
    seen: set[str] = set()
    for source in settings.sources:
        refuse = _counting(refused, source.reader)
        usable = []
        for item in _read(source, refuse):
            if item.characters > settings.max_characters:
                refuse("longer than max_characters")
            elif not item.readable:
                refuse("control characters, or no Unicode")
            elif (key := item.key()) in seen:
                refuse("a prompt that was there before")
            else:
                seen.add(key)
                usable.append(item)
        if source.limit is not None and source.limit < len(usable):
            usable = [usable[i] for i in sorted(rng.sample(range(len(usable)), source.limit))]
        pool += usable
    return _with_unique_ids(pool)


def _read(source: InstructionSource, refuse: Refuse) -> Iterator[Instruction]:
    path = Path(source.path).expanduser()
    if source.reader != HUGGING_FACE:
        return reader(source.reader).read(path, refuse)
    name = path if path.exists() else source.path
    return read_hugging_face(name, refuse, split=source.split, columns=source.columns)


def _counting(refused: Counter[str], name: str) -> Refuse:
    return lambda why: refused.update([f"{name}: {why}"])


def _evolved(
    settings: InstructionSettings,
    pools: Sequence[Sequence[Instruction]],
    count: int,
    rng: random.Random,
) -> list[Instruction]:
    evolved: list[Instruction] = []
    evolver = RuleEvolver(rng, settings.constraints)
    seen: set[str] = set()
    for pool in [pool for _ in range(_ROUNDS) for pool in pools]:
        groups = length_ranges(pool, settings.length_bins, rng)
        for instruction in in_turns([filter(None, map(evolver.evolve, group)) for group in groups]):
            if len(evolved) == count:
                return evolved
            if instruction.key() not in seen and instruction.characters <= settings.max_characters:
                seen.add(instruction.key())
                evolved.append(instruction)
    if len(evolved) < count:
        raise InputError(
            f"{count:,} evolved instructions are asked for, and {len(evolved):,} could be made. "
            "Lower share or evolved, or add sources."
        )
    return evolved


def _with_unique_ids(instructions: Sequence[Instruction]) -> list[Instruction]:
    """Return the same with a number added to each repeated id."""
    seen: Counter[str] = Counter()
    unique = []
    for item in instructions:
        seen[item.id] += 1
        number = seen[item.id]
        unique.append(item if number == 1 else replace(item, id=f"{item.id}#{number}"))
    return unique


def equal_shares(
    instructions: Sequence[Instruction], bins: int, count: int, rng: random.Random
) -> list[Instruction]:
    """Return ``count`` instructions in random order, equally many of each range of prompt length.

    What a range lacks is taken from the others in equal parts; a remainder comes from the shorter
    ones.
    """
    taken = list(islice(in_turns(length_ranges(instructions, bins, rng)), count))
    rng.shuffle(taken)
    return taken


def length_ranges(
    instructions: Sequence[Instruction], bins: int, rng: random.Random
) -> list[list[Instruction]]:
    """Return the instructions by ranges of prompt length, each range shuffled.

    The ranges have equal widths in the logarithm of the prompt's characters.
    """
    lengths = [math.log(max(len(instruction.prompt), 1)) for instruction in instructions]
    groups: list[list[Instruction]] = [[] for _ in range(bins)]
    low, high = min(lengths, default=0.0), max(lengths, default=0.0)
    width = (high - low) / bins or 1.0
    for instruction, length in zip(instructions, lengths, strict=True):
        groups[min(int((length - low) / width), bins - 1)].append(instruction)
    for group in groups:
        rng.shuffle(group)
    return groups


def in_turns(groups: Iterable[Iterable[T]]) -> Iterator[T]:
    """Yield an item of each group in turn, until all have ended."""
    iterators = [iter(group) for group in groups]
    while iterators:
        remaining = []
        for iterator in iterators:
            for item in islice(iterator, 1):
                yield item
                remaining.append(iterator)
        iterators = remaining
