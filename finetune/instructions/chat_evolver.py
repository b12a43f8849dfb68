"""Evolution by a chat model (Evol-Instruct, Xu et al. 2023), its answers verified."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError, cleaned
from casewright.finetune.instructions.constraint import (
    TEXT_KINDS,
    WORDINGS,
    holds,
    read_constraint,
)
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.words import letter_words
from casewright.finetune.queries.no_answer import MOST_FAILURES, json_object, no_answer
from casewright.finetune.queries.query_files import ResumedLines
from casewright.planner.chat_call import ask
from casewright.planner.chat_planner import model_name

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_TYPES = {int: "a whole number", str: "a text"}
#: Answers below this many words that say sorry are refusals (Xu et al. 2023, section 3.2).
_SORRY_WORDS = 80
_TEXTS = ("key", "instruction", "answer")


def rewrite_prompt(instruction: str) -> str:
    """Return the prompt for the instruction with one more constraint."""
    kinds = "\n".join(
        f"- {name} {_shown(kind.parameters)}: {kind.says}" for name, kind in TEXT_KINDS.items()
    )
    wording: str = WORDINGS["rewrite"]
    return wording.format(kinds=kinds, instruction=instruction)


def _shown(parameters: Mapping[str, type]) -> str:
    inside = ", ".join(f'"{name}": {_TYPES[type_]}' for name, type_ in parameters.items())
    return f"{{{inside}}}"


@dataclass(slots=True)
class ChatEvolution:
    """The instructions that a chat model evolved.

    Attributes:
        evolved: The evolved instructions; the answers of all are verified, unless unchecked ones
            were to be kept.
        refused: The number of instructions that were dropped, by reason.
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
        cache: A JSON Lines file to which each outcome is appended: a later run with the same
            instructions and model goes on where this one stopped.
        calls: Calls at most.
        keep_unchecked: Whether an instruction is kept whose constraint is of no kind that can be
            verified. One that is verified and broken is always dropped.

    Raises:
        InputError: The cache cannot be read, or is another file.
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
        self._file = cache and ResumedLines(cache, _is_outcome, "no outcome of an evolution")
        self._known = {record["key"]: record for record in self._file.records} if self._file else {}
        self._seconds = seconds
        self._calls = calls
        self._call_seconds = call_seconds
        self._keep_unchecked = keep_unchecked

    def evolve(self, instructions: Sequence[Instruction], count: int) -> ChatEvolution:
        """Return up to ``count`` evolved instructions, in this order; plans are left alone.

        Raises:
            InputError: The cache's file cannot be written.
        """
        result = ChatEvolution()
        budget = _Budget(time.monotonic() + self._seconds, self._calls)
        failures = 0
        for instruction in (item for item in instructions if item.planned is None):
            if len(result.evolved) >= count:
                break
            try:
                outcome = self._outcome(instruction, budget)
                failures = 0
            except _Spent as spent:
                result.stopped = str(spent)
                break
            except InputError:
                raise
            except Exception as error:  # noqa: BLE001 - a model fails in any way
                failures += 1
                result.refused["the model failed"] += 1
                if failures == MOST_FAILURES:
                    result.stopped = cleaned(no_answer(self._model, error, self._call_seconds))
                    break
                continue
            if isinstance(output := self._read(instruction, outcome), Instruction):
                result.evolved.append(output)
            else:
                result.refused[output] += 1
        return result

    def _outcome(self, instruction: Instruction, budget: _Budget) -> dict[str, Any]:
        key = hashlib.sha256(f"{self._name}\0{instruction.prompt}".encode()).hexdigest()[:32]
        if key in self._known:
            return self._known[key]
        read = json_object(self._ask(rewrite_prompt(instruction.prompt), budget)) or {}
        evolved = read.get("instruction")
        evolved = evolved.strip() if isinstance(evolved, str) else ""
        self._known[key] = outcome = {
            "key": key,
            "id": instruction.id,
            "instruction": evolved,
            "constraint": read.get("constraint"),
            # An instruction that is dropped needs no answer.
            "answer": "" if _unusable(instruction, evolved) else self._ask(evolved, budget),
        }
        if self._file:
            self._file.append(outcome)
        return outcome

    def _read(self, instruction: Instruction, outcome: dict[str, Any]) -> Instruction | str:
        """Return the evolved instruction, or the reason that there is none."""
        evolved, answer = outcome["instruction"], outcome["answer"]
        if why := _unusable(instruction, evolved):
            return why
        constraint = read_constraint(outcome["constraint"])
        result = replace(
            instruction,
            id=f"{instruction.id}~chat",
            prompt=evolved,
            answer=answer,
            original=instruction.prompt,
            constraints=(constraint,) if constraint else (),
        )
        if not result.readable:
            return "control characters, or no Unicode"
        if not answer:
            return "an empty answer"
        if "sorry" in answer.casefold() and len(answer.split()) < _SORRY_WORDS:
            return "the answer is an apology"
        if constraint is None:
            return result if self._keep_unchecked else "a constraint that cannot be verified"
        if not holds(constraint, answer):
            return f"the answer breaks its constraint: {constraint.kind}"
        return result

    def _ask(self, text: str, budget: _Budget) -> str:
        from langchain_core.messages import HumanMessage

        seconds = min(budget.take(), self._call_seconds)
        return str(ask(self._model, [HumanMessage(text)], seconds).text).strip()


@dataclass(slots=True)
class _Budget:
    """The clock's time at which an evolution ends, and the calls that are left."""

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


def _unusable(instruction: Instruction, evolved: str) -> str:
    """Return why a rewritten instruction is dropped; empty where it is kept."""
    if not evolved:
        return "no instruction was returned"
    same = letter_words(evolved.casefold()) == letter_words(instruction.prompt.casefold())
    return "the same as the original" if same else ""


def _is_outcome(record: dict[str, Any]) -> bool:
    return "constraint" in record and all(isinstance(record.get(name), str) for name in _TEXTS)
