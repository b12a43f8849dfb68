"""Questions for the whole of a function, in the words that people use."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from casewright.bench.feedback.sets import FeedbackQuestion

#: Of which functions are asked about, and of the words.
SEED = 0
#: Questions of one package at most, so that no package is most of the set.
PER_PACKAGE = 50
#: A function of more chunks is not asked about: it fills a search's results by itself.
MOST_CHUNKS = 10

METHOD_WORDS = (
    "Show me the full `{name}` method of class `{owner}`{place}.",
    "the whole {name} method of {owner}{place}",
    "I need all of {owner}.{name}{place}, from its signature to its last line.",
    "What does the complete implementation of {owner}.{name}{place} look like?",
    "Print {owner}.{name}(){place} in full",
    "entire body of the method {name} in the class {owner}{place}",
    "Give me the code of {owner}'s {name} method{place}, all of it.",
)
FUNCTION_WORDS = (
    "Show me the full `{name}` function{place}.",
    "the whole function {name}{place}",
    "I need all of {name}(){place}, from its signature to its last line.",
    "What does the complete implementation of {name}{place} look like?",
    "Print the function {name}{place} in full",
    "entire body of {name}{place}",
    "Give me the code of the function {name}{place}, all of it.",
)
#: Where it is, as questions say it that could do without.
PLACES = ("", "", " of {package}", " in {source}")


@dataclass(frozen=True, slots=True)
class Function:
    """A definition that questions may be about.

    Attributes:
        package: The package that it is of.
        source: Its file.
        symbol: Its name inside of the classes around it, joined by dots.
        chunks: The ids of its chunks; none where it is not to be asked about.
        is_method: It stands in a class.
    """

    package: str
    source: str
    symbol: str
    chunks: tuple[str, ...]
    is_method: bool

    @property
    def key(self) -> str:
        """Its file and symbol: the id of its question in every set, from which the half follows."""
        return f"{self.source}:{self.symbol}"

    @property
    def is_cut(self) -> bool:
        """It can be asked about, and has several chunks but not too many."""
        return 2 <= len(self.chunks) <= MOST_CHUNKS


def ask_about(functions: Sequence[Function]) -> list[FeedbackQuestion]:
    """Return one question for each function that was cut, of each package as many at most.

    The words, and which functions, are drawn with a seed. A symbol that several files define is
    asked for with its file. A question's id is the file and the symbol.
    """
    files = Counter(function.symbol for function in functions)
    chosen: list[Function] = []
    for package in sorted({function.package for function in functions}):
        cut = [one for one in functions if one.package == package and one.is_cut]
        cut.sort(key=lambda function: (function.source, function.symbol))
        random.Random(f"{SEED} {package}").shuffle(cut)
        chosen += cut[:PER_PACKAGE]
    # So that the first questions are of all packages.
    random.Random(SEED).shuffle(chosen)
    return [_question(function, unique=files[function.symbol] == 1) for function in chosen]


def _question(function: Function, *, unique: bool) -> FeedbackQuestion:
    # Its own generator: another package, or one less, changes no other's words.
    rng = random.Random(f"{SEED} {function.key}")
    owner, _, name = function.symbol.rpartition(".")
    words = rng.choice(METHOD_WORDS if function.is_method else FUNCTION_WORDS)
    place = rng.choice(PLACES) if unique else " in {source}"
    told = place.format(package=function.package, source=function.source)
    text = words.format(name=name, owner=owner, place=told)
    return FeedbackQuestion(function.key, text, frozenset(function.chunks))
