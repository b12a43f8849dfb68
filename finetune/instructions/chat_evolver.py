"""Evolution by a chat model (Evol-Instruct, Xu et al. 2023), its answers verified."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import InputError, cleaned
from casewright.finetune.instructions.chat_cache import ChatCache
from casewright.finetune.instructions.chat_prompts import (
    CHAT_KINDS,
    OPERATIONS,
    read_rewrite,
    rewrite_prompt,
)
from casewright.finetune.instructions.constraint import holds, read_constraint
from casewright.finetune.instructions.elimination import eliminated
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.queries.no_answer import no_answer
from casewright.planner.chat_call import ask
from casewright.planner.chat_planner import model_name

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: A model that fails so often in a row is asked no more.
_MOST_FAILURES = 3


@dataclass(slots=True)
class ChatEvolution:
    """What a chat model made.

    Attributes:
        evolved: The evolved instructions; the answers of all are verified, unless unchecked ones
            were to be kept.
        refused: Why others were dropped, and how often.
        stopped: Why it ended early; empty where it did not.
    """

    evolved: list[Instruction] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    stopped: str = ""


class _Spent(Exception):  # noqa: N818 - an end, no error
    """There is no time, or no call, left; its text says which."""


class ChatEvolver:
    """Evolves instructions by a chat model: it rewrites one, then follows what it has written.

    Args:
        model: Any LangChain chat model.
        cache: A JSON Lines file to which each outcome is appended: a later run with the same
            instructions and model goes on where this one stopped.
        seconds: Time for all calls together.
        calls: Calls at most.
        call_seconds: Time for one call.
        keep_unchecked: Whether an instruction is kept whose constraint is of no kind that can be
            verified. One that is verified and broken is always dropped.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        cache: Path | None = None,
        seconds: float = 3600.0,
        calls: int = 10_000,
        call_seconds: float = 60.0,
        keep_unchecked: bool = False,
    ) -> None:
        self._model = model
        self._name = model_name(model)
        self._cache = ChatCache(cache)
        self._seconds = seconds
        self._calls = calls
        self._call_seconds = call_seconds
        self._keep_unchecked = keep_unchecked

    def evolve(self, instructions: Sequence[Instruction], count: int) -> ChatEvolution:
        """Return up to ``count`` evolved instructions, asked for in this order.

        Each instruction is evolved once, by the operations in turn. Plans are left alone.

        Raises:
            InputError: The cache's file cannot be read or written.
        """
        result = ChatEvolution()
        budget = _Budget(time.monotonic() + self._seconds, self._calls)
        texts = [one for one in instructions if one.planned is None]
        failures = 0
        for instruction, operation in zip(texts, _turning(), strict=False):
            if len(result.evolved) >= count:
                break
            try:
                outcome = self._outcome(instruction, operation, budget)
                failures = 0
            except _Spent as spent:
                result.stopped = str(spent)
                break
            except InputError:
                raise
            except Exception as error:  # noqa: BLE001 - a model fails in any way
                failures += 1
                result.refused["the model failed"] += 1
                if failures == _MOST_FAILURES:
                    result.stopped = cleaned(no_answer(self._model, error, self._call_seconds))
                    break
                continue
            self._take(instruction, outcome, result)
        return result

    def _outcome(
        self, instruction: Instruction, operation: str, budget: _Budget
    ) -> dict[str, object]:
        key = _key(self._name, operation, instruction.prompt)
        if (kept := self._cache.get(key)) is not None:
            return kept
        said = self._ask(rewrite_prompt(instruction.prompt, operation), budget)
        evolved, constraint = read_rewrite(said)
        # What is dropped for its instruction alone needs no answer.
        why = eliminated(instruction.prompt, evolved, "answer")
        answer = "" if why else self._ask(evolved, budget)
        outcome: dict[str, object] = {
            "key": key,
            "id": instruction.id,
            "operation": operation,
            "instruction": evolved,
            "constraint": constraint,
            "answer": answer,
        }
        self._cache.add(key, outcome)
        return outcome

    def _take(
        self, instruction: Instruction, outcome: dict[str, object], result: ChatEvolution
    ) -> None:
        evolved, answer = str(outcome["instruction"]), str(outcome["answer"])
        if why := eliminated(instruction.prompt, evolved, answer or "answer"):
            result.refused[why] += 1
            return
        made = replace(
            instruction,
            id=f"{instruction.id}~chat:{outcome['operation']}",
            prompt=evolved,
            answer=answer,
            original=instruction.prompt,
            labels=(),
        )
        if not made.readable:
            result.refused["control characters, or no Unicode"] += 1
            return
        constraint = read_constraint(outcome["constraint"])
        if constraint is not None and constraint.kind not in CHAT_KINDS:
            constraint = None
        if not answer:
            result.refused["an empty answer"] += 1
        elif constraint is None and not self._keep_unchecked:
            result.refused["a constraint that cannot be verified"] += 1
        elif constraint is not None and not holds(constraint, evolved, answer):
            result.refused[f"the answer breaks its constraint: {constraint.kind}"] += 1
        else:
            kept = (constraint,) if constraint else ()
            result.evolved.append(replace(made, constraints=kept))

    def _ask(self, text: str, budget: _Budget) -> str:
        from langchain_core.messages import HumanMessage

        seconds = min(budget.take(), self._call_seconds)
        return str(ask(self._model, [HumanMessage(text)], seconds).text).strip()


@dataclass(slots=True)
class _Budget:
    """What is left: the clock's time at which it ends, and calls."""

    ends: float
    calls: int

    def take(self) -> float:
        """Take one call, and return the seconds that are left for it."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise _Spent("the time for all calls is over")
        if not self.calls:
            raise _Spent("all calls are made")
        self.calls -= 1
        return left


def _turning() -> Iterator[str]:
    while True:
        yield from OPERATIONS


def _key(model: str, operation: str, prompt: str) -> str:
    return hashlib.sha256("\0".join((model, operation, prompt)).encode()).hexdigest()[:32]
