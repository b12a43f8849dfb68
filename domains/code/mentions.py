"""The words of a question that may name code, and the words that tell what a name is of."""

from __future__ import annotations

import re
from dataclasses import dataclass

from casewright.domains.code.symbol_index import SymbolIndex

#: A name, or names joined as languages join them: ``Lines.cut``, ``Store::add``, ``Array#map``,
#: ``splitter->split``.
_NAME = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::|#|->)[^\W\d][\w$]*)*")
_JOINT = re.compile(r"\.|::|#|->")
#: Quotation marks of every kind that people put around code.
_QUOTES = "`\"'“”‘’«»"
#: What a word has that is of a name's shape: ``read_file``, ``readFile``, ``HTTPError``, ``Utf8``.
_SHAPED = re.compile(r"_|[a-z0-9][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]\d")
#: What the word before a sentence's first one ends with.
_SENTENCE_END = re.compile(r"[.?!:]\s+\Z")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words for what a name is of. The word before one of these is a name, or else the word after.
METHODS = _words("method methods methode methoden méthode método")
FUNCTIONS = METHODS | _words("""
    function functions func fn def procedure routine funktion fonction función
""")
#: The word after one of these is a name, or else the word before.
CLASSES = _words("""
    class classes struct structs interface interfaces trait enum module namespace record object type
    klasse classe clase
""")
#: What stands beside those words and is a name only where it is written as code.
_GRAMMAR = _words("""
    a an the this that these those it its i me my we us our you your they their s of in on at to
    from for by with and or not no as if then than so is are was were be been do does did has have
    had can could would should will may must what which who whose where when why how there here
    full whole entire complete all every each some any one same other first last please
    called named inside within
""")
#: No names, unless they are written as code.
RESERVED = _GRAMMAR | FUNCTIONS | CLASSES


@dataclass(frozen=True, slots=True)
class Mention:
    """A word of the question, or names joined in it.

    Attributes:
        parts: The names.
        word: They, joined by dots and casefolded.
        at: Which of the question's words it is.
        code: It is written as code: joined, quoted, called, of a name's shape, or just as a name
            of the store is that has letters of both cases.
        comma: A comma follows.
    """

    parts: tuple[str, ...]
    word: str
    at: int
    code: bool
    comma: bool


def mentions_in(question: str, known: SymbolIndex) -> list[Mention]:
    """Return the words of a question, in their order."""
    found = []
    words = list(_NAME.finditer(question))
    for at, word in enumerate(words):
        parts = tuple(_JOINT.split(word[0]))
        start, end = word.span()
        before, after = question[max(start - 1, 0) : start], question[end : end + 1]
        quoted = bool(before) and before in _QUOTES and bool(after) and after in _QUOTES
        shaped = len(parts) > 1 or _SHAPED.search(word[0]) is not None
        # A sentence's first word has a capital in any case.
        first = at == 0 or _SENTENCE_END.search(question, max(start - 4, 0), start) is not None
        code = quoted or shaped or after == "(" or len(words) == 1
        # An object's own name is no class's.
        if len(parts) == 2 and parts[0] in ("self", "this", "cls"):
            parts = parts[1:]
        code = code or (not first and as_in_store(word[0], known))
        found.append(Mention(parts, ".".join(parts).casefold(), at, code, after == ","))
    return found


def as_in_store(name: str, known: SymbolIndex) -> bool:
    """Say whether a word has letters of both cases and is a name of the store, just so."""
    mixed = name not in (name.lower(), name.upper())
    return mixed and known.exactly(name) and name.casefold() not in RESERVED
