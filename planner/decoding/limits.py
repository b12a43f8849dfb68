"""Limits that stop decoding before the end of the plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from casewright.errors import DecodingError
from casewright.planner.model_limits import MAX_TOKENS

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class DecodingLimits:
    """Limits of decoding a plan.

    Attributes:
        tokens: Maximal number of tokens, forced ones included.
        deadline: Value of ``time.perf_counter()``; ``None`` for no deadline. It is checked between
            model steps; a long prompt is read in several steps.
    """

    tokens: int = MAX_TOKENS
    deadline: float | None = None

    def check_time(self) -> None:
        """Raise ``DecodingError`` if the deadline has passed."""
        if self.deadline is not None and time.perf_counter() >= self.deadline:
            raise DecodingError("The plan was not finished in time. Allow more seconds.")

    def check_tokens(self, model: LanguageModel, prompt: int, plan: int) -> None:
        """Raise ``DecodingError`` if a plan has too many tokens, alone or with its prompt."""
        if plan > self.tokens:
            raise DecodingError(
                f"The plan was not finished within {self.tokens} tokens. Allow more tokens."
            )
        if model.context_length is not None and prompt + plan > model.context_length:
            raise DecodingError(
                f"The prompt and its plan have {prompt + plan} tokens; the model reads "
                f"{model.context_length}. Give fewer tools or examples."
            )

    @contextmanager
    def lock(self, lock: threading.Lock) -> Iterator[None]:
        """Hold a lock.

        Raises:
            DecodingError: The lock was not free before the deadline.
        """
        left = -1.0 if self.deadline is None else max(0.0, self.deadline - time.perf_counter())
        if not lock.acquire(timeout=left):
            raise DecodingError("The model was busy with other plans until the deadline.")
        try:
            yield
        finally:
            lock.release()
