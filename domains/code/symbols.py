"""Which functions, methods and classes a question names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from casewright.domains.code.mentions import (
    CLASSES,
    FUNCTIONS,
    METHODS,
    RESERVED,
    Mention,
    as_in_store,
    mentions_in,
)
from casewright.domains.code.symbol_index import SymbolIndex

#: Between a word for what it is of, and the name: ``the function called grouped``.
_CALLED = frozenset(("called", "named"))
#: What may stand between a method and its class, one of the first: ``split of the class Splitter``.
_INSIDE = frozenset(("of", "in", "from", "on"))
_GLUE = _INSIDE | {"the"} | CLASSES | METHODS
#: What people call a constructor, and what languages do; some name it as its class.
_CONSTRUCTOR = "constructor"
_CONSTRUCTORS = ("__init__", "constructor")
#: Words that a method and its class are apart at most, and names that are listed at most. It
#: keeps pasted code, where everything looks like a name, from taking long.
REACH = 8


def symbols_named(question: str, known_symbols: Collection[str] | SymbolIndex) -> list[str]:
    """Return the symbols of a store that a question names, in the order in which it names them.

    ``the split method of class Splitter``, ``Splitter's split method``, ``Splitter.split`` and
    ``pkg.splitter.Splitter.split`` all name ``Splitter.split`` and no other ``split``. A method
    named without its class is all methods of that name; a class named without a method is the
    class and all that is defined in it, whether or not it is a symbol itself. What neither is
    written as code nor stands beside a word such as ``method`` or ``class`` is no name, whatever
    the store knows.

    The time is near-linear in the question's length and in the number of symbols named.

    Args:
        question: What the user asked.
        known_symbols: The store's symbols, their names joined by dots; who asks often indexes them
            once.
    """
    known = known_symbols if isinstance(known_symbols, SymbolIndex) else SymbolIndex(known_symbols)
    mentions = mentions_in(question, known)
    kinds = _kinds(mentions, known)
    marked = {*kinds, *(mention.at for mention in mentions if mention.code)}
    named: dict[str, int] = {}
    joined: set[tuple[str, ...]] = set()
    for mention in mentions:
        if len(mention.parts) > 1 and mention.parts not in joined:
            joined.add(mention.parts)
            _add(named, known.joined(mention.parts), mention.at, known)
    spent = _methods(mentions, marked, named, known)
    alone: set[tuple[str, str]] = set()
    for mention in mentions:
        if len(mention.parts) == 1 and mention.at in marked - spent:
            asked = mention.parts[0], kinds.get(mention.at, "")
            if asked not in alone:
                alone.add(asked)
                _add(named, _alone(*asked, known), mention.at, known)
    return sorted(named, key=lambda symbol: named[symbol])


def _add(named: dict[str, int], paths: Sequence[str], at: int, known: SymbolIndex) -> None:
    for path in paths:
        for symbol in known.members(path):
            named.setdefault(symbol, at)


def _methods(
    mentions: Sequence[Mention], marked: set[int], named: dict[str, int], known: SymbolIndex
) -> set[int]:
    """Add what is named together with its class; return which words did so."""
    spent: set[int] = set()
    done: dict[tuple[str, tuple[str, ...]], bool] = {}
    owners = [known.owns(mention.parts[-1]) for mention in mentions]

    def take(method: Mention, owner: Mention) -> bool:
        asked = method.parts[0], owner.parts
        if asked not in done:
            paths = _owned(*asked, known)
            _add(named, paths, method.at, known)
            done[asked] = bool(paths)
        if done[asked]:
            spent.update((method.at, owner.at))
        return done[asked]

    for method in mentions:
        if len(method.parts) > 1:
            continue
        if method.word != _CONSTRUCTOR and not known.ending(method.parts[0]):
            continue
        near = range(max(method.at - REACH, 0), min(method.at + REACH + 1, len(mentions)))
        for at in near:
            if at == method.at or not owners[at]:
                continue
            owner = mentions[at]
            if _belong(method, owner, mentions, marked, known) and take(method, owner):
                for other in _listed(mentions, method.at):
                    if _is_name(mentions[other], known):
                        take(mentions[other], owner)
    return spent


def _kinds(mentions: Sequence[Mention], known: SymbolIndex) -> dict[int, str]:
    """Return which words of the question are told to be names, each with the word that tells."""
    kinds: dict[int, str] = {}
    for mention in mentions:
        kind = mention.word
        if mention.code or kind not in FUNCTIONS | CLASSES:
            continue
        before, after = mention.at - 1, mention.at + 1
        while after < len(mentions) and mentions[after].word in _CALLED:
            after += 1
        for at in (before, after) if kind in FUNCTIONS else (after, before):
            if at in kinds or not (0 <= at < len(mentions) and _is_name(mentions[at], known)):
                continue
            kinds[at] = kind
            for other in _listed(mentions, at) if at == before else ():
                if _is_name(mentions[other], known):
                    kinds.setdefault(other, kind)
            break
    return kinds


def _listed(mentions: Sequence[Mention], last: int) -> Iterator[int]:
    """Yield the words listed with this one, from the last on: ``the add and the update method``."""
    at = last
    for _ in range(REACH):
        before = at - 1
        if before >= 0 and mentions[before].word == "the":
            before -= 1
        if before > 0 and mentions[before].word in ("and", "or"):
            before -= 1
        elif before < 0 or at == last or not mentions[before].comma:
            # ``add, update and remove``, but not ``in that case, remove``.
            return
        yield before
        at = before


def _is_name(mention: Mention, known: SymbolIndex) -> bool:
    if len(mention.parts) > 1 or not known.ending(mention.parts[0]):
        return False
    return mention.code or mention.word not in RESERVED


def _belong(
    method: Mention,
    owner: Mention,
    mentions: Sequence[Mention],
    marked: set[int],
    known: SymbolIndex,
) -> bool:
    """Say whether two words may be a method and its class: the first is marked as a name, or
    nothing but ``of class`` and the like is between them.
    """
    if method.at in marked:
        return True
    if method.word in RESERVED:
        return False
    if owner.at < method.at:
        # ``Splitter's split``, ``the Store constructor``.
        between = [one.word for one in mentions[owner.at + 1 : method.at]]
        told = owner.code or as_in_store(owner.parts[-1], known)
        return told and (between == ["s"] or (not between and method.word == _CONSTRUCTOR))
    glue = {one.word for one in mentions[method.at + 1 : owner.at]}
    return glue <= _GLUE and not glue.isdisjoint(_INSIDE)


def _owned(method: str, owner: tuple[str, ...], known: SymbolIndex) -> list[str]:
    names: tuple[str, ...] = (method,)
    if method.casefold() == _CONSTRUCTOR:
        names = (*_CONSTRUCTORS, owner[-1])
    strict = len(owner) == 1 and owner[0].casefold() in RESERVED
    return [path for name in names for path in known.inside(owner, name, strict=strict)]


def _alone(name: str, kind: str, known: SymbolIndex) -> list[str]:
    """Return what one name by itself is of.

    A definition of its own comes before those in classes, but for what is called a method.
    """
    ending = known.ending(name)
    inside = [path for path in ending if len(known.paths[path]) > 1]
    outside = [path for path in ending if len(known.paths[path]) == 1]
    return inside or outside if kind in METHODS else outside or inside
