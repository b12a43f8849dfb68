"""Rules that change an answer's letters or layout, without rewording it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.rule import CHANGE, Rule, asked
from casewright.finetune.instructions.suitability import (
    about_form,
    is_bound,
    is_chat,
    is_creative,
    is_prose,
    list_items,
    plain_sentences,
)

#: Longer answers in capitals are no pleasure to read, and nothing more is learned from them.
_MOST_CAPITALS = 600
#: Sentences or items that are laid out as lines.
_MOST_LINES = 12
_Proposal = tuple[Mapping[str, Any], str] | None


def _cased(change: Callable[[str], str]) -> Callable[[Instruction, random.Random], _Proposal]:
    def propose(instruction: Instruction, rng: random.Random) -> _Proposal:
        answer = instruction.answer
        fits = is_prose(answer) and len(answer) <= _MOST_CAPITALS
        # A lone letter is the name of a choice.
        if not fits or len(answer) < 2 or about_form(asked(instruction)):
            return None
        changed = change(answer)
        return None if changed == answer else ({}, changed)

    return propose


def _bullets(instruction: Instruction, rng: random.Random) -> _Proposal:
    question = asked(instruction)
    items = list_items(instruction.answer)
    if not items and not is_creative(question) and not is_chat(instruction.answer):
        items = plain_sentences(instruction.answer)
    if not 2 <= len(items) <= _MOST_LINES or is_bound(question) or about_form(question):
        return None
    return {"n": len(items)}, "\n".join(f"- {item}" for item in items)


def _sentence_lines(instruction: Instruction, rng: random.Random) -> _Proposal:
    question = asked(instruction)
    found = plain_sentences(instruction.answer)
    if not 2 <= len(found) <= _MOST_LINES or is_bound(question) or about_form(question):
        return None
    return {"n": len(found)}, "\n".join(found)


CHANGE_RULES = (
    Rule(
        "all_upper",
        "all_upper",
        CHANGE,
        _cased(str.upper),
        (
            "Write your whole answer in capital letters.",
            "Answer in upper case only.",
            "YOUR ANSWER MUST BE IN ALL CAPS.",
            "No lower-case letter may stand in your answer.",
        ),
    ),
    Rule(
        "all_lower",
        "all_lower",
        CHANGE,
        _cased(str.lower),
        (
            "Write your whole answer in lower case.",
            "Use small letters only; no capitals are allowed in your answer.",
            "answer in lowercase letters throughout.",
            "Do not use a single capital letter in your answer.",
        ),
    ),
    Rule(
        "bullets",
        "bullets",
        CHANGE,
        _bullets,
        (
            "Give your answer as a list of exactly {n_bullet_points}, each beginning with '- '.",
            "Answer with exactly {n_bullet_points} (use '- ').",
            "Your answer must have exactly {n_bullet_points} in Markdown, such as: - this is one.",
        ),
    ),
    Rule(
        "sentence_lines",
        "lines",
        CHANGE,
        _sentence_lines,
        (
            "Put every sentence of your answer on a line of its own, {n_lines} in all.",
            "Write exactly {n_lines}, one sentence a line.",
            "Your answer must be {n_lines} long, with one sentence on each line.",
        ),
    ),
)
