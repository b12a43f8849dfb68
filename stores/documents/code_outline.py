"""Finds the functions, methods and classes of a source file with tree-sitter.

LlamaIndex's ``CodeSplitter`` cuts by size alone: its chunks have no symbols or positions, and may
begin within a line. This module walks the syntax trees of the same parsers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.stores.documents.text_size import Lines

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


def _type_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Node types of definitions such as functions, in any language. Inner definitions are not listed.
LEAF_TYPES = _type_set("""
    function_definition function_declaration generator_function_declaration function_item method
    method_definition method_declaration singleton_method constructor_declaration
    destructor_declaration compact_constructor_declaration secondary_constructor
    operator_declaration property_declaration init_declaration deinit_declaration
    macro_definition create_table create_view create_function enum_item enum_specifier
""")
#: Node types of definitions such as classes. Inner definitions are listed, as ``Class.method``.
CONTAINER_TYPES = _type_set("""
    class_definition class_declaration abstract_class_declaration class class_specifier
    interface_declaration enum_declaration record_declaration struct_declaration
    annotation_type_declaration struct_specifier union_specifier namespace_definition
    namespace_declaration internal_module module impl_item mod_item trait_item struct_item
    union_item trait_declaration trait_definition object_declaration object_definition
    companion_object protocol_declaration type_spec type_definition
""")
#: Types of both sets whose nodes define something only with a body; ``struct pair *p`` has none.
BODY_TYPES = _type_set("""
    class_specifier struct_specifier union_specifier enum_specifier namespace_definition
    namespace_declaration
""")
#: Node types of values that make an assignment a definition: ``const f = () => …``.
VALUE_TYPES = _type_set(
    "arrow_function function_expression generator_function function_definition class"
)
#: Types of nodes that enclose one definition and are listed as part of this definition.
WRAPPER_TYPES = _type_set("""
    decorated_definition export_statement ambient_declaration template_declaration
    lexical_declaration variable_declaration expression_statement type_declaration statement
""")
#: Types of nodes that are listed as part of the definition after them.
LEADING_TYPE = re.compile(r"comment|attribute|annotation|decorator")
#: Types of child nodes that may hold a definition's name, if the definition has no name field.
NAME_TYPES = ("type_identifier", "simple_identifier", "identifier", "object_reference")
#: Module and function of a language's grammar, if not ``tree_sitter_<language>.language``.
GRAMMARS = {
    "csharp": ("tree_sitter_c_sharp", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "r": ("tree_sitter_language_pack.bindings.r", "language"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}
#: Maximum depth of nested nodes: deeper code was generated, and its symbols are useless.
MAX_DEPTH = 60
#: At most this many bytes of a name or receiver are read: the last ones.
MAX_NAME_BYTES = 1000


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition: its lines, and its symbol, which is a dotted name such as ``Outer.name``."""

    lines: Lines
    symbol: str


def outline(text: str, language: str) -> list[Definition]:
    """Return the definitions of a source file, outer ones first.

    A one-line definition inside another, such as a signature or getter, is not listed. Syntax
    errors are skipped. Raise ``InputError`` if the grammar is missing; the error does not name the
    file.
    """
    root = _parser(language).parse(text.encode()).root_node
    definitions: list[Definition] = []
    _walk(root, definitions, outer_symbol="", outer_row=-1, depth=0)
    return definitions


def _parser(language: str) -> Parser:
    from tree_sitter import Language, Parser

    module, function = GRAMMARS.get(language, (f"tree_sitter_{language}", "language"))
    try:
        return Parser(Language(getattr(import_module(module), function)()))
    except ImportError as error:
        advice = f"run pip install 'casewright[{'r' if language == 'r' else 'documents'}]'"
        problem = f"{module.split('.')[0]}, which parses it, is not installed"
        raise InputError(f"{problem}; {advice}") from error


def _walk(
    node: Node,
    definitions: list[Definition],
    outer_symbol: str,
    outer_row: int,
    depth: int,
    wrapper_row: int | None = None,
) -> None:
    """Add the definitions in a node at ``depth`` to ``definitions``.

    ``outer_symbol`` and ``outer_row`` are symbol and first row of the enclosing definition; an
    inner definition on that row is not listed. ``wrapper_row`` is the first row of a wrapper node.
    """
    if depth > MAX_DEPTH:
        return
    children, seen_types = node.named_children, set[str]()
    for index, child in enumerate(children):
        # The comments before a wrapper are listed with the first node of each type inside.
        is_first = child.type not in seen_types
        seen_types.add(child.type)
        name, is_wrapper = _definition_name(child), child.type in WRAPPER_TYPES
        row = child.start_point.row
        if (name or is_wrapper) and is_first and wrapper_row is not None:
            row = wrapper_row
        elif name or is_wrapper:
            row = _first_row(children, index)
        if not name or child.start_point.row == outer_row:
            child_wrapper_row = row if is_wrapper else None
            _walk(child, definitions, outer_symbol, outer_row, depth + 1, child_wrapper_row)
            continue
        symbol = f"{outer_symbol}.{name}" if outer_symbol else name
        lines = Lines(row, _last_row(child))
        if outer_symbol and lines.first == lines.last:
            continue
        definitions.append(Definition(lines, symbol))
        if child.type in CONTAINER_TYPES:
            _walk(child, definitions, symbol, child.start_point.row, depth + 1)


def _definition_name(node: Node) -> str:
    """Return the name that a definition's node gives; empty for a node that is no definition."""
    if node.type in BODY_TYPES and node.child_by_field_name("body") is None:
        return ""
    if node.type in LEAF_TYPES or node.type in CONTAINER_TYPES:
        return _declared_name(node)
    for name_field, value_field in (("name", "value"), ("left", "right"), ("lhs", "rhs")):
        value = node.child_by_field_name(value_field)
        if value is not None and value.type in VALUE_TYPES:
            return _clean_name(node.child_by_field_name(name_field))
    return ""


def _declared_name(node: Node) -> str:
    name_node = node.child_by_field_name("name")
    if node.type == "impl_item":
        name_node = node.child_by_field_name("type")
    elif name_node is None:
        # In C, a name is inside its type: ``int *name(…)``.
        name_node = node.child_by_field_name("declarator")
        inner = name_node
        while inner is not None:
            name_node, inner = inner, inner.child_by_field_name("declarator")
    if name_node is None:
        name_node = next((child for child in node.named_children if child.type in NAME_TYPES), None)
    receiver = node.child_by_field_name("receiver")
    if node.type == "method_declaration" and receiver is not None:
        # In Go, ``func (s *Store[T]) Add()`` is a method of Store.
        owner = re.search(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)?\)$", _text(receiver))
        return f"{owner[1]}.{_clean_name(name_node)}" if owner else _clean_name(name_node)
    default_names = {"init_declaration": "init", "companion_object": "Companion"}
    return _clean_name(name_node) or default_names.get(node.type, "")


def _clean_name(name_node: Node | None) -> str:
    """Return a name without type arguments, its parts joined by dots; empty for a long text."""
    if name_node is None:
        return ""
    text = re.sub(r"<.*>|\s+", "", _text(name_node), flags=re.DOTALL).strip("\"'`[]&*")
    text = re.sub(r"::|:|\\|/", ".", text)
    return text if len(text) <= 100 else ""


def _text(node: Node) -> str:
    # A long text is cut: it is no name, and the patterns would take quadratic time.
    return (node.text or b"")[-MAX_NAME_BYTES:].decode(errors="replace")


def _first_row(siblings: Sequence[Node], index: int) -> int:
    """Return the first row of a sibling, or of the comments and decorators that belong to it."""
    first = siblings[index].start_point.row
    for i in range(index - 1, -1, -1):
        sibling = siblings[i]
        if not LEADING_TYPE.search(sibling.type) or _last_row(sibling) != first - 1:
            break
        # A comment after other code on its row is about that code.
        if i and _last_row(siblings[i - 1]) == sibling.start_point.row:
            break
        first = sibling.start_point.row
    return first


def _last_row(node: Node) -> int:
    # Some comments include the end of their line, so that they end on the next row.
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row
