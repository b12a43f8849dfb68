"""Where decoding stops although the plan is not at its end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from casewright.errors import DecodingError
from casewright.planner.model_limits import MAX_TOKENS

if TYPE_CHECKING:
    from casewright.planner.language_model import TokenModel


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one plan.

    Attributes:
        tokens: Tokens that it may have, forced ones included.
        deadline: When it must be finished, by ``time.perf_counter()``; never, by default. It is
            looked at between two model steps, and a long prompt is read in several.
    """

    tokens: int = MAX_TOKENS
    deadline: float | None = None

    def check_time(self) -> None:
        """Raise ``DecodingError`` where the deadline is over."""
        if self.deadline is not None and time.perf_counter() >= self.deadline:
            raise DecodingError("No plan was finished in time. Allow more seconds.")

    def check_tokens(self, written: int) -> None:
        """Raise ``DecodingError`` where more tokens were written than there may be."""
        if written > self.tokens:
            raise DecodingError(
                f"No plan was finished within {self.tokens} tokens. Allow more, or fewer steps."
            )


def check_positions(model: TokenModel, length: int) -> None:
    """Raise ``DecodingError`` where a sequence is longer than the model reads."""
    most = model.positions
    if most is not None and length > most:
        raise DecodingError(
            f"The prompt and its plan have {length} tokens; the model reads {most}. "
            "Give fewer tools or examples."
        )
