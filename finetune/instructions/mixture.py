"""Instructions for a training set: read, without duplicates, some of them evolved."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.finetune.examples.example import TrainingExample
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
from casewright.finetune.instructions.shares import equal_shares, in_turns, length_ranges
from casewright.planner import AnnotatedQuery, chat_model
from casewright.tools import Toolbox

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: Times that an instruction is evolved at most, with other constraints each time.
_ROUNDS = 3


def instructions(
    settings: InstructionSettings,
    count: int,
    seed: int,
    chat: BaseChatModel | None = None,
    *,
    refused: Counter[str] | None = None,
) -> list[TrainingExample]:
    """Return ``count`` training examples, the same for the same settings, files and seed.

    Those that are evolved are evolved from others than those that stand as they are, as long as
    there are others. A chat model may give fewer than it is asked for; rules make the rest.

    Args:
        settings: Sources and shares.
        count: How many.
        seed: Of every choice.
        chat: Adds the constraints, in the place of the model that the settings name.
        refused: Is added the reasons for which records were left out, and how often.

    Raises:
        InputError: A source cannot be read, or all sources together hold too few.
    """
    refused = Counter() if refused is None else refused
    if not count:
        return []
    rng = random.Random(f"instructions {seed}")
    pool = read_sources(settings, rng, refused)
    wanted = round(count * settings.evolved)
    if count - wanted > len(pool) or not pool:
        raise InputError(
            f"The sources of instructions hold {len(pool):,} that can be used; {count - wanted:,} "
            "are asked for beside the evolved ones. Ask for a smaller share, or add sources."
            + "".join(f" Left out: {n:,}, {why}." for why, n in refused.most_common(1))
        )
    plain = equal_shares(pool, settings.length_bins, count - wanted, rng)
    taken = {one.id for one in plain}
    rest = [one for one in pool if one.id not in taken]
    evolved = _evolved(settings, [rest, plain], wanted, rng, chat, refused) if wanted else []
    chosen = _with_own_ids([*plain, *evolved])
    rng.shuffle(chosen)
    return [one.to_example() for one in chosen]


def read_sources(
    settings: InstructionSettings, rng: random.Random, refused: Counter[str]
) -> list[Instruction]:
    """Return what the sources hold: texts, not too long, each prompt once, limits kept.

    Raises:
        InputError: A source cannot be read.
    """
    pool: list[Instruction] = []
    seen: set[str] = set()
    for source in settings.sources:
        found = []
        for one in read_source(source, _counting(refused, source.reader)):
            if one.characters > settings.max_characters:
                refused[f"{source.reader}: longer than max_characters"] += 1
            elif not one.readable:
                refused[f"{source.reader}: control characters, or no Unicode"] += 1
            elif (key := one.key()) in seen:
                refused[f"{source.reader}: a prompt that was there before"] += 1
            else:
                seen.add(key)
                found.append(one)
        if source.limit is not None and source.limit < len(found):
            found = [found[i] for i in sorted(rng.sample(range(len(found)), source.limit))]
        pool += found
    return _with_own_ids(pool)


def read_source(source: InstructionSource, refuse: Refuse) -> Iterator[Instruction]:
    """Yield what one source holds.

    Raises:
        InputError: It cannot be read.
    """
    path = Path(source.path).expanduser()
    if source.reader != HUGGING_FACE:
        yield from reader(source.reader).read(path, refuse)
        return
    yield from read_hugging_face(
        path if path.exists() else source.path,
        refuse,
        split=source.split,
        columns=source.columns,
        licence=source.licence,
    )


def tool_queries(
    name: str, path: Path, refused: Counter[str] | None = None
) -> list[tuple[AnnotatedQuery, Toolbox]]:
    """Return the queries of a reader's data, with their gold plans and toolboxes.

    Queries inside a dialogue are left out: what was said before them is no part of a query.

    Args:
        name: The reader, one that reads plans: ``toolalpaca``, ``bfcl``, ``sealtools``, ….
        path: Its file or folder.
        refused: Is added the reasons for which records were left out, and how often.

    Raises:
        InputError: The reader is unknown, or its data cannot be read.
    """
    counted = Counter[str]() if refused is None else refused
    found = reader(name).read(path, _counting(counted, name))
    planned = [one.planned for one in found if one.planned is not None]
    return [(one.query, one.toolbox) for one in planned if not one.history]


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
        model = chat if chat is not None else chat_model(settings.by)
        made = _by_chat(settings, model, pools, count, rng, refused)
    evolver = RuleEvolver(rng, settings.constraints)
    seen = {one.key() for one in made}
    for pool in [pool for _ in range(_ROUNDS) for pool in pools]:
        groups = length_ranges(pool, settings.length_bins, rng)
        for one in in_turns([_all_evolved(evolver, group) for group in groups]):
            if len(made) == count:
                return made
            if one.key() not in seen and one.characters <= settings.max_characters:
                seen.add(one.key())
                made.append(one)
    if len(made) < count:
        raise InputError(
            f"{count:,} evolved instructions are asked for, and {len(made):,} could be made. Ask "
            "for a smaller share, or add sources."
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
        cache=Path(settings.chat_cache).expanduser() if settings.chat_cache else None,
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


def _all_evolved(evolver: RuleEvolver, group: Sequence[Instruction]) -> Iterator[Instruction]:
    for one in group:
        if (evolved := evolver.evolve(one)) is not None:
            yield evolved


def _with_own_ids(found: Sequence[Instruction]) -> list[Instruction]:
    """Return the same with a number added to every id that was there before."""
    seen: Counter[str] = Counter()
    out = []
    for one in found:
        seen[one.id] += 1
        again = seen[one.id]
        out.append(one if again == 1 else replace(one, id=f"{one.id}#{again}"))
    return out
