"""Converts reStructuredText to Markdown, and records the source line of each Markdown line.

docutils parses the document. Directives and roles that docutils does not know, mostly those of
Sphinx, are replaced by their content. A directive that describes an object, such as a function,
becomes a section with the signature as heading. Files that the document includes are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from docutils import frontend, nodes, utils
from docutils.parsers.rst import Directive, Parser, directives, roles

#: Directives that are left out: they have no prose, or another program generates their content.
OMITTED_DIRECTIVES = re.compile(
    r"toctree|index|highlight|(current)?module|include|meta|raw|auto.*|tabularcol.*"
)
#: Directives whose content is shown unchanged.
CODE_DIRECTIVES = re.compile(
    r"code|sourcecode|test(code|output|setup)|doctest|prompt|ipython|plot|graphviz|productionlist|"
    r".*-block|.*-console"
)
#: Directives whose argument is prose, not an object's signature.
PROSE_DIRECTIVES = (
    *("seealso", "todo", "glossary", "hlist", "tab", "tabs", "tab-item", "tab-set", "dropdown"),
)
#: Directives whose argument is a condition, which is not shown.
CONDITION_DIRECTIVES = ("only", "ifconfig")
#: The texts that are shown instead of the names of directives for a change.
CHANGE_TEXTS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
}
#: A role's text with a title and a target: ``title <target>``.
TITLE_AND_TARGET = re.compile(r"(.+?)\s*<[^<>]*>", re.DOTALL)
#: Roles whose text is prose; the text of other roles is code.
PROSE_ROLES = ("ref", "doc", "term", "abbr", "numref", "guilabel", "menuselection", "dfn")
#: Nodes without a block of their own; a title is shown by the node that has the title.
HIDDEN_NODES = (nodes.Invisible, nodes.system_message, nodes.image, nodes.title, nodes.docinfo)

#: Lines of a block of text, at least one, each with the number of its source line, from 1.
Block = list[tuple[int, str]]


def rst_text(text: str) -> tuple[str, list[int]]:
    """Return a document as Markdown, and the source line of each line of the Markdown."""
    settings = frontend.get_default_settings(Parser)
    settings.file_insertion_enabled = settings.raw_enabled = False
    # Above the highest level, 4: no error is reported, and none ends the parsing.
    settings.report_level = settings.halt_level = 5
    settings.line_length_limit, settings.syntax_highlight = len(text) + 1, "none"
    document = utils.new_document("", settings)
    with _all_names_known():
        Parser().parse(text, document)
    markdown: Block = []
    for block in _child_blocks(document, 0):
        # A title or a term may contain line ends.
        markdown += [(number, part) for number, line in block for part in line.split("\n")]
        markdown.append((block[-1][0], ""))
    return "\n".join(line for _, line in markdown), [number for number, _ in markdown]


def _child_blocks(parent: nodes.Element, depth: int) -> Iterator[Block]:
    """Yield the blocks of a node's children; ``depth`` is the level of the last heading above."""
    is_after_object = False
    for node in parent.children:
        if isinstance(node, HIDDEN_NODES) or not isinstance(node, nodes.Element):
            continue
        if isinstance(node, nodes.section):
            yield [(_line(node), f"{'#' * min(depth + 1, 6)} {_inline(node[0])}")]
            yield from _child_blocks(node, depth + 1)
            is_after_object = "object" in node["classes"]
            continue
        blocks = list(_node_blocks(node, depth))
        # Nodes after an object's section belong to the outer section, whose heading is repeated.
        if is_after_object and blocks and isinstance(parent, nodes.section):
            yield [(blocks[0][0][0], f"{'#' * min(depth, 6)} {_inline(parent[0])}")]
        is_after_object = is_after_object and not blocks
        yield from blocks


def _node_blocks(node: nodes.Element, depth: int) -> Iterator[Block]:
    match node:
        case nodes.literal_block() | nodes.doctest_block() | nodes.math_block():
            yield _numbered(f"```\n{node.astext()}\n```", _line(node) - 1)
        case nodes.table():
            yield _table(node)
        case nodes.bullet_list() | nodes.enumerated_list():
            mark = "- " if isinstance(node, nodes.bullet_list) else "{}. "
            items = enumerate(node.children, int(node.get("start", 1)))
            yield _joined(_item(mark.format(number), item, depth) for number, item in items)
        case nodes.definition_list() | nodes.field_list() | nodes.option_list():
            yield _joined(_definition(item, depth) for item in node.children)
        case nodes.line_block():
            lines = (line.astext() for line in node.findall(nodes.line))
            yield _numbered("\n".join(lines), _line(node))
        case nodes.Admonition() if not isinstance(node, nodes.system_message):
            title = node[0].astext() if isinstance(node[0], nodes.title) else node.tagname.title()
            yield _item(f"{title}: ", node, depth, indent="")
        case nodes.TextElement():
            if text := _inline(node):
                yield _numbered(text, _line(node))
        case _:
            yield from _child_blocks(node, depth)


def _numbered(text: str, first_line: int) -> Block:
    return [(first_line + number, line) for number, line in enumerate(text.split("\n"))]


def _joined(items: Iterable[Block]) -> Block:
    return [line for item in items for line in item] or [(1, "")]


def _item(mark: str, node: nodes.Element, depth: int, indent: str = "  ") -> Block:
    """Return the blocks of a node as one item of a list, without blank lines."""
    # Headings inside the item have the lowest level, 6.
    lines = _joined(_child_blocks(node, max(depth, 6)))
    return [(number, (indent if i else mark) + line) for i, (number, line) in enumerate(lines)]


def _definition(item: nodes.Element, depth: int) -> Block:
    """Return a definition, field or option as an item: its terms, a colon, its body."""
    *terms, body = item.children
    texts = [_inline(part) for part in terms] if terms else [_inline(body)]
    if isinstance(item, nodes.option_list_item):
        texts = [", ".join(f"`{option.astext()}`" for option in item[0])]
    return _item(f"- {' '.join(texts)}: ", body, depth)


def _table(table: nodes.Element) -> Block:
    """Return a table as lines of Markdown; without a header, its first row is the header."""
    lines: Block = [(_line(title), _inline(title)) for title in table.findall(nodes.title)]
    for row_number, row in enumerate(table.findall(nodes.row)):
        cells = []
        for entry in row.children:
            text = " ".join(line for block in _child_blocks(entry, 6) for _, line in block)
            cells += [" ".join(text.split()), *[""] * entry.get("morecols", 0)]
        lines.append((_line(row), f"| {' | '.join(cells)} |"))
        if row_number == 0:
            lines.append((_line(row), "|" + " --- |" * len(cells)))
    return lines or [(_line(table), "")]


def _line(node: Any) -> int:
    """Return a node's source line; if it has none, that of a part or else of the parent."""
    if node.line is None:
        inner = (part.line for part in node.findall(nodes.Element) if part.line is not None)
        node.line = next(inner, None) or (_line(node.parent) if node.parent is not None else 1)
    return int(node.line)


def _inline(node: Any) -> str:
    if isinstance(node, nodes.Text):
        return str(node.astext())
    if isinstance(node, nodes.literal):
        return f"`{node.astext()}`"
    if isinstance(node, nodes.image):
        return str(node.get("alt", ""))
    if isinstance(node, nodes.Invisible | nodes.system_message):
        return ""
    return "".join(map(_inline, node.children))


class _AnyOption(dict[str, Callable[[str], Any]]):
    """An ``option_spec`` that accepts any option as text; true, or docutils would ignore it."""

    def __bool__(self) -> bool:
        return True

    def __missing__(self, name: str) -> Callable[[str], Any]:
        return lambda text: text or ""


class _UnknownDirective(Directive):
    """A directive that docutils does not know, or treats unlike Sphinx, such as ``class``."""

    optional_arguments = 1
    final_argument_whitespace = has_content = True
    option_spec = _AnyOption()

    def run(self) -> list[Any]:
        name = self.name.lower().split(":")[-1]
        argument = " ".join(" ".join(self.arguments).split())
        if OMITTED_DIRECTIVES.fullmatch(name):
            return []
        if CODE_DIRECTIVES.fullmatch(name):
            # Short content may be in the argument.
            text = "\n".join(self.content) or argument
            return [self._with_line(nodes.literal_block(text, text), self.content_offset + 1)]
        body = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, body)
        if name in CHANGE_TEXTS:
            version, _, text = argument.partition(" ")
            change = f"{CHANGE_TEXTS[name]} {version}"
            return [self._prose(f"{change}: {text}" if text else change), body]
        if name in PROSE_DIRECTIVES:
            return [self._prose(argument), body]
        options = "; ".join(f"{key}: {text}" for key, text in self.options.items() if text)
        if name in CONDITION_DIRECTIVES or not argument:
            return [body]
        if not body.children and not options:
            return [self._prose(f"``{argument}``")]
        section = self._with_line(nodes.section(classes=["object"]), self.lineno)
        signature = self._with_line(nodes.title(argument, argument), self.lineno)
        section += [signature, self._prose(options), *body.children]
        return [section]

    def _prose(self, text: str) -> Any:
        parsed, _ = self.state.inline_text(text, self.lineno)
        return self._with_line(nodes.paragraph(text, "", *parsed), self.lineno)

    def _with_line(self, node: Any, line: int) -> Any:
        node.line = line
        return node


def _unknown_role(name: str, raw: str, text: str, *_: Any, **__: Any) -> tuple[list[Any], ...]:
    """Return the text that a role shows: its title, else its target, shortened after a ``~``."""
    text = utils.unescape(text)
    titled = TITLE_AND_TARGET.fullmatch(text)
    label = titled[1] if titled else text.lstrip("!")
    if label.startswith("~"):
        label = label[1:].rpartition(".")[2]
    is_prose = name.split(":")[-1] in PROSE_ROLES
    return [nodes.Text(label) if is_prose else nodes.literal(raw, label)], []


@contextmanager
def _all_names_known() -> Iterator[None]:
    """Patch docutils, which has no hook for this, so that it accepts every directive and role."""
    known_directive, known_role = directives.directive, roles.role

    def any_directive(name: str, *arguments: Any) -> Any:
        if name == "class" or CODE_DIRECTIVES.fullmatch(name) or OMITTED_DIRECTIVES.fullmatch(name):
            return _UnknownDirective, []
        directive, messages = known_directive(name, *arguments)
        return (directive, messages) if directive else (_UnknownDirective, [])

    def any_role(name: str, *arguments: Any) -> Any:
        role, messages = known_role(name, *arguments)
        return (role, messages) if role else (_unknown_role, [])

    directives.directive, roles.role = any_directive, any_role
    try:
        yield
    finally:
        directives.directive, roles.role = known_directive, known_role
