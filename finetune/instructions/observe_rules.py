"""Rules that ask for what the finished answer has already: nothing is changed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from casewright.finetune.instructions.constraint import has_word
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.rule import OBSERVE, Rule, asked
from casewright.finetune.instructions.suitability import (
    about_form,
    is_bound,
    is_prose,
    plain_sentences,
)
from casewright.finetune.instructions.words import content_words, lines, words

#: Limits on longer answers say little.
_MOST_WORDS, _MOST_SENTENCES, _MOST_LINES = 150, 5, 12
#: Characters of a line that is called one.
_LONGEST_LINE = 160
#: Words that an answer needs so that a constraint on its words means something.
_SOME_WORDS = 8
#: Words that begin alike are forms of one word.
_STEM = 5
_Proposal = tuple[Mapping[str, Any], str] | None


def _at_most_words(instruction: Instruction, rng: random.Random) -> _Proposal:
    count = len(words(instruction.answer))
    if count > _MOST_WORDS or is_bound(asked(instruction)) or not is_prose(instruction.answer):
        return None
    step = 1 if count <= 5 else 5 if count <= 50 else 10
    return {"n": -(-count // step) * step}, instruction.answer


def _at_most_sentences(instruction: Instruction, rng: random.Random) -> _Proposal:
    count = len(plain_sentences(instruction.answer))
    if not 1 <= count <= _MOST_SENTENCES or is_bound(asked(instruction)):
        return None
    return {"n": count}, instruction.answer


def _lines(instruction: Instruction, rng: random.Random) -> _Proposal:
    found = lines(instruction.answer)
    count = len(found)
    # A line with nothing in it is blank too; a long one is a paragraph.
    plain = instruction.answer.count("\n") == count - 1 and max(map(len, found)) <= _LONGEST_LINE
    if not 2 <= count <= _MOST_LINES or not plain:
        return None
    question = asked(instruction)
    if is_bound(question) or about_form(question):
        return None
    return {"n": count}, instruction.answer


def _no_commas(instruction: Instruction, rng: random.Random) -> _Proposal:
    if "," in instruction.answer or len(words(instruction.answer)) < _SOME_WORDS:
        return None
    return ({}, instruction.answer) if is_prose(instruction.answer) else None


def _includes(instruction: Instruction, rng: random.Random) -> _Proposal:
    found = content_words(instruction.answer)
    if len(words(instruction.answer)) < _SOME_WORDS or not is_prose(instruction.answer):
        return None
    known = {word[:_STEM] for word in content_words(asked(instruction))}
    new = sorted({w for w in found if w[:_STEM] not in known and has_word(instruction.answer, w)})
    return ({"word": rng.choice(new)}, instruction.answer) if new else None


def _excludes(instruction: Instruction, rng: random.Random) -> _Proposal:
    if len(words(instruction.answer)) < _SOME_WORDS or not is_prose(instruction.answer):
        return None
    said = {word[:_STEM] for word in content_words(instruction.answer)}
    absent = sorted({w for w in content_words(asked(instruction)) if w[:_STEM] not in said})
    return ({"word": rng.choice(absent)}, instruction.answer) if absent else None


def _one_of(instruction: Instruction, rng: random.Random) -> _Proposal:
    if len(instruction.labels) < 2 or instruction.answer not in instruction.labels:
        return None
    return {"labels": list(instruction.labels)}, instruction.answer


OBSERVE_RULES = (
    Rule(
        "at_most_words",
        "at_most_words",
        OBSERVE,
        _at_most_words,
        (
            "Use at most {n_words}.",
            "Your answer may not be longer than {n_words}.",
            "Answer in no more than {n_words}.",
            "Keep to {n_words} at most.",
        ),
    ),
    Rule(
        "at_most_sentences",
        "at_most_sentences",
        OBSERVE,
        _at_most_sentences,
        (
            "Use at most {n_sentences}.",
            "Answer in no more than {n_sentences}.",
            "Your answer may not have more than {n_sentences}.",
        ),
    ),
    Rule(
        "lines",
        "lines",
        OBSERVE,
        _lines,
        (
            "Write exactly {n_lines}.",
            "Your answer must have exactly {n_lines}.",
            "Answer in exactly {n_lines}, with no blank line between them.",
        ),
    ),
    Rule(
        "no_commas",
        "no_commas",
        OBSERVE,
        _no_commas,
        (
            "Do not use any commas.",
            "Your answer must not have a single comma in it.",
            "Refrain from commas in your answer.",
        ),
    ),
    Rule(
        "includes",
        "includes",
        OBSERVE,
        _includes,
        (
            'Include the word "{word}" in your answer.',
            'Your answer must use the word "{word}".',
            'The word "{word}" has to appear in the answer.',
        ),
    ),
    Rule(
        "excludes",
        "excludes",
        OBSERVE,
        _excludes,
        (
            'Do not use the word "{word}" in your answer.',
            'Answer without the word "{word}".',
            'The word "{word}" is not allowed in your answer.',
        ),
    ),
    Rule(
        "one_of",
        "one_of",
        OBSERVE,
        _one_of,
        (
            "Answer with one of these and nothing else: {labels}.",
            "Your whole answer must be one of {labels}.",
            "Write only the label, one of {labels}, without any explanation.",
        ),
    ),
)
