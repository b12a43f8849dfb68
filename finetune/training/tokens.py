"""Training examples as tokens: exactly those that serving reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casewright.finetune.examples.example import TrainingExample
from casewright.finetune.training.shown_plans import ShownPlans
from casewright.planner.language_model import LanguageModel


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
        rows: Those that fit, in their order.
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
    """Return an example's tokens.

    Args:
        example: The example.
        model: Whose tokens.
        shown: Finds the plans that its prompt shows, where the loss is taken of these, too.
    """
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
        examples: The examples.
        model: Whose tokens.
        max_length: Tokens of prompt and completion.
        shown: Take the loss of the plans that prompts show, too.
    """
    rows, left_out, longest = [], [], 0
    plans = ShownPlans(model) if shown else None
    for example in examples:
        row = token_row(example, model, plans)
        longest = max(longest, len(row.input_ids))
        if len(row.input_ids) > max_length:
            left_out.append(example.id)
        else:
            rows.append(row)
    return TokenRows(rows, left_out, longest)
