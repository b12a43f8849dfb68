"""The functions of a Python file, by Python's own parser.

It says what the questions about code may be about. The splitter reads files by another parser, so
what one of them gets wrong is not taken for right by the other.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Definition(NamedTuple):
    """A function, method or class that is not inside of a function.

    Attributes:
        symbol: Its name inside of the classes around it, joined by dots.
        is_function: It is no class.
        in_class: It stands in a class.
    """

    symbol: str
    is_function: bool
    in_class: bool


def definitions(source: bytes) -> list[Definition]:
    """Return the definitions of a file in their order; one that is defined twice is there twice.

    Raises:
        SyntaxError: It is no Python of this version.
        ValueError: It has zero bytes.
    """
    return list(_walk(ast.parse(source).body, ""))


def functions_defined_once(source: bytes) -> list[Definition]:
    """Return the functions and methods of a file whose symbol no other definition of it has.

    Overloads, and a property with its setter, share theirs: which is meant, no name tells.
    """
    found = definitions(source)
    times = Counter(definition.symbol for definition in found)
    return [one for one in found if one.is_function and times[one.symbol] == 1]


def _walk(body: Iterable[ast.AST], around: str) -> Iterator[Definition]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield Definition(f"{around}{name}", True, bool(around))
            case ast.ClassDef(name=name):
                yield Definition(f"{around}{name}", False, bool(around))
                yield from _walk(node.body, f"{around}{name}.")
            case _:
                # A definition may stand under an ``if`` or a ``try``.
                yield from _walk(ast.iter_child_nodes(node), around)
