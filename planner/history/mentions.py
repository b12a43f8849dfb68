"""Named things in the plans and answers of earlier turns."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

#: Maximal characters of an answer that are read.
READ = 4000
#: A line of a list in quoted answers or in answers of chat models.
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(?:Looked up: )?(?P<item>.+)$")
_NAME_ENDS = re.compile(r"\s*(?:; | — | – | \[E\d|: |,|\()")
#: A name in running text: adjacent capitalised words and numbers.
_RUN = re.compile(
    r"(?P<name>[A-Z][\w'’-]*(?: (?:&|and(?= [A-Z])|of(?= [A-Z])|from(?= [A-Z])|in(?= [A-Z])) "
    r"[A-Z][\w'’-]*| (?:[A-Z][\w'’-]*|\d[\w.,-]*\w|\d))*)"
)
#: Words that may be capitalised without being a name.
_NO_NAME = frozenset(
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
#: Words right after a name: the kind of thing.
_FOLLOWING = re.compile(r"(?: [\w'’-]+){0,4}")
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
    """Named thing, with the text about it, and the tool that found it by name, if any."""

    name: str
    text: str = ""
    tool: str = ""

    @property
    def price(self) -> float | None:
        """Price in the text, if any."""
        match = _PRICE.search(self.text)
        if match is None:
            return None
        amount = re.sub(r",(?=\d{3})", "", match[1] or match[2])
        return float(amount.replace(",", "."))


def named_in(answer: str, tool: str = "") -> list[Mention]:
    """Return the things that an answer names, in its order, each once; ``tool`` finds them.

    They are the items of the answer's list, or else the names in its running text: adjacent
    capitalised words and numbers.
    """
    # Earlier answers are unchecked, and a literal must be valid Unicode.
    answer = answer[:READ].encode(errors="replace").decode()
    items = [match["item"] for line in answer.split("\n") if (match := _ITEM.match(line))]
    listed = [Mention(_head(item), item, tool) for item in items if item[:1].isupper()]
    mentions = listed or _in_text(answer, tool)
    return list({mention.name.casefold(): mention for mention in reversed(mentions)}.values())[::-1]


def _head(item: str) -> str:
    end = _NAME_ENDS.search(item)
    return item[: end.start()] if end and end.start() else item


def _in_text(answer: str, tool: str) -> list[Mention]:
    mentions: list[Mention] = []
    matches = list(_RUN.finditer(answer))
    for number, match in enumerate(matches):
        words = match["name"].split()
        start = match.start()
        opens = start == 0 or answer[:start].rstrip()[-1:] in ".!?:\n"
        while words and words[0].casefold() in _NO_NAME:
            words, opens = words[1:], False
        if not words or (opens and len(words) == 1):
            continue
        end = matches[number + 1].start() if number + 1 < len(matches) else len(answer)
        following = _FOLLOWING.match(answer, match.end(), end)
        more = following[0].split() if following else ()
        words += list(itertools.takewhile(lambda word: word.casefold() not in _NAME_STOPS, more))
        mentions.append(Mention(" ".join(words), answer[start:end], tool))
    return mentions


def by_word(mentions: Sequence[Mention], word: str) -> Mention | None:
    """Return the first mention whose name, or else text, has a word with this prefix."""
    pattern = re.compile(rf"\b{re.escape(word)}", re.I)
    names = (mention for mention in mentions if pattern.search(mention.name))
    texts = (mention for mention in mentions if pattern.search(mention.text))
    return next(itertools.chain(names, texts), None)


def by_price(mentions: Sequence[Mention], position: int) -> Mention | None:
    """Return the mention with the lowest (0) or highest (-1) price; ``None`` without prices."""
    prices = [(m.price, number) for number, m in enumerate(mentions) if m.price is not None]
    return mentions[sorted(prices)[position][1]] if prices else None
