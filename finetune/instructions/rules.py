"""The rules: what each asks of which answers, and how it brings an answer into form."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from casewright.finetune.instructions.constraint import has_word
from casewright.finetune.instructions.instruction import Instruction
from casewright.finetune.instructions.rule import (
    CHANGE,
    OBSERVE,
    WORDINGS,
    WRAP,
    Proposal,
    Propose,
    Rule,
    asked,
)
from casewright.finetune.instructions.words import (
    about_form,
    content_words,
    is_bound,
    is_chat,
    is_creative,
    is_prose,
    lines,
    list_items,
    plain_sentences,
    stem,
    stems,
    words,
)

#: Longer answers in capitals are no pleasure to read, and nothing more is learned from them.
_MOST_CAPITALS = 600
#: Sentences or items that are laid out as lines.
_MOST_LINES = 12
#: Longer requests are not repeated: characters, line breaks.
_MOST_REPEATED, _MOST_BREAKS = 400, 3
#: Limits on longer answers say little.
_MOST_WORDS, _MOST_SENTENCES = 150, 5
#: Characters of a line that is called one.
_LONGEST_LINE = 160
#: Words that an answer needs so that a constraint on its words means something.
_SOME_WORDS = 8


def _free(instruction: Instruction) -> bool:
    question = asked(instruction)
    return not is_bound(question) and not about_form(question)


def _cased(change: Callable[[str], str]) -> Propose:
    def propose(instruction: Instruction, rng: random.Random) -> Proposal:
        answer = instruction.answer
        fits = is_prose(answer) and len(answer) <= _MOST_CAPITALS
        # A lone letter is the name of a choice.
        if not fits or len(answer) < 2 or about_form(asked(instruction)):
            return None
        changed = change(answer)
        return None if changed == answer else ({}, changed)

    return propose


def _laid_out(parts: list[str], instruction: Instruction, mark: str = "") -> Proposal:
    if not 2 <= len(parts) <= _MOST_LINES or not _free(instruction):
        return None
    return {"n": len(parts)}, "\n".join(f"{mark}{part}" for part in parts)


def _bullets(instruction: Instruction, rng: random.Random) -> Proposal:
    items = list_items(instruction.answer)
    if not items and not is_creative(asked(instruction)) and not is_chat(instruction.answer):
        items = plain_sentences(instruction.answer)
    return _laid_out(items, instruction, "- ")


def _sentence_lines(instruction: Instruction, rng: random.Random) -> Proposal:
    return _laid_out(plain_sentences(instruction.answer), instruction)


def _wrapping(wrap: Callable[[str, str, random.Random], Proposal]) -> Propose:
    """Return a rule that puts something around the answer to a question of no prescribed form."""

    def propose(instruction: Instruction, rng: random.Random) -> Proposal:
        return wrap(asked(instruction), instruction.answer, rng) if _free(instruction) else None

    return propose


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


def _repeats(question: str, answer: str, rng: random.Random) -> Proposal:
    said = question.strip()
    long = len(said) > _MOST_REPEATED or said.count("\n") > _MOST_BREAKS
    return None if long else ({}, f"{said}\n\n{answer}")


def _title(question: str, answer: str, rng: random.Random) -> Proposal:
    return {}, f"<<{rng.choice(WORDINGS['a_title'])}>>\n{answer}"


def _postscript(question: str, answer: str, rng: random.Random) -> Proposal:
    if "p.s." in answer.casefold():
        return None
    return {}, f"{answer}\n\nP.S. {rng.choice(WORDINGS['a_postscript'])}"


def _at_most_words(instruction: Instruction, rng: random.Random) -> Proposal:
    count = len(words(instruction.answer))
    if count > _MOST_WORDS or is_bound(asked(instruction)) or not is_prose(instruction.answer):
        return None
    step = 1 if count <= 5 else 5 if count <= 50 else 10
    return {"n": -(-count // step) * step}, instruction.answer


def _at_most_sentences(instruction: Instruction, rng: random.Random) -> Proposal:
    count = len(plain_sentences(instruction.answer))
    if not 1 <= count <= _MOST_SENTENCES or is_bound(asked(instruction)):
        return None
    return {"n": count}, instruction.answer


def _lines(instruction: Instruction, rng: random.Random) -> Proposal:
    found = lines(instruction.answer)
    count = len(found)
    # A line with nothing in it is blank too; a long one is a paragraph.
    plain = instruction.answer.count("\n") == count - 1 and max(map(len, found)) <= _LONGEST_LINE
    if not 2 <= count <= _MOST_LINES or not plain or not _free(instruction):
        return None
    return {"n": count}, instruction.answer


def _some_prose(answer: str) -> bool:
    return len(words(answer)) >= _SOME_WORDS and is_prose(answer)


def _no_commas(instruction: Instruction, rng: random.Random) -> Proposal:
    answer = instruction.answer
    return ({}, answer) if "," not in answer and _some_prose(answer) else None


def _word(
    instruction: Instruction, rng: random.Random, said: str, unsaid: str, within: str
) -> Proposal:
    """Name a word of one text that is in no form in another."""
    if not _some_prose(instruction.answer):
        return None
    known = stems(unsaid)
    found = {word for word in content_words(said) if stem(word) not in known}
    new = sorted(word for word in found if not within or has_word(within, word))
    return ({"word": rng.choice(new)}, instruction.answer) if new else None


def _includes(instruction: Instruction, rng: random.Random) -> Proposal:
    answer = instruction.answer
    return _word(instruction, rng, answer, asked(instruction), within=answer)


def _excludes(instruction: Instruction, rng: random.Random) -> Proposal:
    return _word(instruction, rng, asked(instruction), instruction.answer, within="")


def _one_of(instruction: Instruction, rng: random.Random) -> Proposal:
    if len(instruction.labels) < 2 or instruction.answer not in instruction.labels:
        return None
    return {"labels": list(instruction.labels)}, instruction.answer


RULES = (
    Rule("all_upper", "all_upper", CHANGE, _cased(str.upper)),
    Rule("all_lower", "all_lower", CHANGE, _cased(str.lower)),
    Rule("bullets", "bullets", CHANGE, _bullets),
    Rule("sentence_lines", "lines", CHANGE, _sentence_lines),
    Rule("begins_with", "begins_with", WRAP, _wrapping(_begins_with)),
    Rule("ends_with", "ends_with", WRAP, _wrapping(_ends_with)),
    Rule("quoted", "quoted", WRAP, _wrapping(_quoted)),
    Rule("json", "json", WRAP, _wrapping(_json)),
    Rule("repeats_request", "repeats_request", WRAP, _wrapping(_repeats)),
    Rule("title", "title", WRAP, _wrapping(_title)),
    Rule("postscript", "postscript", WRAP, _wrapping(_postscript)),
    Rule("at_most_words", "at_most_words", OBSERVE, _at_most_words),
    Rule("at_most_sentences", "at_most_sentences", OBSERVE, _at_most_sentences),
    Rule("lines", "lines", OBSERVE, _lines),
    Rule("no_commas", "no_commas", OBSERVE, _no_commas),
    Rule("includes", "includes", OBSERVE, _includes),
    Rule("excludes", "excludes", OBSERVE, _excludes),
    Rule("one_of", "one_of", OBSERVE, _one_of),
)
