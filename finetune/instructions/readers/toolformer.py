"""GPTeacher's Toolformer set: answers in text, with calls of the tools that the prompt names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.readers.records import (
    Refuse,
    one_file,
    read_json_list,
    text_of,
)
from casewright.finetune.instructions.readers.self_instruct import with_input

FILE = "gpteacher_toolformer_0.6.json"
LICENCE = "MIT"


def read_toolformer(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield ``{instruction, input, response}``.

    The instruction shows each tool with its description and form and the response has its calls
    inside text, as in ``It is wolfram('the exchange rate').``; both are kept as they are.
    """
    file = one_file(path, FILE)
    for number, record in read_json_list(file):
        place = f"{file}, record {number}"
        asked, given = text_of(record, "instruction", place), text_of(record, "input", place)
        answer = text_of(record, "response", place)
        if not asked or not answer:
            refuse("empty answer" if asked else "empty prompt")
            continue
        yield Instruction(
            id=f"toolformer:{number}",
            source=f"toolformer:{file.name}:{number}",
            licence=LICENCE,
            prompt=with_input(asked, given),
            answer=answer,
        )
