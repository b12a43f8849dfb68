"""Sets of plain instructions: Self-Instruct's, T0's and GPTeacher's Toolformer set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers.hugging_face import with_input
from casewright.finetune.instructions.readers.records import Refuse, files_of
from casewright.finetune.records import Record, read_records

SEED_TASKS, USER_ORIENTED = "self_instruct_seed_tasks.jsonl", "user_oriented_instructions.jsonl"
T0, TOOLFORMER = "t0_sample.jsonl", "gpteacher_toolformer_0.6.json"
#: A template of T0 is one of labels where so few short answers stand in so many examples.
_MOST_LABELS, _LABEL_WORDS, _FEWEST_EXAMPLES, _FEWEST_EACH = 3, 4, 6, 2


class _Instance(Record):
    input: str
    output: str


class _Task(Record):
    instruction: str
    instances: list[_Instance]


class _Template(Record):
    template: str
    prompt: str
    completion: str


class _Calling(Record):
    instruction: str
    input: str
    response: str


def read_seed_tasks(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield Self-Instruct's 175 seed tasks (Wang et al. 2023, arXiv:2212.10560)."""
    return _self_instruct(path, SEED_TASKS, "self_instruct", refuse)


def read_user_oriented(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield Self-Instruct's 252 user-oriented instructions."""
    return _self_instruct(path, USER_ORIENTED, "user_oriented", refuse)


def read_t0(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield a sample of T0's prompts (Sanh et al. 2022, arXiv:2110.08207).

    A classification's labels are its template's.
    """
    (file,) = files_of(path, T0)
    found = list(read_records(file, _Template))
    answers: dict[str, list[str]] = defaultdict(list)
    for _, one in found:
        answers[one.template].append(one.completion)
    labels = {name: _labels(given) for name, given in answers.items()}
    for number, one in found:
        yield from _made(
            *("t0", file, number, one.prompt, one.completion, refuse), labels=labels[one.template]
        )


def read_toolformer(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield instructions that show tools, with answers that have their calls inside text.

    As in ``It is wolfram('the exchange rate').``; both are kept as they are.
    """
    (file,) = files_of(path, TOOLFORMER)
    for number, one in read_records(file, _Calling):
        asked = one.instruction and with_input(one.instruction, one.input)
        yield from _made("toolformer", file, number, asked, one.response, refuse)


def _self_instruct(path: Path, name: str, reader: str, refuse: Refuse) -> Iterator[Instruction]:
    (file,) = files_of(path, name)
    for number, task in read_records(file, _Task):
        for index, one in enumerate(task.instances, 1):
            asked = task.instruction and with_input(task.instruction, one.input)
            yield from _made(reader, file, number, asked, one.output, refuse, part=f".{index}")


def _made(
    reader: str,
    file: Path,
    number: int,
    prompt: str,
    answer: str,
    refuse: Refuse,
    *,
    part: str = "",
    labels: Iterable[str] = (),
) -> Iterator[Instruction]:
    if not prompt or not answer:
        refuse("empty answer" if prompt else "empty prompt")
        return
    source = f"{reader}:{file.name}:{number}"
    yield Instruction(f"{reader}:{number}{part}", source, prompt, answer, labels=tuple(labels))


def _labels(given: list[str]) -> tuple[str, ...]:
    """Return the labels of a template, by its answers; none where it is no classification."""
    kinds = sorted(set(given))
    short = all(0 < len(kind.split()) <= _LABEL_WORDS for kind in kinds)
    seen = all(given.count(kind) >= _FEWEST_EACH for kind in kinds)
    few = 2 <= len(kinds) <= _MOST_LABELS and len(given) >= _FEWEST_EXAMPLES
    return tuple(kinds) if short and seen and few else ()
