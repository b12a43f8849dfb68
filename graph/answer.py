"""The answer of a run: text, checked citations, evidence, plan and steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from casewright.errors import CasewrightError


def clarification(planning: Mapping[str, Any]) -> str:
    """Return the question to ask the user ("" if none), given the record ``Answer.planner``."""
    if not planning.get("asks_back"):
        return ""
    doubt = "The planner is not sure of this plan."
    if not (alternatives := planning.get("alternatives")):
        return f"{doubt} Please ask in other words."
    return f"{doubt} Did you mean this instead?\n{alternatives[0]}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one run.

    Attributes:
        text: The answer; ``[E1]`` cites the evidence with the id ``E1``.
        citations: The ids of the cited evidence, in the order of their first mention.
        evidence: All pieces of evidence, each in the JSON form of ``Evidence``.
        missing: One sentence for each step without results, with the reason.
        generator: Name of the text's generator; if another one failed before, also the reason.
        plan: The plan's text form.
        planner: The record of planning: the fields of ``PlanResult.to_json``, the plan's ``price``,
            and ``left_out``, which has a sentence for each step or tool that was left out.
        steps: One ``Outcome`` per step, in its JSON form.
        usage: Milliseconds of planning, execution and generation; tokens of planner and generator.
        refused: True if the text cites nothing because the look-ups found nothing.
    """

    text: str
    citations: Sequence[str]
    evidence: Sequence[Mapping[str, Any]]
    missing: Sequence[str]
    plan: str
    planner: Mapping[str, Any]
    generator: str
    steps: Sequence[Mapping[str, Any]]
    usage: Mapping[str, Any] = field(default_factory=dict)
    run_id: str = ""
    refused: bool = False

    @property
    def clarification(self) -> str:
        """The question to ask the user; "" if the planner is sure."""
        return clarification(self.planner)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, which the graph's state holds."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Answer:
        """Rebuild an answer from its JSON form."""
        return cls(**data)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Answer:
        """Read the answer from the output of the graph.

        Raise ``CasewrightError`` if the run paused before it had an answer.
        """
        if "answer" not in state:
            questions = [interrupt.value for interrupt in state.get("__interrupt__", ())]
            raise CasewrightError(
                f"The run has no answer yet: it paused to ask {questions}. Resume it on its "
                "thread: graph.invoke(Command(resume=…), config)."
            )
        return cls.from_json(state["answer"])
