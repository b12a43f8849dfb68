"""Training examples as tokens: exactly those that serving reads and writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from casewright.finetune.example import TrainingExample
from casewright.planner.language_model import LanguageModel

#: With the line's end after the last step, which says that there is no other.
_SHOWN = re.compile(rb"(?<=\n)Plan:\n((?:s[0-9]+ = [^\n]*(?:\n|$))+)")


class ShownPlans:
    """Finds the plans in the tokens of a model's prompts."""

    def __init__(self, model: LanguageModel) -> None:
        tokenizer = model.grammar_tokenizer
        self._text = lru_cache(None)(lambda token: bytes(tokenizer.decode_bytes([token])))
        #: As ``of``, for a prompt's head; those that many examples share are looked at once.
        self.of_head = lru_cache(None)(self.of)

    def of(self, tokens: Sequence[int]) -> list[int]:
        """Return for each token of a prompt's part 1 where it begins inside a plan, else 0."""
        parts = [self._text(token) for token in tokens]
        inside = bytearray(sum(map(len, parts)) + 1)
        for found in _SHOWN.finditer(b"".join(parts)):
            start, end = found.span(1)
            inside[start:end] = b"\1" * (end - start)
        mask, place = [], 0
        for part in parts:
            mask.append(int(inside[place]))
            place += len(part)
        return mask


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One example.

    Attributes:
        input_ids: The prompt's head and tail within the chat template, the completion, and the
            token that ends it.
        completion_mask: For each of them 1 where the loss is taken: completion and end, and where
            that is asked for the plans that the prompt shows.
        head: How many of them are the prompt's head.
    """

    input_ids: list[int]
    completion_mask: list[int]
    head: int = 0


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Examples as tokens.

    Attributes:
        left_out: Ids of those that are too long; none is cut.
        longest: Tokens of the longest example, left out or not; 0 without any.
    """

    rows: Sequence[TokenRow]
    left_out: Sequence[str]
    longest: int

    @property
    def tokens(self) -> int:
        """Tokens of all rows."""
        return sum(len(row.input_ids) for row in self.rows)

    @property
    def supervised(self) -> int:
        """Tokens that the loss is taken of."""
        return sum(sum(row.completion_mask) for row in self.rows)


def token_row(
    example: TrainingExample, model: LanguageModel, shown: ShownPlans | None = None
) -> TokenRow:
    """Return an example's tokens; ``shown`` where the loss is taken of its prompt's plans, too."""
    prompt = model.encode(example.prompt)
    asked = [*prompt.head, *prompt.tail]
    answer = [*model.encode_plan(example.completion), model.ends[0]]
    mask = [0] * len(asked)
    if shown is not None:
        mask = [*shown.of_head(prompt.head), *shown.of(prompt.tail)]
    return TokenRow([*asked, *answer], mask + [1] * len(answer), len(prompt.head))


def token_rows(
    examples: Sequence[TrainingExample],
    model: LanguageModel,
    max_length: int,
    *,
    shown: bool = False,
) -> TokenRows:
    """Return the tokens of the examples that have at most ``max_length`` of them.

    Args:
        shown: Take the loss of the plans that prompts show, too.
    """
    plans = ShownPlans(model) if shown else None
    # Those of one head one after the other: its tokens are kept for a few heads only.
    order = sorted(range(len(examples)), key=lambda at: examples[at].prompt.head)
    made = {place: token_row(examples[place], model, plans) for place in order}
    sizes = [len(made[place].input_ids) for place in range(len(examples))]
    fitting = [made[place] for place, size in enumerate(sizes) if size <= max_length]
    left_out = [one.id for one, size in zip(examples, sizes, strict=True) if size > max_length]
    return TokenRows(fitting, left_out, max(sizes, default=0))
