"""Rules that put something before, after or around an answer, and leave the answer as it is."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.rule import WRAP, Rule, asked
from casewright.finetune.instructions.suitability import about_form, is_bound

#: Longer requests are not repeated: characters, line breaks.
_MOST_REPEATED, _MOST_BREAKS = 400, 3
_BEGINNINGS = (
    "Here is my answer:",
    "My answer is as follows:",
    "Answer:",
    "This is what I would say:",
    "In reply to your request:",
)
_ENDS = (
    "That is my answer.",
    "I hope this helps.",
    "Is there anything else I can help with?",
    "Any other questions?",
    "Let me know if you need more.",
    "End of answer.",
)
_TITLES = ("My answer", "A reply", "The answer", "Response", "What you asked for", "In reply")
_POSTSCRIPTS = (
    "Thank you for asking.",
    "Feel free to ask again.",
    "Write again if anything is unclear.",
    "Have a good day.",
)
_KEYS = ("answer", "response", "result", "reply", "output", "text")
_Proposal = tuple[Mapping[str, Any], str] | None


def _free(instruction: Instruction) -> bool:
    question = asked(instruction)
    return not is_bound(question) and not about_form(question)


def _begins_with(instruction: Instruction, rng: random.Random) -> _Proposal:
    if not _free(instruction):
        return None
    phrase, answer = rng.choice(_BEGINNINGS), instruction.answer
    return {"phrase": phrase}, phrase + ("\n" if "\n" in answer else " ") + answer


def _ends_with(instruction: Instruction, rng: random.Random) -> _Proposal:
    if not _free(instruction):
        return None
    phrase, answer = rng.choice(_ENDS), instruction.answer
    joined = "\n" not in answer and answer.endswith((".", "!", "?"))
    return {"phrase": phrase}, answer + (" " if joined else "\n") + phrase


def _quoted(instruction: Instruction, rng: random.Random) -> _Proposal:
    if not _free(instruction) or '"' in instruction.answer:
        return None
    return {}, f'"{instruction.answer}"'


def _json(instruction: Instruction, rng: random.Random) -> _Proposal:
    if not _free(instruction):
        return None
    key = rng.choice(_KEYS)
    return {"key": key}, json.dumps({key: instruction.answer}, ensure_ascii=False)


def _repeats(instruction: Instruction, rng: random.Random) -> _Proposal:
    question = asked(instruction).strip()
    long = len(question) > _MOST_REPEATED or question.count("\n") > _MOST_BREAKS
    if long or not _free(instruction):
        return None
    return {}, f"{question}\n\n{instruction.answer}"


def _title(instruction: Instruction, rng: random.Random) -> _Proposal:
    if not _free(instruction):
        return None
    title = rng.choice(_TITLES)
    return {}, f"<<{title}>>\n{instruction.answer}"


def _postscript(instruction: Instruction, rng: random.Random) -> _Proposal:
    if not _free(instruction) or "p.s." in instruction.answer.casefold():
        return None
    return {}, f"{instruction.answer}\n\nP.S. {rng.choice(_POSTSCRIPTS)}"


WRAP_RULES = (
    Rule(
        "begins_with",
        "begins_with",
        WRAP,
        _begins_with,
        (
            'Begin your answer with the exact phrase "{phrase}"',
            'The first words of your answer must be "{phrase}"',
            'Start with "{phrase}" and then answer.',
        ),
    ),
    Rule(
        "ends_with",
        "ends_with",
        WRAP,
        _ends_with,
        (
            'End your answer with the exact phrase "{phrase}"',
            'Finish with this phrase and nothing after it: "{phrase}"',
            'The last words of your answer must be "{phrase}"',
        ),
    ),
    Rule(
        "quoted",
        "quoted",
        WRAP,
        _quoted,
        (
            "Wrap your whole answer in double quotation marks.",
            "Put the entire answer between double quotes.",
            'Your answer must begin and end with a double quotation mark (").',
        ),
    ),
    Rule(
        "json",
        "json",
        WRAP,
        _json,
        (
            'Give your answer as a JSON object with the single key "{key}", a text.',
            'Reply with JSON only, of the form {{"{key}": "…"}}.',
            'Your whole reply must be one JSON object whose only key is "{key}".',
        ),
    ),
    Rule(
        "repeats_request",
        "repeats_request",
        WRAP,
        _repeats,
        (
            "First repeat the request word for word, without the sentences on the form of the "
            "answer such as this one; then answer.",
            "Before you answer, write the request once more, unchanged but for this and any other "
            "sentence on the form of the answer, which you leave out.",
        ),
    ),
    Rule(
        "title",
        "title",
        WRAP,
        _title,
        (
            "Put a title in double angular brackets on the first line, such as <<A title>>.",
            "Your answer must have a title on a line of its own at the top, in double angular "
            "brackets, for example <<A short title>>.",
        ),
    ),
    Rule(
        "postscript",
        "postscript",
        WRAP,
        _postscript,
        (
            "Add a postscript at the end that starts with P.S.",
            "After your answer, write a postscript on the last line, beginning with P.S.",
        ),
    ),
)
