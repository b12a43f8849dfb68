"""Finds the functions, methods and classes that a question names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from casewright.domains.code.symbol_index import SymbolIndex

#: A name, or names joined by a separator: ``Lines.cut``, ``Store::add``, ``Array#map``,
#: ``splitter->split``.
_NAME = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::|#|->)[^\W\d][\w$]*)*")
_SEPARATOR = re.compile(r"\.|::|#|->")
#: Quotation marks that people put around code.
_QUOTES = "`\"'“”‘’«»"
#: Shapes that only names in code have: ``read_file``, ``readFile``, ``HTTPError``, ``Utf8``.
_CODE_SHAPE = re.compile(r"_|[a-z0-9][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]\d")
#: The end of a sentence, before a word.
_SENTENCE_END = re.compile(r"[.?!:]\s+\Z")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words for a method. The method's name usually precedes the word (``the split method``).
METHODS = _words("method methods methode methoden méthode método")
#: Words for a function or method, with the same word order.
FUNCTIONS = METHODS | _words("""
    function functions func fn def procedure routine funktion fonction función
""")
#: Words for other definitions: the name usually follows the word (``class Splitter``).
CLASSES = _words("""
    class classes struct structs interface interfaces trait enum module namespace record object type
    klasse classe clase
""")
#: Common words, such as articles; they are names only if they are written as code.
_COMMON_WORDS = _words("""
    a an the this that these those it its i me my we us our you your they their s of in on at to
    from for by with and or not no as if then than so is are was were be been do does did has have
    had can could would should will may must what which who whose where when why how there here
    full whole entire complete all every each some any one same other first last please
    called named inside within
""")
#: All words that are names only if they are written as code.
RESERVED = _COMMON_WORDS | FUNCTIONS | CLASSES
#: Words between ``function`` or the like and a name: ``the function called grouped``.
_BEFORE_NAME = frozenset(("called", "named"))
#: Words of which one must stand between a method and a class that follows it.
_LOCATING = frozenset(("of", "in", "from", "on"))
#: Words that may stand there: ``split of the class Splitter``.
_BETWEEN = _LOCATING | {"the"} | CLASSES | METHODS
#: The word for a constructor in questions, and its names in source code besides the class's name.
_CONSTRUCTOR = "constructor"
_CONSTRUCTOR_NAMES = ("__init__", "constructor")
#: Maximum number of words between a method and its class, and of names in a list. This limits the
#: time for pasted code, in which every word looks like a name.
MAX_DISTANCE = 8


class _Word(NamedTuple):
    """A word of a question, or several joined names."""

    parts: tuple[str, ...]  # the joined names, or one word
    folded: str  # the parts joined by dots and casefolded
    position: int  # the word's index in the question
    #: True if the word is written as code: joined, quoted, before ``(``, with the shape of a name,
    #: or in mixed case exactly as in the store. The only word of a question is also code.
    is_code: bool
    has_comma: bool  # true if a comma follows the word


def symbols_named(question: str, symbols: Collection[str] | SymbolIndex) -> list[str]:
    """Return the symbols that a question names, in the question's order.

    ``the split method of class Splitter``, ``Splitter's split method``, ``Splitter.split`` and
    ``pkg.splitter.Splitter.split`` all name ``Splitter.split`` and no other ``split``. A method
    without its class names all methods with this name. A class without a method names the class and
    all definitions in it, even if the class is not a symbol. A word that is neither written
    as code nor next to a word such as ``method`` or ``class`` is not a name.

    The time is near-linear in the question's length and in the number of symbols named.
    """
    index = symbols if isinstance(symbols, SymbolIndex) else SymbolIndex(symbols)
    words = _question_words(question, index)
    kinds = _kinds(words, index)
    name_positions = {*kinds, *(word.position for word in words if word.is_code)}
    found: dict[str, int] = {}  # positions in the question, by symbol
    first_joined: dict[tuple[str, ...], int] = {}  # repeated names add no symbols
    for word in words:
        first_position = first_joined.setdefault(word.parts, word.position)
        if len(word.parts) > 1 and first_position == word.position:
            _add_symbols(found, index.paths_of_dotted_name(word.parts), word.position, index)
    used_positions = _add_methods(words, name_positions, found, index)
    single_positions = name_positions - used_positions
    first_single: dict[tuple[str, str], int] = {}
    for word in words:
        key = word.parts[0], kinds.get(word.position, "")
        if len(word.parts) > 1 or word.position not in single_positions:
            continue
        if first_single.setdefault(key, word.position) == word.position:
            _add_symbols(found, _paths_of_single(*key, index), word.position, index)
    return sorted(found, key=lambda symbol: found[symbol])


def _question_words(question: str, index: SymbolIndex) -> list[_Word]:
    result = []
    matches = list(_NAME.finditer(question))
    for position, match in enumerate(matches):
        parts = tuple(_SEPARATOR.split(match[0]))
        start, end = match.span()
        before, after = question[max(start - 1, 0) : start], question[end : end + 1]
        is_quoted = bool(before) and before in _QUOTES and bool(after) and after in _QUOTES
        has_code_shape = len(parts) > 1 or _CODE_SHAPE.search(match[0]) is not None
        begins_sentence = position == 0 or _SENTENCE_END.search(question, max(start - 4, 0), start)
        is_code = is_quoted or has_code_shape or after == "(" or len(matches) == 1
        # ``self`` and the like name an object, and not a class.
        if len(parts) == 2 and parts[0] in ("self", "this", "cls"):
            parts = parts[1:]
        # The first word of a sentence always begins with a capital, so its case proves nothing.
        is_code = is_code or (not begins_sentence and _is_mixed_case_name(match[0], index))
        result.append(_Word(parts, ".".join(parts).casefold(), position, is_code, after == ","))
    return result


def _is_mixed_case_name(name: str, index: SymbolIndex) -> bool:
    """Return ``True`` if a word in mixed case is a name in the index, in the same case."""
    mixed = name not in (name.lower(), name.upper())
    return mixed and index.has_exact(name) and name.casefold() not in RESERVED


def _add_symbols(
    found: dict[str, int], paths: Sequence[str], position: int, index: SymbolIndex
) -> None:
    for path in paths:
        for symbol in index.members(path):
            found.setdefault(symbol, position)


def _add_methods(
    words: Sequence[_Word], name_positions: set[int], found: dict[str, int], index: SymbolIndex
) -> set[int]:
    """Add the symbols of methods named with their class; return both words' positions."""
    used_positions: set[int] = set()
    is_in_owner: dict[tuple[str, tuple[str, ...]], bool] = {}
    is_owner = [index.encloses_others(word.parts[-1]) for word in words]

    def add_method(method: _Word, owner: _Word) -> bool:
        pair = method.parts[0], owner.parts
        if pair not in is_in_owner:
            paths = _paths_in_owner(*pair, index)
            _add_symbols(found, paths, method.position, index)
            is_in_owner[pair] = bool(paths)
        if is_in_owner[pair]:
            used_positions.update((method.position, owner.position))
        return is_in_owner[pair]

    for method in words:
        if len(method.parts) > 1:
            continue
        if method.folded != _CONSTRUCTOR and not index.paths_ending_in(method.parts[0]):
            continue
        nearby = slice(max(method.position - MAX_DISTANCE, 0), method.position + MAX_DISTANCE + 1)
        for owner in words[nearby]:
            if owner is method or not is_owner[owner.position]:
                continue
            if _belongs(method, owner, words, name_positions, index) and add_method(method, owner):
                for other in _earlier_in_list(words, method.position):
                    if _is_name(words[other], index):
                        add_method(words[other], owner)
    return used_positions


def _kinds(words: Sequence[_Word], index: SymbolIndex) -> dict[int, str]:
    """Return the kind, such as ``method``, that is next to each name, by the name's position."""
    kinds: dict[int, str] = {}
    names = {word.position for word in words if _is_name(word, index)}
    for word in words:
        kind = word.folded
        if word.is_code or kind not in FUNCTIONS | CLASSES:
            continue
        previous, following = word.position - 1, word.position + 1
        while following < len(words) and words[following].folded in _BEFORE_NAME:
            following += 1
        for position in (previous, following) if kind in FUNCTIONS else (following, previous):
            if position in names and position not in kinds:
                kinds[position] = kind
                for other in _earlier_in_list(words, position) if position == previous else ():
                    if other in names:
                        kinds.setdefault(other, kind)
                break
    return kinds


def _earlier_in_list(words: Sequence[_Word], end: int) -> Iterator[int]:
    """Yield the positions of the earlier words in the list that ends at ``end``: ``a, b and c``."""
    position = end
    for _ in range(MAX_DISTANCE):
        earlier = position - 1
        if earlier >= 0 and words[earlier].folded == "the":
            earlier -= 1
        if earlier > 0 and words[earlier].folded in ("and", "or"):
            earlier -= 1
        elif earlier < 0 or position == end or not words[earlier].has_comma:
            # A list has ``and`` or ``or`` before its last word, unlike ``in that case, remove``.
            return
        yield earlier
        position = earlier


def _is_name(word: _Word, index: SymbolIndex) -> bool:
    if len(word.parts) > 1 or not index.paths_ending_in(word.parts[0]):
        return False
    return word.is_code or word.folded not in RESERVED


def _belongs(
    method: _Word,
    owner: _Word,
    words: Sequence[_Word],
    name_positions: set[int],
    index: SymbolIndex,
) -> bool:
    """Return ``True`` if a question puts a method into a class: ``split of class Lines``."""
    if method.position in name_positions:
        return True
    if method.folded in RESERVED:
        return False
    if owner.position < method.position:
        # ``Splitter's split``, ``the Store constructor``.
        between = [word.folded for word in words[owner.position + 1 : method.position]]
        is_class = owner.is_code or _is_mixed_case_name(owner.parts[-1], index)
        return is_class and (between == ["s"] or (not between and method.folded == _CONSTRUCTOR))
    joining = {word.folded for word in words[method.position + 1 : owner.position]}
    return joining <= _BETWEEN and not joining.isdisjoint(_LOCATING)


def _paths_in_owner(method: str, owner: tuple[str, ...], index: SymbolIndex) -> list[str]:
    names: tuple[str, ...] = (method,)
    if method.casefold() == _CONSTRUCTOR:
        names = (*_CONSTRUCTOR_NAMES, owner[-1])
    is_strict = len(owner) == 1 and owner[0].casefold() in RESERVED  # ``Record``, not ``record``
    return [path for name in names for path in index.paths_inside(owner, name, strict=is_strict)]


def _paths_of_single(name: str, kind: str, index: SymbolIndex) -> list[str]:
    """Return the paths of a name without a class; prefer nested paths if the name is a method."""
    ending = index.paths_ending_in(name)
    nested = [path for path in ending if len(index.parts_of[path]) > 1]
    top_level = [path for path in ending if len(index.parts_of[path]) == 1]
    return nested or top_level if kind in METHODS else top_level or nested
