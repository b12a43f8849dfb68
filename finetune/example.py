"""One training example: a prompt and its completion."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from casewright.errors import InputError
from casewright.planner import Prompt

#: The ``task`` of an example whose completion is a plan; the prompt is the same as in serving.
PLAN_TASK = "plan"
#: The separator between the head (the tools) and the tail (the request) of a prompt.
_SEPARATOR = "\n\n"
_TEXT_FIELDS = ("id", "task", "source", "prompt", "completion")


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """A prompt and its completion.

    Attributes:
        task: ``plan``, a TTG task (``TaskName``), ``instruction`` or ``instruction:evolved``.
        source: A query's id, or the name of a data set and the number of a row.
        prompt: The prompt; an instruction has no tools, so the head is empty.
        completion: The text that the model should write, without the end token.
    """

    id: str
    task: str
    source: str
    prompt: Prompt
    completion: str

    def to_row(self) -> dict[str, str | int]:
        """Return a JSON object; its ``seam`` is the length of the prompt's head in characters."""
        texts = {name: str(getattr(self, name)) for name in _TEXT_FIELDS}
        return {**texts, "seam": len(self.prompt.head)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> TrainingExample:
        """Return the example of a row from ``to_row``; ``InputError`` if the row is malformed."""
        try:
            texts = [row[name] for name in _TEXT_FIELDS]
        except KeyError as error:
            raise InputError(f"A training example lacks the field {error}.") from error
        seam = row.get("seam", 0)
        if not all(isinstance(text, str) for text in texts) or not isinstance(seam, int):
            raise InputError(
                "A field of a training example is not a string, or its seam is not an integer."
            )
        id_, task, source, prompt, completion = texts
        if seam and prompt[seam : seam + len(_SEPARATOR)] != _SEPARATOR:
            raise InputError(f"Training example {id_!r} has no blank line at its seam, {seam}.")
        tail = prompt[seam + len(_SEPARATOR) :] if seam else prompt
        # Many examples share one head, so interning saves memory.
        return cls(id_, task, source, Prompt(sys.intern(prompt[:seam]), tail), completion)


def without_duplicates(examples: Iterable[TrainingExample]) -> list[TrainingExample]:
    """Return the examples without those that repeat the prompt and completion of an earlier one."""
    unique: dict[tuple[str, str, str], TrainingExample] = {}
    for example in examples:
        unique.setdefault((example.prompt.head, example.prompt.tail, example.completion), example)
    return list(unique.values())
