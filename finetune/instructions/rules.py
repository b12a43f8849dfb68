"""Evolves instructions: rules add one to three constraints that the instruction's answer satisfies.

In Evol-Instruct (Xu et al. 2023, arXiv:2304.12244, section 3.2) a model adds constraints and writes
a new answer. Here, a rule adds a constraint that the existing answer satisfies; some rules first
add a text to the answer. As in IFEval (Zhou et al. 2023, arXiv:2311.07911, section 2 and table 1),
the wording of a constraint varies, and a program verifies the constraint.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import regex as re

from casewright.finetune.instructions.instruction import Constraint, Instruction
from casewright.stores.feedback.sufficiency import content_words

_FILE = Path(__file__).parent / "wordings.toml"
#: The wordings of constraints, by kind, and the texts that rules add to answers.
WORDINGS: Mapping[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))

#: Maximum number of constraints of an instruction.
MAX_CONSTRAINTS = 3
#: A constraint's parameters and an answer that satisfies it; ``None`` if a rule does not apply.
Proposal = tuple[Mapping[str, Any], str] | None
#: Takes a prompt without constraints, the prompt's answer and a generator; returns a proposal.
Propose = Callable[[str, str, random.Random], Proposal]
#: Returns true if an answer satisfies a constraint with these parameters.
Check = Callable[[Mapping[str, Any], str], bool]
#: If a prompt ends with one of these, the answer continues it, so constraints must precede it.
_CUES = (":", "=", ">", "-", "…", "...", ",", '"')
#: Probability that constraints precede the prompt, if they may follow it.
_PRECEDING_PROBABILITY = 0.25
#: A limit on words is only proposed for an answer with at most this many words.
_MAX_LIMITED_WORDS = 150
#: Minimum number of words of prose. Constraints on words and commas are only for prose.
_MIN_PROSE_WORDS = 8
#: Requests about the form of a text or an answer, which a constraint could contradict.
_ABOUT_FORM = re.compile(
    r"(?i)\b(?:capitali[sz]|upper.?case|lower.?case|punctuat|spell|grammar|proofread|typo|format"
    r"|json|html|xml|latex|markdown|code|program|function|script|regex|sql|python|bash|command"
    r"|comma|quot|bullet|table|rewrite|rephrase|paraphrase|edit|convert|translat|letters?|acronym"
    r"|rhym|replace|placeholder|fill in|dialog|only|exactly|at most|at least|no more than"
    r"|(?:no longer|less|fewer) than|up to [0-9]+|[0-9]+ (?:words|sentences|characters|lines)"
    r"|(?:one|single|two|three|a) (?:word|sentence|line|paragraph)s?|titled?|list of"
    r"|(?:start|begin|end)(?:s|n?ing)? with|in the form)"
)
#: Words of four letters or more, which may have inner hyphens and apostrophes.
_LONG_WORD = re.compile(r"[^\W\d_](?:['’\-]?[^\W\d_]){3,}")
#: Signs of code, calls, markup, formulas and addresses, which are not prose.
_MARKUP = re.compile(r"[{}\\<>`|=_#@~^]|https?:|www\.|\t|\[\[|\*\*|\w\(['\"]|\w\(\)")


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of constraint, with functions that propose its parameters and check an answer.

    Attributes:
        parts: The constrained parts of an answer; rules with a common part are not combined.
        wraps: True if the rule adds a text to the answer; these rules are applied first.
    """

    kind: str
    parts: frozenset[str]
    check: Check
    propose: Propose
    wraps: bool = False

    def apply(self, instruction: Instruction, rng: random.Random) -> Instruction | None:
        """Return the instruction with the constraint; ``None`` if the rule does not apply."""
        original = instruction.original or instruction.prompt
        if _ABOUT_FORM.search(original):
            return None
        if (proposal := self.propose(original, instruction.answer, rng)) is None:
            return None
        parameters, answer = proposal
        wording = rng.choice(WORDINGS[self.kind]).format(**parameters)
        constraints = (*instruction.constraints, Constraint(self.kind, parameters, wording))
        wordings = (" " if rng.random() < 0.7 else "\n").join(c.wording for c in constraints)
        precede = original.rstrip().endswith(_CUES) or rng.random() < _PRECEDING_PROBABILITY
        return replace(
            instruction,
            id=f"{instruction.id.partition('~')[0]}~{'+'.join(c.kind for c in constraints)}",
            prompt=f"{wordings}\n\n{original}" if precede else f"{original.rstrip()}\n\n{wordings}",
            answer=answer,
            constraints=constraints,
            original=original,
        )


def _is_prose(answer: str, min_words: int = _MIN_PROSE_WORDS) -> bool:
    letters = sum(char.isalpha() or char.isspace() for char in answer)
    has_words = letters >= 0.75 * len(answer) and len(answer.split()) >= min_words
    return has_words and not _MARKUP.search(answer)


def has_word(answer: str, word: str) -> bool:
    """Return True if a text has a word in any case; hyphens and apostrophes are parts of words."""
    pattern = rf"(?<![\w'’\-]){re.escape(word.casefold())}(?![\w'’\-])"
    return bool(re.search(pattern, answer.casefold()))


def _propose_start(prompt: str, answer: str, rng: random.Random) -> Proposal:
    phrase = rng.choice(WORDINGS["a_beginning"])
    return {"phrase": phrase}, phrase + ("\n" if "\n" in answer else " ") + answer


def _propose_end(prompt: str, answer: str, rng: random.Random) -> Proposal:
    phrase = rng.choice(WORDINGS["an_end"])
    is_one_line = "\n" not in answer and answer.endswith((".", "!", "?"))
    return {"phrase": phrase}, answer + (" " if is_one_line else "\n") + phrase


def _propose_quotes(prompt: str, answer: str, rng: random.Random) -> Proposal:
    return None if '"' in answer else ({}, f'"{answer}"')


def _propose_json(prompt: str, answer: str, rng: random.Random) -> Proposal:
    key = rng.choice(WORDINGS["a_key"])
    return {"key": key}, json.dumps({key: answer}, ensure_ascii=False)


def _is_json(parameters: Mapping[str, Any], answer: str) -> bool:
    try:
        decoded = json.loads(answer)
    except (ValueError, RecursionError):
        return False
    value = decoded.get(parameters["key"]) if isinstance(decoded, dict) else None
    return isinstance(value, str) and bool(value.strip()) and len(decoded) == 1


def _propose_word_limit(prompt: str, answer: str, rng: random.Random) -> Proposal:
    count = len(answer.split())
    if count > _MAX_LIMITED_WORDS or not _is_prose(answer, min_words=0):
        return None
    step = 1 if count <= 5 else 5 if count <= 50 else 10
    return {"n": max(2, -(-count // step) * step)}, answer  # rounded up to a multiple of step


def _propose_no_commas(prompt: str, answer: str, rng: random.Random) -> Proposal:
    return ({}, answer) if "," not in answer and _is_prose(answer) else None


def _propose_included_word(prompt: str, answer: str, rng: random.Random) -> Proposal:
    words = _words_only_in(answer, prompt)
    return ({"word": rng.choice(words)}, answer) if words and _is_prose(answer) else None


def _propose_excluded_word(prompt: str, answer: str, rng: random.Random) -> Proposal:
    words = _words_only_in(prompt, answer)
    return ({"word": rng.choice(words)}, answer) if words and _is_prose(answer) else None


def _words_only_in(text: str, other: str) -> list[str]:
    """Return the long words of ``text``, except words that ``other`` has in any form."""
    other_forms = content_words(other)
    words = {word for word in _LONG_WORD.findall(text.lower()) if has_word(text, word)}
    return sorted(w for w in words if (forms := content_words(w)) and not forms & other_forms)


_START, _END = frozenset({"start"}), frozenset({"end"})
_COMMA, _LENGTH, _WORDS = frozenset({"comma"}), frozenset({"length"}), frozenset({"words"})
#: The rules by kind. In a check, ``p`` are the parameters, and ``a`` is the answer. The last
#: argument ``True`` means that the rule adds a text to the answer (``wraps``).
RULES: Mapping[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule("begins_with", _START, lambda p, a: a.startswith(p["phrase"]), _propose_start, True),
        Rule("ends_with", _END, lambda p, a: a.endswith(p["phrase"]), _propose_end, True),
        Rule(
            "quoted",
            _START | _END,
            lambda p, a: len(a) > 2 and a[0] == a[-1] == '"' and '"' not in a[1:-1],
            _propose_quotes,
            True,
        ),
        Rule("json", _START | _END | _COMMA | _LENGTH, _is_json, _propose_json, True),
        Rule("at_most_words", _LENGTH, lambda p, a: len(a.split()) <= p["n"], _propose_word_limit),
        Rule("no_commas", _COMMA, lambda p, a: "," not in a, _propose_no_commas),
        Rule("includes", _WORDS, lambda p, a: has_word(a, p["word"]), _propose_included_word),
        Rule("excludes", _WORDS, lambda p, a: not has_word(a, p["word"]), _propose_excluded_word),
    )
}


def holds(constraint: Constraint, answer: str) -> bool:
    """Return True if an answer satisfies a constraint; an empty answer satisfies none."""
    return bool(answer.strip() and RULES[constraint.kind].check(constraint.parameters, answer))


class RuleEvolver:
    """Evolves instructions by rules; prefers rules that it has used less often."""

    def __init__(self, rng: random.Random, max_constraints: int = MAX_CONSTRAINTS) -> None:
        self._rng = rng
        self._max_constraints = max_constraints
        self.used: Counter[str] = Counter()  # uses by kind of rule

    def evolve(self, instruction: Instruction) -> Instruction | None:
        """Return the instruction with verified constraints; ``None`` if no rule applies."""
        evolved = instruction
        rules = self._pick_rules(instruction, self._rng.randint(1, self._max_constraints))
        for rule in sorted(rules, key=lambda rule: not rule.wraps):
            candidate = rule.apply(evolved, self._rng)
            # A rule may break another constraint: an exact phrase may contain an excluded word.
            if candidate and all(holds(c, candidate.answer) for c in candidate.constraints):
                evolved = candidate
                self.used[rule.kind] += 1
        return None if evolved is instruction else evolved

    def _pick_rules(self, instruction: Instruction, count: int) -> list[Rule]:
        # This trial of each rule must not advance ``self._rng``, so it has a separate generator.
        applicable = [r for r in RULES.values() if r.apply(instruction, random.Random(0))]
        picked: list[Rule] = []
        for rule in sorted(applicable, key=lambda r: (1 + self.used[r.kind]) * self._rng.random()):
            if len(picked) < count and not any(rule.parts & other.parts for other in picked):
                picked.append(rule)
        return picked
