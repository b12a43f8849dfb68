"""Self-Instruct (Wang et al. 2023, arXiv:2212.10560): seed tasks and user-oriented instructions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from casewright.errors import InputError
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers.records import (
    Refuse,
    list_of,
    one_file,
    read_json_lines,
    text_of,
)

SEED_TASKS, USER_ORIENTED = "self_instruct_seed_tasks.jsonl", "user_oriented_instructions.jsonl"
LICENCE = "Apache-2.0"


def read_seed_tasks(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield the 175 seed tasks' instances; ``{id, instruction, instances: [{input, output}]}``."""
    yield from _read(one_file(path, SEED_TASKS), "self_instruct", refuse)


def read_user_oriented(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield the 252 user-oriented instructions' instances; the form is the seed tasks'."""
    yield from _read(one_file(path, USER_ORIENTED), "user_oriented", refuse)


def _read(file: Path, reader: str, refuse: Refuse) -> Iterator[Instruction]:
    for number, record in read_json_lines(file):
        place = f"{file}, line {number}"
        asked = text_of(record, "instruction", place)
        for index, instance in enumerate(list_of(record, "instances", place), 1):
            if not isinstance(instance, dict):
                raise InputError(f"{place}, instance {index} is no JSON object.")
            given = text_of(instance, "input", f"{place}, instance {index}")
            answer = text_of(instance, "output", f"{place}, instance {index}")
            if not asked or not answer:
                refuse("empty answer" if asked else "empty prompt")
                continue
            yield Instruction(
                id=f"{reader}:{number}.{index}",
                source=f"{reader}:{file.name}:{number}",
                licence=LICENCE,
                prompt=with_input(asked, given),
                answer=answer,
            )


def with_input(instruction: str, given: str) -> str:
    """Return an instruction with what it is about, if anything, below a blank line."""
    return f"{instruction}\n\n{given}" if given else instruction
