"""Evolution by a chat model (Evol-Instruct, Xu et al. 2023), its answers verified."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError, cleaned
from casewright.finetune.instructions.constraint import TEXT_KINDS, holds, read_constraint
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.rule import WORDINGS
from casewright.finetune.instructions.words import STOP_WORDS, letter_words, words
from casewright.finetune.queries.no_answer import MOST_FAILURES, json_object, no_answer
from casewright.finetune.queries.resumed_lines import ResumedLines
from casewright.planner.chat_call import ask
from casewright.planner.chat_planner import model_name

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

OPERATIONS: Mapping[str, str] = {
    "constraints": "Add one more constraint or requirement.",
    "deepening": "If it asks about certain issues, ask about them more deeply or broadly.",
    "concretizing": "Replace general concepts with more specific concepts.",
    "reasoning": "If a few simple steps answer it, rewrite it so that more steps of reasoning "
    "are explicitly asked for.",
}
#: What the model is offered; to repeat the request means nothing once the request is another.
CHAT_KINDS = {name: kind for name, kind in TEXT_KINDS.items() if name != "repeats_request"}
_TYPES = {int: "a whole number", str: "a text", list: "a list of texts"}


def rewrite_prompt(instruction: str, operation: str) -> str:
    """Return what asks for a harder instruction, by one of ``OPERATIONS``."""
    listed = "\n".join(
        f"- {name} {_shown(kind.parameters)}: {kind.says}" for name, kind in CHAT_KINDS.items()
    )
    form: str = WORDINGS["rewrite"]
    return form.format(operation=OPERATIONS[operation], kinds=listed, instruction=instruction)


def read_rewrite(text: str) -> tuple[str, Any]:
    """Return the new instruction and its constraint's record; both empty where there is none."""
    read = json_object(text) or {}
    if not isinstance(read.get("instruction"), str):
        return "", None
    return read["instruction"].strip(), read.get("constraint")


def _shown(parameters: Mapping[str, type]) -> str:
    inside = ", ".join(f'"{name}": {_TYPES[type_]}' for name, type_ in parameters.items())
    return f"{{{inside}}}"


#: Answers below this many words that say sorry are refusals (the paper's number).
_SORRY_WORDS = 80
#: Words of the prompt that asks for the rewriting.
_COPIED = re.compile(
    r"(?i)#?\s*(?:given|rewritten|created|original) (?:prompt|instruction)#?|a program can verify"
    r'|"constraint"\s*:'
)
_TEXTS = ("key", "operation", "instruction", "answer")


@dataclass(slots=True)
class ChatEvolution:
    """What a chat model made.

    Attributes:
        evolved: The evolved instructions; the answers of all are verified, unless unchecked ones
            were to be kept.
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
        self._known = {one["key"]: one for one in self._file.records} if self._file else {}
        self._seconds = seconds
        self._calls = calls
        self._call_seconds = call_seconds
        self._keep_unchecked = keep_unchecked

    def evolve(self, instructions: Sequence[Instruction], count: int) -> ChatEvolution:
        """Return up to ``count`` evolved instructions, asked for in this order.

        Each instruction is evolved once, by the operations in turn. Plans are left alone.

        Raises:
            InputError: The cache's file cannot be written.
        """
        result = ChatEvolution()
        budget = _Budget(time.monotonic() + self._seconds, self._calls)
        texts = [one for one in instructions if one.planned is None]
        failures = 0
        for instruction, operation in zip(texts, cycle(OPERATIONS), strict=False):
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
                if failures == MOST_FAILURES:
                    result.stopped = cleaned(no_answer(self._model, error, self._call_seconds))
                    break
                continue
            if isinstance(found := self._read(instruction, outcome), Instruction):
                result.evolved.append(found)
            else:
                result.refused[found] += 1
        return result

    def _outcome(self, instruction: Instruction, operation: str, budget: _Budget) -> dict[str, Any]:
        key = _key(self._name, operation, instruction.prompt)
        if key in self._known:
            return self._known[key]
        said = self._ask(rewrite_prompt(instruction.prompt, operation), budget)
        evolved, constraint = read_rewrite(said)
        # What is dropped for its instruction alone needs no answer.
        why = eliminated(instruction.prompt, evolved, "answer")
        self._known[key] = outcome = {
            "key": key,
            "id": instruction.id,
            "operation": operation,
            "instruction": evolved,
            "constraint": constraint,
            "answer": "" if why else self._ask(evolved, budget),
        }
        if self._file:
            self._file.append(outcome)
        return outcome

    def _read(self, instruction: Instruction, outcome: dict[str, Any]) -> Instruction | str:
        """Return the evolved instruction, or why there is none."""
        evolved, answer = outcome["instruction"], outcome["answer"]
        if why := eliminated(instruction.prompt, evolved, answer or "answer"):
            return why
        constraint = read_constraint(outcome["constraint"])
        if constraint is not None and constraint.kind not in CHAT_KINDS:
            constraint = None
        made = replace(
            instruction,
            id=f"{instruction.id}~chat:{outcome['operation']}",
            prompt=evolved,
            answer=answer,
            original=instruction.prompt,
            labels=(),
            constraints=(constraint,) if constraint else (),
        )
        if not made.readable:
            return "control characters, or no Unicode"
        if not answer:
            return "an empty answer"
        if constraint is None:
            return made if self._keep_unchecked else "a constraint that cannot be verified"
        if not holds(constraint, evolved, answer):
            return f"the answer breaks its constraint: {constraint.kind}"
        return made

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


def eliminated(original: str, evolved: str, answer: str) -> str:
    """Return why an evolved instruction is dropped (section 3.2); empty where it is kept."""
    if not evolved:
        return "no instruction was returned"
    if letter_words(evolved.casefold()) == letter_words(original.casefold()):
        return "the same as the original"
    if _COPIED.search(evolved):
        return "copies words of the prompt that asked for it"
    if "sorry" in answer.casefold() and len(words(answer)) < _SORRY_WORDS:
        return "the answer is an apology"
    said = [word.lower() for word in letter_words(answer)]
    if not any(char.isdigit() for char in answer) and all(word in STOP_WORDS for word in said):
        return "the answer has only stop words and punctuation"
    return ""


def _is_outcome(record: dict[str, Any]) -> bool:
    return "constraint" in record and all(isinstance(record.get(name), str) for name in _TEXTS)


def _key(model: str, operation: str, prompt: str) -> str:
    return hashlib.sha256("\0".join((model, operation, prompt)).encode()).hexdigest()[:32]
