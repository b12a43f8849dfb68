"""The setup of benches in which one language model writes the plans of annotated queries."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from casewright.bench.harness import Ground
from casewright.bench.models import (
    ModelChoice,
    described,
    measure_bandwidth,
    tokenizer_texts,
    weight_bytes,
)
from casewright.errors import InputError
from casewright.planner.language_model import PromptTokens
from casewright.stores.progress import note

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Fewest and most tokens of a plan; ``None`` for any.
Range = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class PromptShape:
    """Lengths that prompts are brought to, in tokens: the constant head, and the rest."""

    head: int
    tail: int

    def fit(self, prompt: PromptTokens) -> PromptTokens:
        """Cut a prompt, or repeat its tokens, until it has these lengths."""
        head = islice(cycle(prompt.head), self.head)
        # The end of a prompt is its question.
        tail = [*islice(cycle(reversed(prompt.tail)), self.tail)]
        return PromptTokens(tuple(head), tuple(reversed(tail)))


def read_shape(text: str | None) -> PromptShape | None:
    """Return the lengths in a text such as ``700+100``; raises ``InputError``."""
    numbers = None if text is None else _two_numbers(text, "+")
    if text is None or (numbers and all(numbers)):
        return numbers and PromptShape(*numbers)
    raise InputError(
        f"--prompt-tokens {text!r} cannot be read. Give those of the prompt that do not change "
        "and those that do: 700+100."
    )


def read_range(text: str | None) -> Range:
    """Return the range in a text such as ``30-60``; raises ``InputError``."""
    numbers = None if text is None else _two_numbers(text, "-")
    if text is None or (numbers and numbers[0] <= numbers[1]):
        return numbers
    raise InputError(f"--plan-tokens {text!r} cannot be read. Give the fewest and the most: 30-60.")


def _two_numbers(text: str, sign: str) -> Range:
    match = re.fullmatch(rf"(\d+)\{sign}(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingTrial:
    """The options that these benches share.

    Attributes:
        domain: The domain's name.
        model: The model that writes.
        plans: How many plans.
        repeats: How often each is written.
        shape: Lengths that prompts are brought to.
        plan_tokens: Lengths of the plans that are chosen.
        seed: Of the draw of queries.

    Raises:
        InputError: Prompts of a trained model are to be cut.
    """

    domain: str = "shopping"
    model: ModelChoice = field(default_factory=ModelChoice)
    plans: int = 5
    repeats: int = 1
    shape: PromptShape | None = None
    plan_tokens: Range = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.shape is not None and not self.model.random:
            raise InputError(
                "--prompt-tokens cuts prompts in the middle, which a trained model would misread. "
                "Leave it out, or give --size."
            )

    def fits(self, tokens: Sequence[int]) -> bool:
        """Return whether a plan has one of the lengths that are chosen."""
        return self.plan_tokens is None or (
            self.plan_tokens[0] <= len(tokens) <= self.plan_tokens[1]
        )

    def fitted(self, prompt: PromptTokens) -> PromptTokens:
        """Return a prompt in the lengths that prompts are brought to."""
        return prompt if self.shape is None else self.shape.fit(prompt)

    def no_tasks(self) -> InputError:
        """Return the error that the domain has no annotated queries to plan for."""
        of = ""
        if self.plan_tokens is not None:
            of = " of {} to {} tokens".format(*self.plan_tokens)
        return InputError(
            f"Domain {self.domain!r} has no annotated queries whose plans{of} can be written. "
            "Take --domain shopping, and a wider range of --plan-tokens."
        )


class Writer:
    """A model that writes, and the memory that its weights are read from.

    Args:
        trial: Its model is opened.
        ground: The domain.

    Raises:
        InputError: The model cannot be had.

    Attributes:
        model: The model.
        weight_bytes: That a model step reads.
        bandwidth: Of the memory that they are in; bytes a second.
    """

    def __init__(self, trial: WritingTrial, ground: Ground) -> None:
        self._trial = trial
        self._load = os.getloadavg()[0]
        texts = tokenizer_texts(ground.toolbox, ground.domain.queries())
        self.model: LanguageModel = trial.model.open(texts)
        note(f"Planning with {self.model.name} on {self.model.device}.")
        self.weight_bytes = weight_bytes(self.model)
        self.bandwidth = measure_bandwidth(self.model.device)

    @property
    def warms(self) -> bool:
        """Return whether the model is on a GPU, which records each width of a step at first."""
        return self.model.device.type == "cuda"

    @property
    def step_limit(self) -> float:
        """Return the milliseconds that memory needs for the weights of a model step."""
        return 1000 * self.weight_bytes / self.bandwidth

    def measure_again(self) -> None:
        """Measure the memory after the work, too: other load may have met one of the two."""
        self.bandwidth = max(self.bandwidth, measure_bandwidth(self.model.device))

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings of a report that describe the model and the trial."""
        trial = self._trial
        return {
            **described(self.model),
            "load_average_at_start": round(self._load, 2),
            "repeats": trial.repeats,
            "prompts_brought_to": trial.shape and [trial.shape.head, trial.shape.tail],
            "plan_tokens": trial.plan_tokens,
            "seed": trial.seed,
        }

    @property
    def figures(self) -> dict[str, float]:
        """Return the figures of the memory."""
        return {
            "memory_gb_per_s": self.bandwidth / 1e9,
            "weights_gb_per_model_step": self.weight_bytes / 1e9,
        }
