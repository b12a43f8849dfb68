"""What decoding returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Written:
    """A plan in tokens, and what it took.

    Attributes:
        tokens: The plan's, without the one that ends it.
        model_steps: Calls of the network that a token was chosen from, the prompt's included.
        forced: How many of the tokens the grammar wrote without a choice.
        drafted: How many were chosen in a step that had chosen others before, since a draft had
            them; without a draft, each would have taken a step of its own.
        prompt_tokens: Length of the prompt.
        head_reused: Whether the head's key/value states were there already.
    """

    tokens: tuple[int, ...]
    model_steps: int
    forced: int
    drafted: int
    prompt_tokens: int
    head_reused: bool
