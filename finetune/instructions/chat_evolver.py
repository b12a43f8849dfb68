"""Evolution by a chat model (Evol-Instruct, Xu et al. 2023), with verified answers."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError, cleaned
from casewright.finetune.instructions.constraint import TEXT_KINDS, WORDINGS, holds, read_constraint
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.words import letter_words
from casewright.finetune.queries.no_answer import MOST_FAILURES, json_object, no_answer
from casewright.finetune.queries.query_files import ResumedLines
from casewright.planner.chat_call import ask
from casewright.planner.chat_planner import model_name

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_TYPES = {int: "a whole number", str: "a text"}
#: Shorter answers that say sorry are refusals (Xu et al. 2023, section 3.2).
_SORRY_WORDS = 80
#: Deadline of one call.
_CALL_SECONDS = 60.0


def rewrite_prompt(instruction: str) -> str:
    """Return the prompt that asks for the instruction with one more constraint."""
    kinds = []
    for name, kind in TEXT_KINDS.items():
        fields = ", ".join(f'"{key}": {_TYPES[type_]}' for key, type_ in kind.parameters.items())
        kinds.append(f"- {name} {{{fields}}}: {kind.says}")
    wording: str = WORDINGS["rewrite"]
    return wording.format(kinds="\n".join(kinds), instruction=instruction)


@dataclass(slots=True)
class ChatEvolution:
    """The evolved instructions, the number of dropped ones by reason, and why it ended early."""

    evolved: list[Instruction] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    stopped: str = ""


class _Spent(Exception):  # noqa: N818 - an end, no error
    """The budget of time or of calls is spent; the text says which."""


class ChatEvolver:
    """Evolves instructions by a chat model: it rewrites an instruction, then answers it.

    Args:
        cache: A JSON Lines file to which each outcome is appended, and from which a later run
            resumes; ``InputError`` if it cannot be read or written.
        seconds: Deadline of all calls together.
        calls: Most calls.
        keep_unchecked: Whether an instruction is kept whose constraint cannot be verified.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        cache: Path | None = None,
        seconds: float = 3600.0,
        calls: int = 10_000,
        keep_unchecked: bool = False,
    ) -> None:
        self._model = model
        self._name = model_name(model)
        self._file = cache and ResumedLines(cache, _is_outcome, "no outcome of an evolution")
        self._known = {record["key"]: record for record in self._file.records} if self._file else {}
        self._seconds = seconds
        self._calls = calls
        # Of one evolution: the monotonic time at which it ends, and the calls that are left.
        self._ends, self._left = 0.0, calls
        self._keep_unchecked = keep_unchecked

    def evolve(self, instructions: Sequence[Instruction], count: int) -> ChatEvolution:
        """Return up to ``count`` evolved instructions, in this order; plans are skipped."""
        result = ChatEvolution()
        self._ends, self._left = time.monotonic() + self._seconds, self._calls
        failures = 0
        for instruction in (item for item in instructions if item.planned is None):
            if len(result.evolved) >= count:
                break
            try:
                outcome = self._outcome(instruction)
                failures = 0
            except _Spent as spent:
                result.stopped = str(spent)
                break
            except InputError:
                raise
            except Exception as error:  # noqa: BLE001 - models raise anything
                failures += 1
                result.refused["the model failed"] += 1
                if failures == MOST_FAILURES:
                    result.stopped = cleaned(no_answer(self._model, error, _CALL_SECONDS))
                    break
                continue
            evolved = self._evolved(instruction, outcome)
            if isinstance(evolved, Instruction):
                result.evolved.append(evolved)
            else:
                result.refused[evolved] += 1
        return result

    def _outcome(self, instruction: Instruction) -> dict[str, Any]:
        key = hashlib.sha256(f"{self._name}\0{instruction.prompt}".encode()).hexdigest()[:32]
        if key in self._known:
            return self._known[key]
        reply = json_object(self._ask(rewrite_prompt(instruction.prompt))) or {}
        evolved = reply.get("instruction")
        evolved = evolved.strip() if isinstance(evolved, str) else ""
        self._known[key] = outcome = {
            "key": key,
            "id": instruction.id,
            "instruction": evolved,
            "constraint": reply.get("constraint"),
            # A dropped instruction needs no answer.
            "answer": "" if _unusable(instruction, evolved) else self._ask(evolved),
        }
        if self._file:
            self._file.append(outcome)
        return outcome

    def _evolved(self, instruction: Instruction, outcome: dict[str, Any]) -> Instruction | str:
        """Return the evolved instruction, or why it is dropped."""
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

    def _ask(self, text: str) -> str:
        from langchain_core.messages import HumanMessage

        seconds = self._ends - time.monotonic()
        if seconds <= 0:
            raise _Spent("the time for all calls is over")
        if not self._left:
            raise _Spent("all calls are made")
        self._left -= 1
        reply = ask(self._model, [HumanMessage(text)], min(seconds, _CALL_SECONDS))
        return str(reply.text).strip()


def _unusable(instruction: Instruction, evolved: str) -> str:
    """Return why a rewritten instruction is dropped; empty if it is kept."""
    if not evolved:
        return "no instruction was returned"
    same = letter_words(evolved.casefold()) == letter_words(instruction.prompt.casefold())
    return "the same as the original" if same else ""


def _is_outcome(record: dict[str, Any]) -> bool:
    texts = (record.get(name) for name in ("key", "instruction", "answer"))
    return "constraint" in record and all(isinstance(text, str) for text in texts)
