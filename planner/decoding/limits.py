"""Limits that stop decoding before the end of the plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from casewright.errors import DecodingError
from casewright.planner.language_model import LanguageModel
from casewright.planner.model_limits import MAX_TOKENS


@dataclass(frozen=True, slots=True)
class DecodingLimits:
    """Limits of decoding a plan.

    Attributes:
        tokens: Maximum number of tokens of the plan, including forced tokens.
        deadline: Time of ``time.perf_counter()`` at which decoding stops; ``None`` for no deadline.
            The time is checked between forward passes; a long prompt takes several passes.
    """

    tokens: int = MAX_TOKENS
    deadline: float | None = None

    def check_time(self) -> None:
        """Raise ``DecodingError`` if the deadline has passed."""
        if self.deadline is not None and time.perf_counter() >= self.deadline:
            raise DecodingError("The plan was not finished in time. Allow more seconds.")

    def check_tokens(self, model: LanguageModel, prompt_tokens: int, plan_tokens: int) -> None:
        """Raise ``DecodingError`` if a plan, or prompt and plan together, have too many tokens."""
        if plan_tokens > self.tokens:
            raise DecodingError(
                f"The plan was not finished within {self.tokens} tokens. Allow more tokens."
            )
        total = prompt_tokens + plan_tokens
        if model.context_length is not None and total > model.context_length:
            raise DecodingError(
                f"The prompt and its plan have {total} tokens; the model reads at most "
                f"{model.context_length}. Give fewer tools or examples."
            )

    @contextmanager
    def lock(self, lock: threading.Lock) -> Iterator[None]:
        """Hold a lock; raise ``DecodingError`` if it is not free before the deadline."""
        timeout = -1.0 if self.deadline is None else max(0.0, self.deadline - time.perf_counter())
        if not lock.acquire(timeout=timeout):
            raise DecodingError(
                "The model was busy with other plans until the deadline. Allow more seconds."
            )
        try:
            yield
        finally:
            lock.release()
