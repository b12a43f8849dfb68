"""Elimination evolving: which evolved instructions are dropped (Evol-Instruct, section 3.2)."""

from __future__ import annotations

import re

from casewright.finetune.instructions.words import STOP_WORDS, letter_words, words

#: Answers below this many words that say sorry are refusals (the paper's number).
_SORRY_WORDS = 80
#: Words of the prompt that asks for the rewriting.
_COPIED = re.compile(
    r"(?i)#?\s*(?:given|rewritten|created|original) (?:prompt|instruction)#?|a program can verify"
    r'|"constraint"\s*:'
)


def eliminated(original: str, evolved: str, answer: str) -> str:
    """Return why an evolved instruction is dropped; empty where it is kept."""
    if not evolved:
        return "no instruction was returned"
    if _plain(evolved) == _plain(original):
        return "the same as the original"
    if _COPIED.search(evolved):
        return "copies words of the prompt that asked for it"
    if "sorry" in answer.casefold() and len(words(answer)) < _SORRY_WORDS:
        return "the answer is an apology"
    said = [word.lower() for word in letter_words(answer)]
    if not any(char.isdigit() for char in answer) and all(word in STOP_WORDS for word in said):
        return "the answer has only stop words and punctuation"
    return ""


def _plain(text: str) -> str:
    return " ".join(letter_words(text.casefold()))
