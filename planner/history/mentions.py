"""Finds the entities that the answers of earlier turns name."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

#: Maximum number of characters of an answer that are read.
MAX_ANSWER_CHARACTERS = 4000
#: A list item of an answer; an answer that quotes evidence may put "Looked up:" before an item.
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(?:Looked up: )?(?P<item>.+)$")
#: A separator after the name in a list item.
_NAME_SEPARATOR = re.compile(r"\s*(?:; | — | – | \[E\d|: |,|\()")
#: A name in running text: adjacent capitalised words and numbers.
_CAPITALISED = re.compile(
    r"(?P<name>[A-Z][\w'’-]*(?: (?:&|and(?= [A-Z])|of(?= [A-Z])|from(?= [A-Z])|in(?= [A-Z])) "
    r"[A-Z][\w'’-]*| (?:[A-Z][\w'’-]*|\d[\w.,-]*\w|\d))*)"
)
#: Words that may be capitalised without being a name.
_NOT_NAMES = frozenset(
    re.split(
        " ",
        "a an the yes no not your our my we you it its they this that these those there here "
        "in on at if up of for from with to by and or but both one some most many each every "
        "all as is are was has have owners buyers customers people sorry however also still "
        "after before when while until since then so sign open choose press put lift order "
        "keep eur euro euros monday tuesday wednesday thursday friday saturday sunday "
        "january february march april may june july august september october november "
        "december",
    )
)
#: Up to four words after a name; they may say what the entity is, as in "Kestrel 12 tent".
_NEXT_WORDS = re.compile(r"(?: [\w'’-]+){0,4}")
#: Words at which a name ends.
_NAME_STOPS = frozenset(
    re.split(
        " ", "a an the and or but is are was were has have had for with from to in on at of by as"
    )
)
_AMOUNT = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d{1,2})?"
_PRICE = re.compile(
    rf"(?:price:? |[€$£] ?)({_AMOUNT})"
    rf"|(?<![\d.,])({_AMOUNT}) ?(?:euros?\b|eur\b|€|dollars?\b|usd\b)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Mention:
    """Name of an entity; the text about it, and the tool that finds it, are empty if unknown."""

    name: str
    text: str = ""
    tool: str = ""

    @property
    def price(self) -> float | None:
        """Price in the text, if any."""
        if (match := _PRICE.search(self.text)) is None:
            return None
        amount = re.sub(r",(?=\d{3})", "", match[1] or match[2])
        return float(amount.replace(",", "."))


def mentions_in(answer: str, tool: str = "") -> list[Mention]:
    """Return mentions of the entities in an answer, each entity once.

    The mentions are the items of the answer's list, or else the names in running text: adjacent
    capitalised words and numbers. A repeated entity has the text of its first mention and the
    position of its last mention. ``tool`` is the tool that finds the entities by name.
    """
    # Earlier answers are unchecked, and a literal must be valid Unicode.
    answer = answer[:MAX_ANSWER_CHARACTERS].encode(errors="replace").decode()
    items = [match["item"] for line in answer.split("\n") if (match := _ITEM.match(line))]
    list_mentions = [Mention(_item_name(item), item, tool) for item in items if item[:1].isupper()]
    mentions = list_mentions or _text_mentions(answer, tool)
    mention_by_name = {mention.name.casefold(): mention for mention in reversed(mentions)}
    return list(mention_by_name.values())[::-1]


def _item_name(item: str) -> str:
    separator = _NAME_SEPARATOR.search(item)
    return item[: separator.start()] if separator and separator.start() else item


def _text_mentions(answer: str, tool: str) -> list[Mention]:
    mentions: list[Mention] = []
    matches = list(_CAPITALISED.finditer(answer))
    for index, match in enumerate(matches):
        words = match["name"].split()
        start = match.start()
        starts_sentence = start == 0 or answer[:start].rstrip()[-1:] in ".!?:\n"
        while words and words[0].casefold() in _NOT_NAMES:
            words, starts_sentence = words[1:], False
        if not words or (starts_sentence and len(words) == 1):
            continue
        end = matches[index + 1].start() if index + 1 < len(matches) else len(answer)
        next_match = _NEXT_WORDS.match(answer, match.end(), end)
        next_words = next_match[0].split() if next_match else ()
        words.extend(itertools.takewhile(lambda w: w.casefold() not in _NAME_STOPS, next_words))
        mentions.append(Mention(" ".join(words), answer[start:end], tool))
    return mentions


def mention_by_word(mentions: Sequence[Mention], word: str) -> Mention | None:
    """Return the first mention with a word that begins with ``word``, in names or else in texts."""
    pattern = re.compile(rf"\b{re.escape(word)}", re.I)
    name_matches = (mention for mention in mentions if pattern.search(mention.name))
    text_matches = (mention for mention in mentions if pattern.search(mention.text))
    return next(itertools.chain(name_matches, text_matches), None)


def mention_by_price(mentions: Sequence[Mention], price_rank: int) -> Mention | None:
    """Return the mention with the lowest (0) or highest (-1) price; ``None`` without prices."""
    prices = [(m.price, index) for index, m in enumerate(mentions) if m.price is not None]
    return mentions[sorted(prices)[price_rank][1]] if prices else None
