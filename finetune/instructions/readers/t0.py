"""A sample of T0's prompts (Sanh et al. 2022, arXiv:2110.08207), some of each template."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers.records import (
    Refuse,
    one_file,
    read_json_lines,
    text_of,
)

FILE = "t0_sample.jsonl"
LICENCE = "Apache-2.0; the texts of public NLP sets have terms of their own"
#: A template is one of labels where so few short answers stand in so many examples.
_MOST_LABELS, _LABEL_WORDS, _FEWEST_EXAMPLES, _FEWEST_EACH = 3, 4, 6, 2


def read_t0(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield ``{template, prompt, completion}``; a classification's labels are its template's."""
    file = one_file(path, FILE)
    read: list[tuple[int, str, str, str]] = []
    for number, record in read_json_lines(file):
        place = f"{file}, line {number}"
        fields = [text_of(record, name, place) for name in ("template", "prompt", "completion")]
        read.append((number, fields[0], fields[1], fields[2]))
    labels = _labels(read)
    for number, template, prompt, answer in read:
        if not prompt or not answer:
            refuse("empty answer" if prompt else "empty prompt")
            continue
        yield Instruction(
            id=f"t0:{number}",
            source=f"t0:{file.name}:{number}",
            licence=LICENCE,
            prompt=prompt,
            answer=answer,
            labels=labels.get(template, ()),
        )


def _labels(read: list[tuple[int, str, str, str]]) -> Mapping[str, tuple[str, ...]]:
    answers: dict[str, list[str]] = defaultdict(list)
    for _, template, _, answer in read:
        answers[template].append(answer)
    found = {}
    for template, given in answers.items():
        kinds = sorted(set(given))
        short = all(0 < len(kind.split()) <= _LABEL_WORDS for kind in kinds)
        seen = all(given.count(kind) >= _FEWEST_EACH for kind in kinds)
        few = 2 <= len(kinds) <= _MOST_LABELS and len(given) >= _FEWEST_EXAMPLES
        if short and seen and few:
            found[template] = tuple(kinds)
    return found
