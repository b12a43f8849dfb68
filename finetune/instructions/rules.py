"""Evolution by rules: one to three constraints that go together, and an answer that keeps all.

Evol-Instruct (Xu et al. 2023, arXiv:2304.12244, section 3.2) has a model add constraints and then
answer anew. A rule adds only what can be verified, and only where the answer that is there keeps
it already or can be brought into its form without being reworded.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from casewright.errors import CasewrightError
from casewright.finetune.instructions.constraint import KINDS, WORDINGS, Constraint, has_word
from casewright.finetune.instructions.instruction import (
    Instruction,
    PlannedQuery,
    planned_instruction,
)
from casewright.finetune.instructions.words import content_words, stem, stems
from casewright.planner import AnnotatedQuery, Plan, Step
from casewright.tools import NO_EVIDENCE, Toolbox

_PlanProposal = tuple[PlannedQuery, Constraint] | None
_EMPTY = Plan((Step(NO_EVIDENCE.name),))
#: Words that descriptions of any tools share.
_SHARED = """
based calculate calculates compute data details determine fetch find finds format function gets
given information list name number object output parameters provide provided response result
results retrieve retrieves return returns specific specified string structure successful tool type
user value
"""
_COMMON = frozenset(map(stem, _SHARED.split()))


@dataclass(frozen=True, slots=True)
class ToolRule:
    """A rule for plans, which proposes another query and the constraint; see ``Rule``."""

    name: str
    propose: Callable[[PlannedQuery, random.Random], _PlanProposal]

    def evolved(self, instruction: Instruction, rng: random.Random) -> Instruction | None:
        """Return the instruction with other tools or a tool forbidden, and the plan for it.

        Returns:
            ``None`` where the rule does not apply: it applies only to plans, and once.
        """
        planned = instruction.planned
        if planned is None or instruction.constraints:
            return None
        if (proposed := self.propose(planned, rng)) is None:
            return None
        changed, constraint = proposed
        id_ = f"{instruction.id}~{self.name}"
        try:
            result = planned_instruction(id_, instruction.source, changed)
        except CasewrightError:
            # The longer question is no question any more: it passes the limit on its length.
            return None
        return replace(result, constraints=(constraint,), original=instruction.prompt)


def _unneeded(planned: PlannedQuery) -> list[str]:
    keep = {*planned.plan.tools, NO_EVIDENCE.name}
    return [name for name in planned.toolbox.names if name not in keep]


def _with(planned: PlannedQuery, toolbox: Toolbox, plan: Plan, wording: str = "") -> PlannedQuery:
    query = planned.query
    text = query.query
    if wording:
        text = text.rstrip()
        text += f" {wording}" if text.endswith((".", "!", "?", '"', "'")) else f". {wording}"
    record = query.record.model_copy(update={"query": text})
    return PlannedQuery(AnnotatedQuery(record, plan, query.label), toolbox)


def _only(toolbox: Toolbox) -> Constraint:
    return Constraint("only_tools", {"tools": list(toolbox.names)})


def _fewer(planned: PlannedQuery, rng: random.Random) -> _PlanProposal:
    unneeded = _unneeded(planned)
    if not unneeded or (planned.plan == _EMPTY and len(unneeded) < 2):
        return None
    most = len(unneeded) - (planned.plan == _EMPTY)
    left_out = rng.sample(unneeded, rng.randint(1, most))
    toolbox = planned.toolbox.without(*left_out)
    return _with(planned, toolbox, planned.plan), _only(toolbox)


def _forbidden(planned: PlannedQuery, rng: random.Random) -> _PlanProposal:
    if planned.plan == _EMPTY or not (unneeded := _unneeded(planned)):
        return None
    tool = rng.choice(unneeded)
    wording = rng.choice(WORDINGS["forbidden_tool"]).format(tool=tool)
    constraint = Constraint("without_tool", {"tool": tool}, wording)
    return _with(planned, planned.toolbox, planned.plan, wording), constraint


def _withdrawn(planned: PlannedQuery, rng: random.Random) -> _PlanProposal:
    plan = planned.plan
    used = sorted(set(plan.tools))
    if len(used) < 2 or any(True for step in plan.steps for _ in step.references()):
        return None
    # Where a tool that stays is much like the one that goes, it may do its work too.
    box = planned.toolbox
    alone = [tool for tool in used if not _alike(box, [tool], list(box.without(tool).names))]
    if not alone:
        return None
    gone = rng.choice(alone)
    toolbox = box.without(gone)
    rest = Plan(tuple(step for step in plan.steps if step.tool != gone))
    return _with(planned, toolbox, rest, rng.choice(WORDINGS["partly"])), _only(toolbox)


def _none_left(planned: PlannedQuery, rng: random.Random) -> _PlanProposal:
    unneeded = _unneeded(planned)
    used = sorted(set(planned.plan.tools) - {NO_EVIDENCE.name})
    if not used or not unneeded or _alike(planned.toolbox, used, unneeded):
        return None
    toolbox = planned.toolbox.without(*used)
    return _with(planned, toolbox, _EMPTY), _only(toolbox)


def _alike(toolbox: Toolbox, some: list[str], others: list[str]) -> bool:
    """Return whether a tool's name or description shares a word with those of another group."""

    def own(names: list[str]) -> set[str]:
        facts = (f"{name.replace('_', ' ')} {toolbox[name].description}" for name in names)
        return {part for text in facts for part in stems(text)} - _COMMON

    return bool(own(some) & own([n for n in others if n != NO_EVIDENCE.name]))


TOOL_RULES = (
    ToolRule("fewer_tools", _fewer),
    ToolRule("forbidden_tool", _forbidden),
    ToolRule("withdrawn_tool", _withdrawn),
    ToolRule("no_tool_left", _none_left),
)


#: Constraints that an instruction is given at most.
MOST_CONSTRAINTS = 3
#: A constraint's parameters and the answer that keeps it; nothing where a rule does not apply.
Proposal = tuple[Mapping[str, Any], str] | None
#: Of a question, its answer and a source of randomness.
Propose = Callable[[str, str, random.Random], Proposal]
#: Rules that put something around an answer come before those that observe the finished answer.
WRAP, OBSERVE = 0, 1
#: A prompt with such an end waits for the answer: nothing may stand between.
_CUE = (":", "=", ">", "-", "…", "...", ",", '"')
#: How often constraints stand before the question, where they may stand after it.
_BEFORE = 0.25
#: Limits on longer answers say little; constraints on the words of shorter ones mean nothing.
_MOST_WORDS, _SOME_WORDS = 150, 8
#: Requests about the form of a text or of its answer, which a further constraint could contradict.
_ABOUT_FORM = re.compile(
    r"(?i)\b(?:capitali[sz]|upper.?case|lower.?case|punctuat|spell|grammar|proofread|typo|format"
    r"|json|html|xml|latex|markdown|code|program|function|script|regex|sql|python|bash|command"
    r"|comma|quot|bullet|table|rewrite|rephrase|paraphrase|edit|convert|translat|letters?|acronym"
    r"|rhym|replace|placeholder|fill in|dialog|only|exactly|at most|at least|no more than"
    r"|(?:no longer|less|fewer) than|up to [0-9]+|[0-9]+ (?:words|sentences|characters|lines)"
    r"|(?:one|single|two|three|a) (?:word|sentence|line|paragraph)s?|titled?|list of"
    r"|(?:start|begin|end)(?:s|n?ing)? with|in the form)"
)
#: Code, calls, markup, formulas, addresses: text whose letters and marks mean something.
_MARKED = re.compile(r"[{}\\<>`|=_#@~^]|https?:|www\.|\t|\[\[|\*\*|\w\(['\"]|\w\(\)")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that adds one constraint to an instruction whose answer is a text.

    Attributes:
        kind: The constraint's kind; unique among the rules.
        stage: ``WRAP`` or ``OBSERVE``.
        propose: Returns the constraint's parameters and the answer that keeps it.
    """

    kind: str
    stage: int
    propose: Propose

    @property
    def parts(self) -> frozenset[str]:
        """The parts of an answer that it constrains; rules with a common part are not combined."""
        return KINDS[self.kind].parts

    def proposal(self, instruction: Instruction, rng: random.Random) -> Proposal:
        """Return what the rule proposes; nothing for plans, or where the form is prescribed."""
        question = asked(instruction)
        if instruction.planned is not None or _ABOUT_FORM.search(question):
            return None
        return self.propose(question, instruction.answer, rng)

    def apply(self, instruction: Instruction, rng: random.Random) -> Instruction:
        """Return the instruction with the constraint, and an answer that is meant to keep it.

        Raises:
            ValueError: The rule does not apply.
        """
        if (proposed := self.proposal(instruction, rng)) is None:
            raise ValueError(f"The rule {self.kind} does not apply to {instruction.id}.")
        parameters, answer = proposed
        wording = rng.choice(WORDINGS[self.kind]).format(**parameters)
        constraints = (*instruction.constraints, Constraint(self.kind, parameters, wording))
        original = asked(instruction)
        return replace(
            instruction,
            id=f"{instruction.id.partition('~')[0]}~{'+'.join(c.kind for c in constraints)}",
            prompt=_with_constraints(original, constraints, rng),
            answer=answer,
            constraints=constraints,
            original=original,
        )


def asked(instruction: Instruction) -> str:
    """Return the prompt before any constraint was added."""
    return instruction.original or instruction.prompt


def _with_constraints(
    original: str, constraints: tuple[Constraint, ...], rng: random.Random
) -> str:
    joined = (" " if rng.random() < 0.7 else "\n").join(item.wording for item in constraints)
    ends = original.rstrip()
    if ends.endswith(_CUE) or rng.random() < _BEFORE:
        return f"{joined}\n\n{original}"
    return f"{ends}\n\n{joined}"


def _is_prose(answer: str) -> bool:
    letters = sum(char.isalpha() or char.isspace() for char in answer)
    return not _MARKED.search(answer) and letters >= 0.75 * len(answer)


def _some_prose(answer: str) -> bool:
    return len(answer.split()) >= _SOME_WORDS and _is_prose(answer)


def _begins_with(question: str, answer: str, rng: random.Random) -> Proposal:
    phrase = rng.choice(WORDINGS["a_beginning"])
    return {"phrase": phrase}, phrase + ("\n" if "\n" in answer else " ") + answer


def _ends_with(question: str, answer: str, rng: random.Random) -> Proposal:
    phrase = rng.choice(WORDINGS["an_end"])
    joined = "\n" not in answer and answer.endswith((".", "!", "?"))
    return {"phrase": phrase}, answer + (" " if joined else "\n") + phrase


def _quoted(question: str, answer: str, rng: random.Random) -> Proposal:
    return None if '"' in answer else ({}, f'"{answer}"')


def _json(question: str, answer: str, rng: random.Random) -> Proposal:
    key = rng.choice(WORDINGS["a_key"])
    return {"key": key}, json.dumps({key: answer}, ensure_ascii=False)


def _at_most_words(question: str, answer: str, rng: random.Random) -> Proposal:
    count = len(answer.split())
    if count > _MOST_WORDS or not _is_prose(answer):
        return None
    step = 1 if count <= 5 else 5 if count <= 50 else 10
    return {"n": max(2, -(-count // step) * step)}, answer


def _no_commas(question: str, answer: str, rng: random.Random) -> Proposal:
    return ({}, answer) if "," not in answer and _some_prose(answer) else None


def _includes(question: str, answer: str, rng: random.Random) -> Proposal:
    new = {word for word in _new_words(answer, question) if has_word(answer, word)}
    return ({"word": rng.choice(sorted(new))}, answer) if new and _some_prose(answer) else None


def _excludes(question: str, answer: str, rng: random.Random) -> Proposal:
    new = _new_words(question, answer)
    return ({"word": rng.choice(sorted(new))}, answer) if new and _some_prose(answer) else None


def _new_words(text: str, other: str) -> set[str]:
    """Return the content words of a text that are in no form in another text."""
    known = stems(other)
    return {word for word in content_words(text) if stem(word) not in known}


RULES = (
    Rule("begins_with", WRAP, _begins_with),
    Rule("ends_with", WRAP, _ends_with),
    Rule("quoted", WRAP, _quoted),
    Rule("json", WRAP, _json),
    Rule("at_most_words", OBSERVE, _at_most_words),
    Rule("no_commas", OBSERVE, _no_commas),
    Rule("includes", OBSERVE, _includes),
    Rule("excludes", OBSERVE, _excludes),
)


class RuleEvolver:
    """Evolves instructions by rules; rules that were used seldom are preferred.

    Args:
        rng: The source of randomness: the same calls in the same order give the same results.
        most: Constraints that an instruction is given at most, 1 to 3.
    """

    def __init__(self, rng: random.Random, most: int = MOST_CONSTRAINTS) -> None:
        self._rng = rng
        self._most = most
        self.used: Counter[str] = Counter()

    def evolve(self, instruction: Instruction) -> Instruction | None:
        """Return the instruction evolved, every constraint verified; nothing where no rule fits."""
        if instruction.planned is not None:
            return self._with_other_tools(instruction)
        return self._compose(instruction, self._rng.randint(1, self._most))

    def _with_other_tools(self, instruction: Instruction) -> Instruction | None:
        # Each rule is tried apart from what the rules before it draw.
        fitting = [rule for rule in TOOL_RULES if rule.evolved(instruction, random.Random(0))]
        for rule in sorted(fitting, key=lambda rule: self._preference(rule.name)):
            evolved = rule.evolved(instruction, self._rng)
            if evolved is not None and evolved.satisfied():
                self.used[rule.name] += 1
                return evolved
        return None

    def _compose(self, instruction: Instruction, count: int) -> Instruction | None:
        evolved = instruction
        for rule in sorted(self._pick(instruction, count), key=lambda rule: rule.stage):
            if rule.proposal(evolved, random.Random(0)) is not None:
                tried = rule.apply(evolved, self._rng)
                # A phrase that is to be exact, for example, may have a word that is excluded.
                if tried.satisfied():
                    evolved = tried
                    self.used[rule.kind] += 1
        return None if evolved is instruction else evolved

    def _pick(self, instruction: Instruction, count: int) -> list[Rule]:
        rng = random.Random(0)
        fitting = [rule for rule in RULES if rule.proposal(instruction, rng) is not None]
        picked: list[Rule] = []
        for rule in sorted(fitting, key=lambda rule: self._preference(rule.kind)):
            if len(picked) < count and not any(rule.parts & other.parts for other in picked):
                picked.append(rule)
        return picked

    def _preference(self, name: str) -> float:
        return (1 + self.used[name]) * self._rng.random()
