"""The calls of a chat model, as LangChain reports them: how many, how long, with what end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler


@dataclass(slots=True)
class Call:
    """One call.

    Attributes:
        started: By ``time.perf_counter``, as ``ended``.
        ended: When it answered or failed; ``None`` while it has not.
        answered: It gave an answer.
    """

    started: float
    ended: float | None = None
    answered: bool = False


class CallLog(BaseCallbackHandler):
    """Keeps the calls of the model that it is given to (``callbacks=[log]``), in their order."""

    def __init__(self) -> None:
        self._calls: dict[UUID, Call] = {}

    @property
    def calls(self) -> list[Call]:
        """All calls so far."""
        return list(self._calls.values())

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[Any], *, run_id: UUID, **more: Any
    ) -> None:
        """See LangChain."""
        self._calls[run_id] = Call(time.perf_counter())

    def on_llm_end(self, response: Any, *, run_id: UUID, **more: Any) -> None:
        """See LangChain."""
        self._end(run_id, answered=True)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """See LangChain."""
        self._end(run_id, answered=False)

    def _end(self, run_id: UUID, *, answered: bool) -> None:
        call = self._calls[run_id]
        call.ended, call.answered = time.perf_counter(), answered
