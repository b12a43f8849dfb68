"""Tests of the symbols of a store that a question names."""

from __future__ import annotations

import keyword
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.domains.code.symbol_index import SymbolIndex
from casewright.domains.code.symbols import CLASSES, FUNCTIONS, symbols_named

KNOWN = [
    *("Splitter", "Splitter.split", "Splitter.join", "Splitter.__init__"),
    *("Lines", "Lines.cut", "Lines.of", "Lines.split"),
    *("Console.print", "Console.get", "Console.show", "Console.add"),
    *("grouped", "main", "add", "full", "of", "HTTPError", "pkg.Thing.run"),
    *("Box.constructor", "Tin.Tin", "Tin.open"),
]
SPLITTER, CONSOLE = KNOWN[:4], KNOWN[8:12]
ADD = "Console.add"


@pytest.mark.parametrize(
    ("question", "symbols"),
    [
        ("Show me the full split method of class Splitter", ["Splitter.split"]),
        ("the method split in class Splitter", ["Splitter.split"]),
        ("Splitter's split method", ["Splitter.split"]),
        ("split of Splitter", ["Splitter.split"]),
        ("class splitter, method split", ["Splitter.split"]),
        ("the __init__ method of the class Splitter", ["Splitter.__init__"]),
        ("What does `Lines.cut` return?", ["Lines.cut"]),
        ("Lines::cut", ["Lines.cut"]),
        ("where is other.lib.pkg.Thing.run called", ["pkg.Thing.run"]),
        ("Thing.run", ["pkg.Thing.run"]),
        ("text.splitter.grouped", ["grouped"]),
        ("the function grouped", ["grouped"]),
        ("the function called grouped", ["grouped"]),
        ("print the body of main()", ["main"]),
        ("is an HTTPError raised?", ["HTTPError"]),
        ("the print method of Console", ["Console.print"]),
        ("the get method of class Console", ["Console.get"]),
        ("give me the whole class Splitter", SPLITTER),
        ("Splitter", SPLITTER),
        ("the add function", ["add"]),
        ("the add method", ["Console.add"]),
        ("the split method", ["Splitter.split", "Lines.split"]),
        ("how does self.split work?", ["Splitter.split", "Lines.split"]),
        ("compare the cut and the split method of Lines", ["Lines.cut", "Lines.split"]),
        (
            "the split method of class Lines and then the split method of class Splitter",
            ["Lines.split", "Splitter.split"],
        ),
        ("Console.get, grouped() and Lines.cut", ["Console.get", "grouped", "Lines.cut"]),
        ("get and add of Console", ["Console.get", "Console.add"]),
        ("get, show and add of Console", ["Console.get", "Console.show", "Console.add"]),
        ("the get, the show and the add method of Console", ["Console.get", "Console.show", ADD]),
        ("in that case, get of Console", ["Console.get"]),
        ("the constructor of Splitter", ["Splitter.__init__"]),
        ("Splitter's constructor", ["Splitter.__init__"]),
        ("the Box constructor", ["Box.constructor"]),
        ("the constructor method of the class Tin", ["Tin.Tin"]),
        ("Splitter->split", ["Splitter.split"]),
        ("die Methode split der Klasse Splitter", ["Splitter.split"]),
        ("vad gör Splitter egentligen?", SPLITTER),
        ("split the Lines", ["Lines", "Lines.cut", "Lines.of", "Lines.split"]),
        ("the whole class Console", CONSOLE),
        ("class Thing", ["pkg.Thing.run"]),
        ("pkg.Thing", ["pkg.Thing.run"]),
    ],
)
def test_symbols_named_finds_the_symbols_in_a_question(question: str, symbols: list[str]) -> None:
    assert symbols_named(question, KNOWN) == symbols


@pytest.mark.parametrize(
    "question",
    [
        "",
        "show me everything of the main idea",
        "the full method of nothing",
        "where are lines cut?",
        "split the lines",
        "Lines are what it splits, so how are they cut?",
        "Who wrote it? Lines of it are long.",
        "How does the class of a method matter?",
        "the walk method of class Walker",
    ],
)
def test_symbols_named_finds_none_in_ordinary_words(question: str) -> None:
    assert symbols_named(question, KNOWN) == []


NAMES = st.from_regex(r"[a-z]{2,8}(_[a-z]{1,5})?", fullmatch=True).filter(
    lambda name: not keyword.iskeyword(name)
)
# The prefixes q and Q keep names from equalling a word of the question by chance.
METHODS = NAMES.map(lambda name: f"q{name}")
OWNERS = NAMES.map(lambda name: f"Q{name}")
TEMPLATES = (
    "Show me the full {method} method of class {owner}",
    "Where is {owner}.{method} defined?",
    "print method {method} in {owner}, please",
    "`{method}` of the class {owner}",
)


@settings(max_examples=60)
@given(METHODS, OWNERS, st.lists(OWNERS, max_size=4), st.sampled_from(TEMPLATES))
def test_method_and_class_name_that_method_of_that_class_and_no_other(
    method: str, owner: str, others: list[str], template: str
) -> None:
    others = [other for other in others if other != owner]
    known = [symbol for name in (*others, owner) for symbol in (name, f"{name}.{method}")]
    question = template.format(method=method, owner=owner)
    assert symbols_named(question, known) == [f"{owner}.{method}"]


WORDS = st.sampled_from(
    [*sorted(FUNCTIONS | CLASSES), "of", "the", "and", "Splitter", "`", ".", "("]
)


@settings(max_examples=100)
@given(
    st.lists(WORDS | st.text(max_size=6), max_size=12).map(" ".join),
    st.lists(st.text(max_size=8) | st.sampled_from(KNOWN), max_size=8),
)
def test_any_text_names_symbols_of_the_store_only_and_each_once(
    question: str, known: list[str]
) -> None:
    symbols = symbols_named(question, known)
    assert set(symbols) <= set(known)
    assert len(symbols) == len(set(symbols))


@pytest.mark.parametrize("question", ["class Splitter", "Give me the complete class Splitter"])
def test_class_without_a_symbol_of_its_own_is_all_that_is_defined_in_it(question: str) -> None:
    known = ["Splitter.split", "Splitter.split.cut", "Splitter.join", "Splitters.of"]
    assert symbols_named(question, known) == known[:3]
    assert symbols_named("the split method of Splitter", known) == known[:2]


LONG = {
    "pasted code": (
        ("for item in Table.items(): Row.update(item); self.getItem(Cell_1, add_2)\n" * 111)[:8000],
        [
            f"{owner}.{name}"
            for owner in ("Table", "Row", "Cell_1", "Other")
            for name in ("items", "update", "getItem", "add_2", "item", "for", "self", "Row")
        ],
    ),
    "one name again and again": ("getItem " * 800, [f"C{n}.getItem" for n in range(20)]),
    "words for names, listed": ("getItem, method and " * 400, [f"C{n}.getItem" for n in range(20)]),
    "class and method in turn": ("method getItem of class C1 " * 300, ["C1.getItem", "C2.getItem"]),
    "a name of many classes": (
        "the `__init__` method",
        [f"C{n}.{'__init__' if n < 2000 else f'name_{n}'}" for n in range(20_000)],
    ),
    "joined names of many classes": (
        " ".join(f"C{n}.__init__" for n in range(600)),
        [f"C{n}.__init__" for n in range(20_000)],
    ),
}


@pytest.mark.parametrize("case", LONG)
def test_symbols_named_takes_under_half_a_second_on_large_input(case: str) -> None:
    question, symbols = LONG[case]
    assert len(question) <= 10_000
    known = SymbolIndex(symbols)
    seconds = []
    for _ in range(3):
        # Processor time: the machine may be busy with other tests.
        started = time.thread_time()
        assert symbols_named(question, known)
        seconds.append(time.thread_time() - started)
    # Garbage collection may slow one of the runs.
    assert min(seconds) < 0.5
