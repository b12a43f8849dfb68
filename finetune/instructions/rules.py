"""Evolution by rules: one to three compatible constraints, and an answer that keeps them all.

In Evol-Instruct (Xu et al. 2023, arXiv:2304.12244, section 3.2) a model adds constraints and writes
a new answer. A rule adds only verifiable constraints, which the present answer already keeps, or
keeps after a change that does not reword it.
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
#: Words that descriptions of unrelated tools share.
_SHARED = """
based calculate calculates compute data details determine fetch find finds format function gets
given information list name number object output parameters provide provided response result
results retrieve retrieves return returns specific specified string structure successful tool type
user value
"""
_COMMON = frozenset(map(stem, _SHARED.split()))


@dataclass(frozen=True, slots=True)
class ToolRule:
    """A rule for plans, which proposes a changed query and its constraint; see ``Rule``."""

    name: str
    propose: Callable[[PlannedQuery, random.Random], _PlanProposal]

    def evolved(self, instruction: Instruction, rng: random.Random) -> Instruction | None:
        """Return a plan instruction with other tools or a forbidden one, if the rule applies."""
        planned = instruction.planned
        if planned is None or instruction.constraints:
            return None
        if (proposal := self.propose(planned, rng)) is None:
            return None
        changed, constraint = proposal
        id_ = f"{instruction.id}~{self.name}"
        try:
            result = planned_instruction(id_, instruction.source, changed)
        except CasewrightError:
            # The longer question exceeds the limit on its length.
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
    # A similar tool that stays might do the work of the withdrawn one.
    box = planned.toolbox
    unique = [tool for tool in used if not _alike(box, [tool], list(box.without(tool).names))]
    if not unique:
        return None
    withdrawn = rng.choice(unique)
    toolbox = box.without(withdrawn)
    rest = Plan(tuple(step for step in plan.steps if step.tool != withdrawn))
    return _with(planned, toolbox, rest, rng.choice(WORDINGS["partly"])), _only(toolbox)


def _none_left(planned: PlannedQuery, rng: random.Random) -> _PlanProposal:
    unneeded = _unneeded(planned)
    used = sorted(set(planned.plan.tools) - {NO_EVIDENCE.name})
    if not used or not unneeded or _alike(planned.toolbox, used, unneeded):
        return None
    toolbox = planned.toolbox.without(*used)
    return _with(planned, toolbox, _EMPTY), _only(toolbox)


def _alike(toolbox: Toolbox, some: list[str], others: list[str]) -> bool:
    """Return whether names or descriptions of two groups of tools share a telling word."""

    def words(names: list[str]) -> set[str]:
        texts = (f"{name.replace('_', ' ')} {toolbox[name].description}" for name in names)
        return {part for text in texts for part in stems(text)} - _COMMON

    return bool(words(some) & words([n for n in others if n != NO_EVIDENCE.name]))


TOOL_RULES = (
    ToolRule("fewer_tools", _fewer),
    ToolRule("forbidden_tool", _forbidden),
    ToolRule("withdrawn_tool", _withdrawn),
    ToolRule("no_tool_left", _none_left),
)


#: Most constraints of an instruction.
MOST_CONSTRAINTS = 3
#: A constraint's parameters and the answer that keeps it; ``None`` if a rule does not apply.
Proposal = tuple[Mapping[str, Any], str] | None
#: Proposes for a question and its answer.
Propose = Callable[[str, str, random.Random], Proposal]
#: Rules that add something around an answer run before those that observe the final answer.
WRAP, OBSERVE = 0, 1
#: A prompt that ends so is completed by the answer: no constraint may come between.
_CUE = (":", "=", ">", "-", "…", "...", ",", '"')
#: The share of constraints that precede a question, if they may follow it.
_BEFORE = 0.25
#: Longest answer whose length is limited, and shortest one whose words are constrained.
_MOST_WORDS, _SOME_WORDS = 150, 8
#: Requests about the form of a text or of its answer, which a constraint could contradict.
_ABOUT_FORM = re.compile(
    r"(?i)\b(?:capitali[sz]|upper.?case|lower.?case|punctuat|spell|grammar|proofread|typo|format"
    r"|json|html|xml|latex|markdown|code|program|function|script|regex|sql|python|bash|command"
    r"|comma|quot|bullet|table|rewrite|rephrase|paraphrase|edit|convert|translat|letters?|acronym"
    r"|rhym|replace|placeholder|fill in|dialog|only|exactly|at most|at least|no more than"
    r"|(?:no longer|less|fewer) than|up to [0-9]+|[0-9]+ (?:words|sentences|characters|lines)"
    r"|(?:one|single|two|three|a) (?:word|sentence|line|paragraph)s?|titled?|list of"
    r"|(?:start|begin|end)(?:s|n?ing)? with|in the form)"
)
#: Code, calls, markup, formulas, addresses: not prose.
_MARKED = re.compile(r"[{}\\<>`|=_#@~^]|https?:|www\.|\t|\[\[|\*\*|\w\(['\"]|\w\(\)")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that adds a constraint of its kind to a text; ``stage`` is ``WRAP`` or ``OBSERVE``."""

    kind: str
    stage: int
    propose: Propose

    @property
    def parts(self) -> frozenset[str]:
        """The parts of an answer that it constrains; see ``ConstraintKind.governs``."""
        return KINDS[self.kind].parts

    def evolved(self, instruction: Instruction, rng: random.Random) -> Instruction | None:
        """Return the instruction with the constraint, if the rule applies to its text."""
        original = instruction.original or instruction.prompt
        if instruction.planned is not None or _ABOUT_FORM.search(original):
            return None
        if (proposal := self.propose(original, instruction.answer, rng)) is None:
            return None
        parameters, answer = proposal
        wording = rng.choice(WORDINGS[self.kind]).format(**parameters)
        constraints = (*instruction.constraints, Constraint(self.kind, parameters, wording))
        return replace(
            instruction,
            id=f"{instruction.id.partition('~')[0]}~{'+'.join(c.kind for c in constraints)}",
            prompt=_with_constraints(original, constraints, rng),
            answer=answer,
            constraints=constraints,
            original=original,
        )


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
    """Return the content words of a text that another text has in no form."""
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
    """Evolves instructions by rules, the seldom used ones first; deterministic for an ``rng``."""

    def __init__(self, rng: random.Random, most: int = MOST_CONSTRAINTS) -> None:
        self._rng = rng
        self._most = most
        self.used: Counter[str] = Counter()

    def evolve(self, instruction: Instruction) -> Instruction | None:
        """Return the evolved instruction, its constraints verified; ``None`` if no rule fits."""
        if instruction.planned is not None:
            return self._with_other_tools(instruction)
        return self._compose(instruction, self._rng.randint(1, self._most))

    def _with_other_tools(self, instruction: Instruction) -> Instruction | None:
        # No rule depends on what others drew.
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
            candidate = rule.evolved(evolved, self._rng)
            # It may break another constraint: an exact phrase may contain an excluded word.
            if candidate is not None and candidate.satisfied():
                evolved = candidate
                self.used[rule.kind] += 1
        return None if evolved is instruction else evolved

    def _pick(self, instruction: Instruction, count: int) -> list[Rule]:
        fitting = [rule for rule in RULES if rule.evolved(instruction, random.Random(0))]
        picked: list[Rule] = []
        for rule in sorted(fitting, key=lambda rule: self._preference(rule.kind)):
            if len(picked) < count and not any(rule.parts & other.parts for other in picked):
                picked.append(rule)
        return picked

    def _preference(self, name: str) -> float:
        return (1 + self.used[name]) * self._rng.random()
