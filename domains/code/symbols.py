"""Recognition of the functions, methods and classes that a question names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from casewright.domains.code.symbol_index import SymbolIndex

#: A name, or names with a language's separator: ``Lines.cut``, ``Store::add``, ``Array#map``,
#: ``splitter->split``.
_NAME = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::|#|->)[^\W\d][\w$]*)*")
_JOINT = re.compile(r"\.|::|#|->")
#: Quotation marks that people put around code.
_QUOTES = "`\"'“”‘’«»"
#: The shape of a name: ``read_file``, ``readFile``, ``HTTPError``, ``Utf8``.
_SHAPED = re.compile(r"_|[a-z0-9][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]\d")
#: The end of a sentence, before a word.
_SENTENCE_END = re.compile(r"[.?!:]\s+\Z")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Kinds of definitions whose name precedes the kind, or else follows it.
METHODS = _words("method methods methode methoden méthode método")
FUNCTIONS = METHODS | _words("""
    function functions func fn def procedure routine funktion fonction función
""")
#: Kinds of definitions whose name follows the kind, or else precedes it.
CLASSES = _words("""
    class classes struct structs interface interfaces trait enum module namespace record object type
    klasse classe clase
""")
#: Further words that are names only if they are written as code.
_GRAMMAR = _words("""
    a an the this that these those it its i me my we us our you your they their s of in on at to
    from for by with and or not no as if then than so is are was were be been do does did has have
    had can could would should will may must what which who whose where when why how there here
    full whole entire complete all every each some any one same other first last please
    called named inside within
""")
#: All words that are names only if they are written as code.
RESERVED = _GRAMMAR | FUNCTIONS | CLASSES
#: Words between a kind and the name: ``the function called grouped``.
_CALLED = frozenset(("called", "named"))
#: Words between a method and its class, at least one of ``_INSIDE``:
#: ``split of the class Splitter``.
_INSIDE = frozenset(("of", "in", "from", "on"))
_GLUE = _INSIDE | {"the"} | CLASSES | METHODS
#: A constructor's name in questions, and in languages; some languages use the class name.
_CONSTRUCTOR = "constructor"
_CONSTRUCTORS = ("__init__", "constructor")
#: Maximum number of words between a method and its class, and of names in a list. It limits the
#: time for pasted code, where every word looks like a name.
REACH = 8


@dataclass(frozen=True, slots=True)
class CodeWord:
    """A word of a question, or several names joined in one word.

    Attributes:
        parts: The names.
        word: The names joined by dots and casefolded.
        position: The word's index in the question.
        code: True if the word is written as code: joined, quoted, called, with the shape of a name,
            or in mixed case exactly as in the store.
        comma: True if a comma follows the word.
    """

    parts: tuple[str, ...]
    word: str
    position: int
    code: bool
    comma: bool


def symbols_named(question: str, symbols: Collection[str] | SymbolIndex) -> list[str]:
    """Return the symbols of a store that a question names, in the question's order.

    ``the split method of class Splitter``, ``Splitter's split method``, ``Splitter.split`` and
    ``pkg.splitter.Splitter.split`` all name ``Splitter.split`` and no other ``split``. A method
    without its class names all methods of that name; a class without a method names the class and
    all definitions in it, even if the class is not a symbol itself. A word that is neither written
    as code nor next to a word such as ``method`` or ``class`` is not a name.

    The time is near-linear in the question's length and in the number of symbols named.
    """
    index = symbols if isinstance(symbols, SymbolIndex) else SymbolIndex(symbols)
    mentions = _mentions(question, index)
    kinds = _kinds(mentions, index)
    marked_words = {*kinds, *(mention.position for mention in mentions if mention.code)}
    named: dict[str, int] = {}
    joined: set[tuple[str, ...]] = set()
    for mention in mentions:
        if len(mention.parts) > 1 and mention.parts not in joined:
            joined.add(mention.parts)
            _add(named, index.joined(mention.parts), mention.position, index)
    used = _methods(mentions, marked_words, named, index)
    single: set[tuple[str, str]] = set()
    for mention in mentions:
        if len(mention.parts) == 1 and mention.position in marked_words - used:
            key = mention.parts[0], kinds.get(mention.position, "")
            if key not in single:
                single.add(key)
                _add(named, _single(*key, index), mention.position, index)
    return sorted(named, key=lambda symbol: named[symbol])


def _mentions(question: str, index: SymbolIndex) -> list[CodeWord]:
    """Return the words of a question, in order."""
    mentions = []
    words = list(_NAME.finditer(question))
    for position, word in enumerate(words):
        parts = tuple(_JOINT.split(word[0]))
        start, end = word.span()
        before, after = question[max(start - 1, 0) : start], question[end : end + 1]
        quoted = bool(before) and before in _QUOTES and bool(after) and after in _QUOTES
        shaped = len(parts) > 1 or _SHAPED.search(word[0]) is not None
        # The first word of a sentence always has a capital.
        begins = _SENTENCE_END.search(question, max(start - 4, 0), start) is not None
        first = position == 0 or begins
        code = quoted or shaped or after == "(" or len(words) == 1
        # The name of an object is not the name of a class.
        if len(parts) == 2 and parts[0] in ("self", "this", "cls"):
            parts = parts[1:]
        code = code or (not first and _as_in_store(word[0], index))
        mentions.append(CodeWord(parts, ".".join(parts).casefold(), position, code, after == ","))
    return mentions


def _as_in_store(name: str, index: SymbolIndex) -> bool:
    """Return ``True`` if a word in mixed case is a name of the store in the same case."""
    mixed = name not in (name.lower(), name.upper())
    return mixed and index.exactly(name) and name.casefold() not in RESERVED


def _add(named: dict[str, int], paths: Sequence[str], position: int, index: SymbolIndex) -> None:
    for path in paths:
        for symbol in index.members(path):
            named.setdefault(symbol, position)


def _methods(
    mentions: Sequence[CodeWord], marked_words: set[int], named: dict[str, int], index: SymbolIndex
) -> set[int]:
    """Add the methods that are named with their class; return the indices of these words."""
    used: set[int] = set()
    done: dict[tuple[str, tuple[str, ...]], bool] = {}
    owners = [index.owns(mention.parts[-1]) for mention in mentions]

    def take(method: CodeWord, owner: CodeWord) -> bool:
        key = method.parts[0], owner.parts
        if key not in done:
            paths = _in_owner(*key, index)
            _add(named, paths, method.position, index)
            done[key] = bool(paths)
        if done[key]:
            used.update((method.position, owner.position))
        return done[key]

    for method in mentions:
        if len(method.parts) > 1:
            continue
        if method.word != _CONSTRUCTOR and not index.ending(method.parts[0]):
            continue
        first, end = max(method.position - REACH, 0), method.position + REACH + 1
        for position in range(first, min(end, len(mentions))):
            if position == method.position or not owners[position]:
                continue
            owner = mentions[position]
            if _belong(method, owner, mentions, marked_words, index) and take(method, owner):
                for other in _listed(mentions, method.position):
                    if _is_name(mentions[other], index):
                        take(mentions[other], owner)
    return used


def _kinds(mentions: Sequence[CodeWord], index: SymbolIndex) -> dict[int, str]:
    """Return the index of each word next to a kind, such as ``method``, mapped to the kind."""
    kinds: dict[int, str] = {}
    for mention in mentions:
        kind = mention.word
        if mention.code or kind not in FUNCTIONS | CLASSES:
            continue
        before, after = mention.position - 1, mention.position + 1
        while after < len(mentions) and mentions[after].word in _CALLED:
            after += 1
        for position in (before, after) if kind in FUNCTIONS else (after, before):
            if position in kinds or not 0 <= position < len(mentions):
                continue
            if not _is_name(mentions[position], index):
                continue
            kinds[position] = kind
            for other in _listed(mentions, position) if position == before else ():
                if _is_name(mentions[other], index):
                    kinds.setdefault(other, kind)
            break
    return kinds


def _listed(mentions: Sequence[CodeWord], last: int) -> Iterator[int]:
    """Yield the words listed before a word, backwards: ``the add and the update method``."""
    position = last
    for _ in range(REACH):
        before = position - 1
        if before >= 0 and mentions[before].word == "the":
            before -= 1
        if before > 0 and mentions[before].word in ("and", "or"):
            before -= 1
        elif before < 0 or position == last or not mentions[before].comma:
            # ``add, update and remove``, but not ``in that case, remove``.
            return
        yield before
        position = before


def _is_name(mention: CodeWord, index: SymbolIndex) -> bool:
    if len(mention.parts) > 1 or not index.ending(mention.parts[0]):
        return False
    return mention.code or mention.word not in RESERVED


def _belong(
    method: CodeWord,
    owner: CodeWord,
    mentions: Sequence[CodeWord],
    marked_words: set[int],
    index: SymbolIndex,
) -> bool:
    """Return ``True`` if marks or words such as ``of class`` join a name and a class."""
    if method.position in marked_words:
        return True
    if method.word in RESERVED:
        return False
    if owner.position < method.position:
        # ``Splitter's split``, ``the Store constructor``.
        between = [mention.word for mention in mentions[owner.position + 1 : method.position]]
        is_class = owner.code or _as_in_store(owner.parts[-1], index)
        return is_class and (between == ["s"] or (not between and method.word == _CONSTRUCTOR))
    glue = {mention.word for mention in mentions[method.position + 1 : owner.position]}
    return glue <= _GLUE and not glue.isdisjoint(_INSIDE)


def _in_owner(method: str, owner: tuple[str, ...], index: SymbolIndex) -> list[str]:
    names: tuple[str, ...] = (method,)
    if method.casefold() == _CONSTRUCTOR:
        names = (*_CONSTRUCTORS, owner[-1])
    strict = len(owner) == 1 and owner[0].casefold() in RESERVED
    return [path for name in names for path in index.inside(owner, name, strict=strict)]


def _single(name: str, kind: str, index: SymbolIndex) -> list[str]:
    """Return the paths of a single name, outside of classes if possible; methods in classes."""
    ending = index.ending(name)
    inside = [path for path in ending if len(index.paths[path]) > 1]
    outside = [path for path in ending if len(index.paths[path]) == 1]
    return inside or outside if kind in METHODS else outside or inside
