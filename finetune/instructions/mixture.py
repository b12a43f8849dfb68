"""Instructions for a training set: read, without duplicates, a share taken, some of it evolved."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample
from casewright.finetune.instructions.chat_evolver import ChatEvolver
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers.calls import Refuse
from casewright.finetune.instructions.readers.hugging_face import check_fields, read_hugging_face
from casewright.finetune.instructions.readers.registry import HUGGING_FACE, READERS, reader
from casewright.finetune.instructions.rules import MOST_CONSTRAINTS, RuleEvolver
from casewright.finetune.section import Section, beside, folder_of, looked_for
from casewright.planner import AnnotatedQuery, chat_model
from casewright.tools import Toolbox

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


BY_RULES = "rules"


def _there(path: str, info: ValidationInfo) -> str:
    """Return where a source's files are, beside the recipe; the name that one may have instead."""
    if info.context is None or not path:
        return path
    result, name = beside(info, path), info.data.get("reader", HUGGING_FACE)
    if result.exists():
        return str(result)
    if name != HUGGING_FACE and looked_for(info):
        raise ValueError(
            f'There is nothing at "{path}" in {folder_of(info)}. Give {READERS[name].files}, of '
            f"{READERS[name].origin}: beside the recipe, or in the folder of --sets."
        )
    return path


#: The files that a reader reads, or a data set's name; looked for beside the recipe.
SourcePath = Annotated[str, AfterValidator(_there)]


class InstructionSource(Section):
    """One of ``[[data.instructions.sources]]``.

    Attributes:
        reader: A reader's name: ``hugging_face``, ``toolalpaca``, ``bfcl`` or ``sealtools``.
        path: A file or folder, or a data set's name for ``hugging_face``.
        limit: How many to take at most, drawn by the seed; without one, all.
        split: Of a data set by name.
        columns: Of a data set by name: which column is its ``prompt``, ``input`` and ``answer``,
            or its ``messages``.
        licence: Of a data set by name, as its page says; kept in the manifest.
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
        sources: Where they come from; none where a training set has no instructions.
        share: The part of what the sources hold that is taken, as in the paper's Table 3 (60,000
            of 147,000 are 40 %): 0 none, 1 all.
        evolved: The share of these that is given constraints.
        by: Who adds them: ``rules``, or a chat model as ``provider:model``.
        constraints: Constraints that rules give to one instruction at most.
        length_bins: Ranges of prompt length that have equal shares.
        max_characters: Longer ones, prompt and answer together, are left out.
        chat_calls: Calls of the chat model at most.
        chat_seconds: Time for all of them together.
        chat_cache: A file in which the chat model's work is kept, so that it goes on where it
            stopped; empty keeps nothing.
        keep_unchecked: Whether instructions whose constraint cannot be verified are kept.
    """

    sources: tuple[InstructionSource, ...] = ()
    share: float = Field(default=0.0, ge=0, le=1)
    evolved: float = Field(default=0.5, ge=0.0, le=1.0)
    by: str = BY_RULES
    constraints: int = Field(default=MOST_CONSTRAINTS, ge=1, le=MOST_CONSTRAINTS)
    length_bins: int = Field(default=8, ge=1, le=1000)
    max_characters: int = Field(default=6000, ge=1)
    chat_calls: int = Field(default=10_000, ge=1)
    chat_seconds: float = Field(default=3600.0, gt=0.0, allow_inf_nan=False)
    chat_cache: str = ""
    keep_unchecked: bool = False

    @field_validator("by")
    @classmethod
    def _nameable(cls, name: str) -> str:
        if name != BY_RULES and not all(name.partition(":")):
            raise ValueError(
                f"{name!r} is neither {BY_RULES!r} nor a chat model. Write provider:model, for "
                "example openai:gpt-4o-mini."
            )
        return name

    @field_validator("chat_cache")
    @classmethod
    def _beside(cls, file: str, info: ValidationInfo) -> str:
        return file and str(beside(info, file))

    @model_validator(mode="after")
    def _some_source(self) -> Self:
        if self.share and not self.sources:
            raise ValueError(
                f"share is {self.share:g}, and there are no instructions. Add "
                "[[data.instructions.sources]] with reader and path, or set share = 0."
            )
        return self


#: Times that an instruction is evolved at most, with other constraints each time.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Taken:
    """The instructions of a training set.

    Attributes:
        examples: Instructions, some of them evolved, in random order.
        pool: The number of instructions that the sources hold; 0 where the share is 0, and so
            none are read.
    """

    examples: list[TrainingExample]
    pool: int


def instructions(
    settings: InstructionSettings,
    seed: int,
    chat: BaseChatModel | None = None,
    *,
    refused: Counter[str] | None = None,
) -> Taken:
    """Return a share of the sources' instructions, the same for the same settings, files and seed.

    Those that are evolved are evolved from others than those that stand as they are, as long as
    there are others. A chat model may give fewer than it is asked for; rules make the rest.

    Args:
        settings: Sources, the share that is taken (REAPER, Joshi et al. 2024, Table 3), and the
            share of it that is evolved.
        chat: Adds the constraints, in the place of the model that the settings name.
        refused: Is added the reasons for which records were left out, and how often.

    Raises:
        InputError: A source cannot be read, all sources together hold nothing that can be used,
            or too few can be evolved.
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
    evolved = _evolved(settings, [rest, plain], wanted, rng, chat, refused) if wanted else []
    chosen = _with_own_ids([*plain, *evolved])
    rng.shuffle(chosen)
    return Taken([item.to_example() for item in chosen], len(pool))


def tool_queries(
    name: str, path: Path, refused: Counter[str] | None = None
) -> list[tuple[AnnotatedQuery, Toolbox]]:
    """Return the queries of a reader's data, with their gold plans and toolboxes.

    Args:
        name: A reader of plans: ``toolalpaca``, ``bfcl`` or ``sealtools``.
        refused: Is added the reasons for which records were left out, and how often.

    Raises:
        InputError: The reader is unknown, or its data cannot be read.
    """
    output = reader(name).read(path, _counting(Counter() if refused is None else refused, name))
    return [
        (result.planned.query, result.planned.toolbox)
        for result in output
        if result.planned is not None
    ]


def _pool(
    settings: InstructionSettings, rng: random.Random, refused: Counter[str]
) -> list[Instruction]:
    """Return what the sources hold: texts, not too long, each prompt once, limits kept."""
    pool: list[Instruction] = []
    seen: set[str] = set()
    for source in settings.sources:
        refuse = _counting(refused, source.reader)
        results = []
        for item in _read(source, refuse):
            if item.characters > settings.max_characters:
                refuse("longer than max_characters")
            elif not item.readable:
                refuse("control characters, or no Unicode")
            elif (key := item.key()) in seen:
                refuse("a prompt that was there before")
            else:
                seen.add(key)
                results.append(item)
        if source.limit is not None and source.limit < len(results):
            results = [results[i] for i in sorted(rng.sample(range(len(results)), source.limit))]
        pool += results
    return _with_own_ids(pool)


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
    chat: BaseChatModel | None,
    refused: Counter[str],
) -> list[Instruction]:
    results: list[Instruction] = []
    if chat is not None or settings.by != BY_RULES:
        results = _by_chat(settings, chat or chat_model(settings.by), pools, count, rng, refused)
    evolver = RuleEvolver(rng, settings.constraints)
    seen = {result.key() for result in results}
    for pool in [pool for _ in range(_ROUNDS) for pool in pools]:
        groups = length_ranges(pool, settings.length_bins, rng)
        for instruction in in_turns([filter(None, map(evolver.evolve, group)) for group in groups]):
            if len(results) == count:
                return results
            if instruction.key() not in seen and instruction.characters <= settings.max_characters:
                seen.add(instruction.key())
                results.append(instruction)
    if len(results) < count:
        raise InputError(
            f"{count:,} evolved instructions are asked for, and {len(results):,} could be made. "
            "Lower share or evolved, or add sources."
        )
    return results


def _by_chat(
    settings: InstructionSettings,
    model: BaseChatModel,
    pools: Sequence[Sequence[Instruction]],
    count: int,
    rng: random.Random,
    refused: Counter[str],
) -> list[Instruction]:
    evolver = ChatEvolver(
        model,
        cache=Path(settings.chat_cache) if settings.chat_cache else None,
        seconds=settings.chat_seconds,
        calls=settings.chat_calls,
        keep_unchecked=settings.keep_unchecked,
    )
    texts = [item for pool in pools for item in pool if item.planned is None]
    ordered = list(in_turns(length_ranges(texts, settings.length_bins, rng)))
    result = evolver.evolve(ordered, count)
    refused.update({f"chat: {why}": times for why, times in result.refused.items()})
    if result.stopped:
        refused[f"chat: stopped: {result.stopped}"] += 1
    return list(islice(result.evolved, count))


def _with_own_ids(found: Sequence[Instruction]) -> list[Instruction]:
    """Return the same with a number added to every id that was there before."""
    seen: Counter[str] = Counter()
    out = []
    for result in found:
        seen[result.id] += 1
        again = seen[result.id]
        out.append(result if again == 1 else replace(result, id=f"{result.id}#{again}"))
    return out


T = TypeVar("T")


def equal_shares(
    instructions: Sequence[Instruction], bins: int, count: int, rng: random.Random
) -> list[Instruction]:
    """Return ``count`` instructions, the same number from every range of prompt length.

    What a range lacks is taken from the others in equal parts; what cannot be divided evenly goes
    to the shorter ones.

    Args:
        rng: Which ones of a range, and in what order.

    Raises:
        InputError: There are fewer than ``count``.
    """
    if count > len(instructions):
        raise InputError(
            f"{count:,} instructions are asked for, and there are {len(instructions):,}. Ask for "
            "fewer, or add sources."
        )
    taken = list(islice(in_turns(length_ranges(instructions, bins, rng)), count))
    rng.shuffle(taken)
    return taken


def length_ranges(
    instructions: Sequence[Instruction], bins: int, rng: random.Random
) -> list[list[Instruction]]:
    """Return the instructions by prompt length, each range shuffled.

    The ranges are of equal width in the logarithm of the prompt's characters: quantiles would hold
    equally many instructions each, so that equal shares of them were a plain sample.
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
    """Yield one of each group in turn, until all have ended."""
    open_ = [iter(group) for group in groups]
    while open_:
        going = []
        for group in open_:
            for item in islice(group, 1):
                yield item
                going.append(group)
        open_ = going
