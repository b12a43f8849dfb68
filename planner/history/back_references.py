"""Finds anaphora: words of an English question that refer to earlier turns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["pronoun", "ordinal", "other", "price", "attribute", "several"]

#: Ordinals, each with its index in a list.
_ORDINALS = {
    **{word: index for index, word in enumerate(("first", "second", "third", "fourth", "fifth"))},
    **{word: index for index, word in enumerate(("1st", "2nd", "3rd", "4th", "5th"))},
    "last": -1,
}
#: "One" or "ones", only in lower case: "One" may be a part of a name.
_ONE = r" (?-i:ones?)\b"
_SEVERAL = re.compile(
    r"\b(?:both|either)(?: of (?:them|these|those))?\b"
    r"|\b(?:of )?(?:the|these|those) (?:first )?two\b"
    r"|\bwhich one\b(?!.*\bor\b)|\bof (?:them|these|those)\b",
    re.I,
)
#: "Which", as in "which is lighter?", refers to the last entities, unless "or" names alternatives.
_WHICH = re.compile(r"^(?:and )?(which) (?:is|are|has|have|do|does|would)\b(?!.*\bor\b)", re.I)
#: Words that show, directly after "the second" or "the other", that no noun follows.
_NEXT_WORDS = (
    r"is|are|was|has|have|had|do|does|did|can|could|will|would|need|needs|come|comes|cost|weigh|in"
)
_ORDINAL = re.compile(
    rf"\bthe ({'|'.join(_ORDINALS)})(?:{_ONE}|(?= (?:{_NEXT_WORDS})\b)|(?!\s*\w))", re.I
)
_OTHER = re.compile(rf"\bthe other(?:{_ONE}|(?= (?:{_NEXT_WORDS})\b)|(?!\s*\w))", re.I)
_CHEAPEST = re.compile(rf"\bthe cheap(?:er|est)(?:{_ONE}|(?!\s*\w))", re.I)
_MOST_EXPENSIVE = re.compile(
    rf"\bthe (?:(?:more|most) expensive|dear(?:er|est)|pric(?:ier|iest))(?:{_ONE}|(?!\s*\w))", re.I
)
_ATTRIBUTE = re.compile(rf"\bthe ([\w-]+){_ONE}", re.I)
_PRONOUN = re.compile(
    r"\b(?:it|its|it's|they|they're|them|their|theirs|mine)\b"
    rf"|\b(?:this|that|these|those)(?:{_ONE}|(?= (?:is|are|was|has|have|do|does|can|will|would|"
    r"work|fit|come|need|cost|take|last|not|for|on|in|with|or|and)\b)|(?!\s*\w))"
    r"|\bthat's\b",
    re.I,
)
#: Expletives: "it" and "that" without a referent.
_EXPLETIVE = re.compile(
    r"\b(?:is|was|will|would|does|did) it (?:true|possible|ok|okay|normal|called|late|rain|snow|"
    r"raining|snowing|time|said|mean)\b"
    r"|\bit(?:'s| is| will| was)? (?:rain\w*|snow\w*|true|possible|called|seems|says|said)\b"
    r"|\bthat(?:'s| is|'d be|'ll be| will be| would be)? (?:all|it|everything|did it|does it|"
    r"enough|will do)\b",
    re.I,
)
_FIRST_SENTENCE_END = re.compile(r"\w\W*\s\w+\W*[.!?:;]+(?=\s)")
#: Words without content at the beginning of a question, such as "ok, thanks".
_DISCOURSE = re.compile(
    r"^(?:(?:ok(?:ay)?|thanks|thank you|great|good|nice|cool|ha|hm+|well|so|but|right|alright|oh|"
    r"yes|yeah|please|lovely|perfect)[\s,.!…-]+)+",
    re.I,
)
#: First words of an elliptical question, which needs words of an earlier turn: a conjunction,
#: "what about", "same for" or "compared to".
_OPENER = re.compile(
    r"^(?:(?:and\s+)?(?:(?:what|how) about|(?:the )?same for|compared (?:to|with))|and|or|also)"
    r"\b[\s,]*",
    re.I,
)
_COMPARED_TO = re.compile(r"^(?:and\s+)?compared (?:to|with)\b", re.I)
#: First words of a correction, such as "no, I meant".
_CORRECTION = re.compile(
    r"^(?:no|nope|sorry|wait|actually|oops|not that(?: one)?)\b[\s,.!-]*"
    r"(?:(?:no|sorry|wait|actually)\b[\s,.!-]*)*"
    r"(?:,?\s*(?:i(?:'m| am| was)? ?(?:meant|mean\b|asking about|was asking about|talking about|"
    r"was talking about)))?\s*"
    r"|^i (?:meant|mean|was asking about|was talking about)\b\s*",
    re.I,
)
#: First words of a complete question.
_QUESTION_WORDS = frozenset(
    re.split(
        " ",
        "what which who whose how where where's when when's why is are was were am does do "
        "did can could will would should has have had may might shall show find tell give "
        "get got i i'm i'd i've we you please looking need want any it isn't don't doesn't "
        "aren't let compare",
    )
)
#: Prepositions, verbs and articles before the subject of an elliptical question.
_PREFIX = re.compile(
    r"^(?:(?:of|about|for|on|with|to|in|is|does|do|are|can|has|the|a|an|my|your|our)\s+)+", re.I
)
_ENTITY_ON_PAGE = re.compile(
    r"^(?:(?:the|this|that)(?: one)?|one)(?: (?:on|from) (?:this|the|my) (?:page|screen)| here)?"
    r"(?: too| as well)?$",
    re.I,
)
_DEMONSTRATIVE = re.compile(r"^(?:this|that|these|those)(?: ones?)?$", re.I)
#: An elliptical question with a demonstrative, such as "does this too?"
_ELLIPTICAL_DEMONSTRATIVE = re.compile(
    r"^(?:and )?(?:is|does|do|can|has|have|are|will) ((?:this|that|these|those)(?: ones?)?)"
    r"(?: too| as well)?$",
    re.I,
)
#: "One" for any entity of a kind ("a lighter one"), not for a known entity ("the red one").
_BARE_ONE = re.compile(
    r"\b(?P<before>(?:have|has|got|sell|stock|is there|are there|see|show me|find me|find|want|"
    r"need|any|an?(?: \w+)?|another|other|\w+er|(?:more|less) \w+|some(?: \w+)?))"
    r" (?P<one>ones?)\b",
    re.I,
)
#: Words before a "one" that stands for a known entity, as in "the red one".
_DEFINITE = re.compile(r"\b(?:the|this|that|which|these|those)(?: \w+)?\s*$", re.I)
_ANYTHING = re.compile(
    r"^(?:(?:do you have|have you got|is there|got)\s+)?(?:anything|something)\s+"
    r"(?P<how>(?P<comparative>\w+er\b|(?:more|less) \w+)|(?:in|with|without|under|below|made)\b.*)",
    re.I,
)
#: Maximum number of words of a short question, which may lack its subject.
_MAX_SHORT_QUESTION_WORDS = 9
_MAX_SUBJECT_WORDS = 6


@dataclass(frozen=True, slots=True)
class BackReference:
    """Words that refer to earlier turns: characters ``start`` up to ``end`` of a question.

    Attributes:
        kind: ``several`` ("both"), ``ordinal`` ("the second one"), ``other`` ("the other one"),
            ``price`` ("the cheaper one"), ``attribute`` ("the red one") or ``pronoun``.
        position: For an ordinal, the index in a list; for a price, the index in a list sorted by
            price. Index 0 is the first one or the cheapest one, -1 the last one or the dearest one.
        word: For an attribute, the word.
    """

    kind: Kind
    start: int
    end: int
    position: int = 0
    word: str = ""


def without_discourse_markers(question: str) -> str:
    """Return a question with single spaces and without leading words such as "ok, thanks"."""
    text = " ".join(question.split())
    return _DISCOURSE.sub("", text) or text


def without_conjunction(text: str) -> str:
    """Return a question without a leading "and", "also" or "or"."""
    return re.sub(r"^(?:and|also|or)\b[\s,]*", "", text, flags=re.I) or text


def back_references(text: str) -> list[BackReference]:
    """Return the words that refer to earlier turns, in order, without overlap."""
    references: list[BackReference] = []
    # Words after the first sentence refer to that sentence, not to an earlier turn.
    sentence = _FIRST_SENTENCE_END.search(text)
    sentence_end = sentence.end() if sentence else len(text)
    expletives = [match.span() for match in _EXPLETIVE.finditer(text)]

    def add(kind: Kind, pattern: re.Pattern[str], position: int = 0) -> None:
        for match in pattern.finditer(text):
            start, end = match.span()
            is_expletive = any(left <= start < right for left, right in expletives)
            overlaps = any(start < other.end and other.start < end for other in references)
            if start > sentence_end or is_expletive or overlaps or start == end:
                continue
            if kind == "ordinal":
                position = _ORDINALS[match[1].casefold()]
            word = match[1].casefold() if kind == "attribute" else ""
            references.append(BackReference(kind, start, end, position, word))

    add("several", _SEVERAL)
    if which := _WHICH.match(text):
        references.append(BackReference("several", *which.span(1)))
    add("ordinal", _ORDINAL)
    add("other", _OTHER)
    add("price", _CHEAPEST, 0)
    add("price", _MOST_EXPENSIVE, -1)
    add("attribute", _ATTRIBUTE)
    add("pronoun", _PRONOUN)
    return sorted(references, key=lambda reference: reference.start)


def new_subject(text: str) -> tuple[str, bool] | None:
    """Return an elliptical question's subject, and True if the question corrects the last one.

    "And the kite?" and "no, I meant the kite" ask the last question again, but about the kite.
    Return ``None`` for a complete question.
    """
    unpunctuated = text.rstrip(" ?!.…")
    if demonstrative := _ELLIPTICAL_DEMONSTRATIVE.match(unpunctuated):
        return demonstrative[1], False
    for pattern, is_correction in ((_CORRECTION, True), (_OPENER, False)):
        opening = pattern.match(unpunctuated)
        subject = unpunctuated[opening.end() :].strip(" ,") if opening else ""
        words = subject.split()
        is_one_sentence = not re.search(r"[.!?]\s", unpunctuated)
        is_short = is_one_sentence and 0 < len(words) <= _MAX_SUBJECT_WORDS
        if is_short and words[0].casefold() not in _QUESTION_WORDS:
            return subject, is_correction
    return None


def compares_to_last(text: str) -> bool:
    """Return True if a question compares the last entity to another."""
    return _COMPARED_TO.match(text) is not None


def has_conjunction(text: str) -> bool:
    """Return True if a question begins with "and", "also" or "or"."""
    return without_conjunction(text) != text


def bare_subject(phrase: str) -> str:
    """Return a phrase without leading prepositions, verbs and articles, and without final "too"."""
    return re.sub(r"\s+(?:too|then|as well|instead)$", "", _PREFIX.sub("", phrase), flags=re.I)


def begins_like_question(text: str) -> bool:
    """Return True if the first word of a text can begin a complete question."""
    return text.split()[0].casefold() in _QUESTION_WORDS


def has_definite_noun(text: str) -> bool:
    """Return True if a question is short and has a definite noun phrase, such as "the battery"."""
    is_short = len(text.split()) <= _MAX_SHORT_QUESTION_WORDS
    return is_short and re.search(r"\bthe \w", text, re.I) is not None


def refers_to_page(phrase: str) -> bool:
    """Return True if a phrase refers to the entity on the open page."""
    return any(pattern.match(phrase) for pattern in (_ENTITY_ON_PAGE, _DEMONSTRATIVE))


def with_noun(text: str, noun: str) -> str | None:
    """Return a question in which a noun replaces "one" or "anything"; ``None`` without such a word.

    "One" for a known entity, as in "the red one", is not such a word.
    """
    unpunctuated = text.rstrip(" ?!.…")
    if match := _ANYTHING.search(unpunctuated):
        if match["comparative"]:
            return f"do you have a {match['how']} {noun}?"
        return f"do you have {noun} {match['how']}?"
    match = _BARE_ONE.search(unpunctuated)
    if match is None or _DEFINITE.search(unpunctuated[: match.start("one")]):
        return None
    return f"{unpunctuated[: match.start('one')]}{noun}{unpunctuated[match.end('one') :]}?"


def of_kinds(references: Sequence[BackReference], *kinds: Kind) -> list[BackReference]:
    """Return the references of these kinds."""
    return [reference for reference in references if reference.kind in kinds]
