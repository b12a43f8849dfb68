"""Instructions for a training set: read, without duplicates, a share taken, some of it evolved."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from casewright.errors import InputError
from casewright.finetune.example import TrainingExample
from casewright.finetune.instructions.chat_evolver import ChatEvolver
from casewright.finetune.instructions.evolution import RuleEvolver
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers.hugging_face import read_hugging_face
from casewright.finetune.instructions.readers.records import Refuse
from casewright.finetune.instructions.readers.registry import HUGGING_FACE, reader
from casewright.finetune.instructions.settings import (
    BY_RULES,
    InstructionSettings,
    InstructionSource,
)
from casewright.planner import AnnotatedQuery, chat_model
from casewright.tools import Toolbox

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: Times that an instruction is evolved at most, with other constraints each time.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Taken:
    """What a training set takes of its sources of instructions.

    Attributes:
        examples: What is taken, some of it evolved, in random order.
        pool: How many instructions the sources hold; 0 where none are asked for, and so none read.
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
    """Return a share of what the sources hold, the same for the same settings, files and seed.

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
    taken = {one.id for one in plain}
    rest = [one for one in pool if one.id not in taken]
    evolved = _evolved(settings, [rest, plain], wanted, rng, chat, refused) if wanted else []
    chosen = _with_own_ids([*plain, *evolved])
    rng.shuffle(chosen)
    return Taken([one.to_example() for one in chosen], len(pool))


def tool_queries(
    name: str, path: Path, refused: Counter[str] | None = None
) -> list[tuple[AnnotatedQuery, Toolbox]]:
    """Return the queries of a reader's data, with their gold plans and toolboxes.

    Queries inside a dialogue are left out: what was said before them is no part of a query.

    Args:
        name: The reader, one that reads plans: ``toolalpaca``, ``bfcl``, ``sealtools``, ….
        refused: Is added the reasons for which records were left out, and how often.

    Raises:
        InputError: The reader is unknown, or its data cannot be read.
    """
    found = reader(name).read(path, _counting(Counter() if refused is None else refused, name))
    planned = [one.planned for one in found if one.planned is not None]
    return [(one.query, one.toolbox) for one in planned if not one.history]


def _pool(
    settings: InstructionSettings, rng: random.Random, refused: Counter[str]
) -> list[Instruction]:
    """Return what the sources hold: texts, not too long, each prompt once, limits kept."""
    pool: list[Instruction] = []
    seen: set[str] = set()
    for source in settings.sources:
        refuse = _counting(refused, source.reader)
        found = []
        for one in _read(source, refuse):
            if one.characters > settings.max_characters:
                refuse("longer than max_characters")
            elif not one.readable:
                refuse("control characters, or no Unicode")
            elif (key := one.key()) in seen:
                refuse("a prompt that was there before")
            else:
                seen.add(key)
                found.append(one)
        if source.limit is not None and source.limit < len(found):
            found = [found[i] for i in sorted(rng.sample(range(len(found)), source.limit))]
        pool += found
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
    made: list[Instruction] = []
    if chat is not None or settings.by != BY_RULES:
        made = _by_chat(settings, chat or chat_model(settings.by), pools, count, rng, refused)
    evolver = RuleEvolver(rng, settings.constraints)
    seen = {one.key() for one in made}
    for pool in [pool for _ in range(_ROUNDS) for pool in pools]:
        groups = length_ranges(pool, settings.length_bins, rng)
        for one in in_turns([filter(None, map(evolver.evolve, group)) for group in groups]):
            if len(made) == count:
                return made
            if one.key() not in seen and one.characters <= settings.max_characters:
                seen.add(one.key())
                made.append(one)
    if len(made) < count:
        raise InputError(
            f"{count:,} evolved instructions are asked for, and {len(made):,} could be made. Lower "
            "share or evolved, or add sources."
        )
    return made


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
    texts = [one for pool in pools for one in pool if one.planned is None]
    ordered = list(in_turns(length_ranges(texts, settings.length_bins, rng)))
    found = evolver.evolve(ordered, count)
    refused.update({f"chat: {why}": times for why, times in found.refused.items()})
    if found.stopped:
        refused[f"chat: stopped: {found.stopped}"] += 1
    return list(islice(found.evolved, count))


def _with_own_ids(found: Sequence[Instruction]) -> list[Instruction]:
    """Return the same with a number added to every id that was there before."""
    seen: Counter[str] = Counter()
    out = []
    for one in found:
        seen[one.id] += 1
        again = seen[one.id]
        out.append(one if again == 1 else replace(one, id=f"{one.id}#{again}"))
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
    lengths = [math.log(max(len(one.prompt), 1)) for one in instructions]
    groups: list[list[Instruction]] = [[] for _ in range(bins)]
    low, high = min(lengths, default=0.0), max(lengths, default=0.0)
    width = (high - low) / bins or 1.0
    for one, length in zip(instructions, lengths, strict=True):
        groups[min(int((length - low) / width), bins - 1)].append(one)
    for group in groups:
        rng.shuffle(group)
    return groups


def in_turns(groups: Iterable[Iterable[T]]) -> Iterator[T]:
    """Yield one of each group in turn, until all have ended."""
    open_ = [iter(group) for group in groups]
    while open_:
        going = []
        for group in open_:
            for one in islice(group, 1):
                yield one
                going.append(group)
        open_ = going
