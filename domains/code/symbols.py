"""Which functions, methods and classes a question names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

#: A name, or names joined as languages join them: ``Lines.cut``, ``Store::add``, ``Array#map``.
_NAME = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::|#)[^\W\d][\w$]*)*")
_JOINT = re.compile(r"\.|::|#")
#: Quotation marks of every kind that people put around code.
_QUOTES = "`\"'“”‘’«»"
#: A word that has the shape of a name: ``read_file``, ``readFile``, ``HTTPError``, ``Utf8``.
_SHAPED = re.compile(r".*(?:_|[a-z0-9][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]\d).*")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words for what a name is of. The word before one of these is a name, or else the word after.
METHODS = _words("method methods")
FUNCTIONS = METHODS | _words("function functions func fn def procedure routine")
#: The word after one of these is a name, or else the word before.
CLASSES = _words("""
    class classes struct structs interface interfaces trait enum module namespace record object type
""")
#: What stands beside those words and is a name only where it is written as code.
_GRAMMAR = _words("""
    a an the this that these those it its i me my we us our you your they their s of in on at to
    from for by with and or not no as if then than so is are was were be been do does did has have
    had can could would should will may must what which who whose where when why how there here
    full whole entire complete all every each some any one same other first last please
    called named inside within
""")
#: Between a word for what it is of, and the name: ``the function called grouped``.
_CALLED = _words("called named")
#: What may stand between a method and its class, one of the first: ``split of the class Splitter``.
_INSIDE = _words("of in from on")
_GLUE = _INSIDE | _words("the") | CLASSES | METHODS


@dataclass(frozen=True, slots=True)
class _Mention:
    """A word of the question, or names joined in it.

    Attributes:
        parts: The names.
        at: Which of the question's words it is.
        code: It is written as code: joined, quoted, called, or of a name's shape.
    """

    parts: tuple[str, ...]
    at: int
    code: bool


class _Known:
    """The store's symbols, to be found by their last names."""

    def __init__(self, symbols: Iterable[str]) -> None:
        self.symbols = {symbol: tuple(symbol.split(".")) for symbol in dict.fromkeys(symbols)}
        self._exact: dict[str, list[str]] = {}
        self._folded: dict[str, list[str]] = {}
        for symbol, parts in self.symbols.items():
            if parts[-1]:
                self._exact.setdefault(parts[-1], []).append(symbol)
                self._folded.setdefault(parts[-1].casefold(), []).append(symbol)

    def ending(self, name: str) -> list[str]:
        """Return the symbols whose last name is this; in another case where there is none."""
        return self._exact.get(name) or self._folded.get(name.casefold(), [])

    def members(self, symbol: str) -> list[str]:
        """Return a symbol with what is defined in it."""
        return [one for one in self.symbols if one == symbol or one.startswith(f"{symbol}.")]


def symbols_named(question: str, known_symbols: Collection[str]) -> list[str]:
    """Return the symbols of a store that a question names, in the order in which it names them.

    ``the split method of class Splitter``, ``Splitter's split method``, ``Splitter.split`` and
    ``pkg.splitter.Splitter.split`` all name ``Splitter.split`` and no other ``split``. A method
    named without its class is all methods of that name; a class named without a method is the
    class and all that is defined in it. What neither is written as code nor stands beside a word
    such as ``method`` or ``class`` is no name, whatever the store knows.

    Args:
        question: What the user asked.
        known_symbols: The store's symbols, their names joined by dots.
    """
    known = _Known(known_symbols)
    mentions = _mentions(question)
    kinds = _kinds(mentions, known)
    marked = {*kinds, *(mention.at for mention in mentions if mention.code)}
    named: dict[str, int] = {}
    spent: set[int] = set()
    for mention in mentions:
        if len(mention.parts) > 1:
            for symbol in _joined(mention.parts, known):
                named.setdefault(symbol, mention.at)
    for method in mentions:
        for owner in mentions:
            if owner.at == method.at or not _belong(method, owner, mentions, marked):
                continue
            for symbol in _owned(method, owner, known):
                named.setdefault(symbol, method.at)
                spent |= {method.at, owner.at}
    for mention in mentions:
        if len(mention.parts) == 1 and mention.at in marked - spent:
            for symbol in _alone(mention.parts[0], known, kinds.get(mention.at, "")):
                named.setdefault(symbol, mention.at)
    return sorted(named, key=lambda symbol: named[symbol])


def _mentions(question: str) -> list[_Mention]:
    found = []
    words = list(_NAME.finditer(question))
    for at, word in enumerate(words):
        parts = tuple(_JOINT.split(word[0]))
        before, after = question[: word.start()][-1:], question[word.end() :][:1]
        quoted = bool(before) and before in _QUOTES and bool(after) and after in _QUOTES
        shaped = len(parts) > 1 or _SHAPED.fullmatch(word[0]) is not None
        # An object's own name is no class's.
        if len(parts) == 2 and parts[0] in ("self", "this", "cls"):
            parts = parts[1:]
        found.append(_Mention(parts, at, quoted or shaped or after == "(" or len(words) == 1))
    return found


def _kinds(mentions: list[_Mention], known: _Known) -> dict[int, str]:
    """Return which words of the question are told to be names, each with the word that tells."""
    kinds: dict[int, str] = {}
    for mention in mentions:
        kind = mention.parts[0].casefold()
        if mention.code or kind not in FUNCTIONS | CLASSES:
            continue
        before, after = mention.at - 1, mention.at + 1
        while after < len(mentions) and mentions[after].parts[0].casefold() in _CALLED:
            after += 1
        for at in (before, after) if kind in FUNCTIONS else (after, before):
            if at in kinds or not (0 <= at < len(mentions) and _is_name(mentions[at], known)):
                continue
            kinds[at] = kind
            other = _listed(mentions, at) if at == before else None
            if other is not None and _is_name(mentions[other], known):
                kinds.setdefault(other, kind)
            break
    return kinds


def _listed(mentions: list[_Mention], last: int) -> int | None:
    """Return which word is listed with this one: ``the add and the update method``."""
    words = [mention.parts[0].casefold() for mention in mentions[:last]]
    if words and words[-1] == "the":
        words.pop()
    return len(words) - 2 if len(words) > 1 and words[-1] in ("and", "or") else None


def _is_name(mention: _Mention, known: _Known) -> bool:
    if len(mention.parts) > 1 or not known.ending(mention.parts[0]):
        return False
    word = mention.parts[0].casefold()
    return mention.code or word not in _GRAMMAR | FUNCTIONS | CLASSES


def _belong(method: _Mention, owner: _Mention, mentions: list[_Mention], marked: set[int]) -> bool:
    """Say whether two words may be a method and its class: the first is marked as a name, or
    nothing but ``of class`` and the like is between them.
    """
    if len(method.parts) > 1:
        return False
    if method.at in marked:
        return True
    if method.parts[0].casefold() in _GRAMMAR | FUNCTIONS | CLASSES:
        return False
    if owner.at < method.at and owner.code:
        # ``Splitter's split``.
        return [one.parts for one in mentions[owner.at + 1 : method.at]] == [("s",)]
    between = {".".join(one.parts).casefold() for one in mentions[method.at + 1 : owner.at]}
    return between <= _GLUE and not between.isdisjoint(_INSIDE)


def _owned(method: _Mention, owner: _Mention, known: _Known) -> list[str]:
    wanted = owner.parts
    owned = {symbol: known.symbols[symbol][:-1] for symbol in known.ending(method.parts[0])}
    exact = [symbol for symbol, above in owned.items() if above and _overlap(above, wanted)]
    if exact or (len(wanted) == 1 and wanted[0].casefold() in _GRAMMAR | FUNCTIONS | CLASSES):
        return exact
    folded = tuple(part.casefold() for part in wanted)
    return [
        symbol
        for symbol, above in owned.items()
        if above and _overlap(tuple(part.casefold() for part in above), folded)
    ]


def _joined(parts: tuple[str, ...], known: _Known) -> list[str]:
    """Return the symbols that joined names are of: modules may stand before, classes be left out.

    Those that have most of the names count.
    """
    overlaps = {
        symbol: size
        for symbol in known.ending(parts[-1])
        if (size := _overlap(known.symbols[symbol], parts))
    }
    most = max(overlaps.values(), default=0)
    return [
        one for symbol, size in overlaps.items() if size == most for one in known.members(symbol)
    ]


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return how many names the shorter has where the longer ends with it, else 0."""
    size = min(len(one), len(other))
    return size if one[len(one) - size :] == other[len(other) - size :] else 0


def _alone(name: str, known: _Known, kind: str) -> list[str]:
    """Return what one name by itself is of.

    A definition of its own comes before those in classes, but for what is called a method.
    """
    ending = known.ending(name)
    inside = [symbol for symbol in ending if len(known.symbols[symbol]) > 1]
    outside = [symbol for symbol in ending if len(known.symbols[symbol]) == 1]
    chosen = inside or outside if kind in METHODS else outside or inside
    return [member for symbol in chosen for member in known.members(symbol)]
