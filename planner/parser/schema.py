"""A toolbox as the plan parser reads it: nodes with relations, and a text (card) of each tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.listed_choices import with_listed_choices
from casewright.planner.parser.message import CLS, SEP, stem, words_in
from casewright.tools import NO_EVIDENCE, Parameter, Source, Toolbox, ToolSpec
from casewright.tools.parameter import KINDS

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Maximum numbers of tokens: of a card (a tool's text), and of each part of a card.
MAX_CARD, MAX_DESCRIPTION, MAX_PARAMETER, MAX_CHOICE, MAX_FIELD, MAX_EXAMPLE = 256, 64, 32, 8, 6, 28
#: Types of nodes: words and context fields of a message, then the four types of a toolbox.
WORD_NODE, FIELD_NODE, TOOL_NODE, PARAMETER_NODE, CHOICE_NODE, RESULT_NODE = range(6)
NODE_TYPE_COUNT = 6
#: Relations of two nodes: the 36 pairs of node types, OWN_TOOL (a tool and its parameter, choice or
#: result), OWN_PARAMETER (a choice and its parameter), SAME_TOOL_AND_TYPE (not for choices), two of
#: similar names (see ``likeness``), and the distances of words, from -MAX_DISTANCE to MAX_DISTANCE.
OWN_TOOL, OWN_PARAMETER, SAME_TOOL_AND_TYPE, SAME_NAME, LIKE_NAME = range(36, 41)
FIRST_DISTANCE = 41
MAX_DISTANCE = 4
#: Numbers of relations, and of features of a parameter and of a tool.
RELATION_COUNT = FIRST_DISTANCE + 2 * MAX_DISTANCE + 1
PARAMETER_FEATURES = len(Source) + len(KINDS) + 2
TOOL_FEATURES = 3


@dataclass(frozen=True, eq=False)
class Schema:
    """A toolbox as nodes: its tools, parameters, choices and result fields, in this order.

    Attributes:
        parameters: Pairs of a tool's index and a parameter.
        choices: Pairs of a parameter's index and a choice's text.
        results: Pairs of a tool's index and a result field's name.
        cards: Token ids of each tool's card: names and descriptions, choices, result fields.
        node_of: The node to which each token of the cards belongs, or -1.
        in_example: True for tokens of the tool's example, which belong to no node.
        name_nodes: By stem, the nodes whose names contain a word with this stem.
        description_nodes: By stem, the nodes whose descriptions contain a word with this stem.
    """

    tools: list[ToolSpec]
    parameters: list[tuple[int, Parameter]] = field(default_factory=list)
    choices: list[tuple[int, str]] = field(default_factory=list)
    results: list[tuple[int, str]] = field(default_factory=list)
    cards: list[list[int]] = field(default_factory=list)
    node_of: list[list[int]] = field(default_factory=list)
    in_example: list[list[bool]] = field(default_factory=list)
    name_nodes: dict[str, list[int]] = field(default_factory=dict)
    description_nodes: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, toolbox: Toolbox, tokenizer: Tokenizer) -> Schema:
        """Return the schema of a toolbox."""
        schema = cls(list(toolbox))
        for tool_index, tool in enumerate(schema.tools):
            schema.results.extend((tool_index, name) for name in tool.results)
            for parameter in map(with_listed_choices, tool.parameters):
                parameter_index = len(schema.parameters)
                schema.parameters.append((tool_index, parameter))
                schema.choices.extend((parameter_index, choice) for choice in parameter.choices)
        for tool_index, tool in enumerate(schema.tools):
            schema._add_card(tool_index, tool, tokenizer)
        for node, texts in enumerate(schema._texts()):
            dictionaries = (schema.name_nodes, schema.description_nodes)
            for nodes_by_stem, text in zip(dictionaries, texts, strict=True):
                for word_stem in set(map(stem, words_in(text))):
                    nodes_by_stem.setdefault(word_stem, []).append(node)
        return schema

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Numbers of tools, parameters, choices and result fields."""
        return len(self.tools), len(self.parameters), len(self.choices), len(self.results)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return self.first_result + len(self.results)

    @property
    def first_choice(self) -> int:
        """Index of the first choice's node; the nodes of tools and parameters come before it."""
        return len(self.tools) + len(self.parameters)

    @property
    def first_result(self) -> int:
        """Index of the first result field's node."""
        return self.first_choice + len(self.choices)

    def parameters_of(self, tool: int) -> list[int]:
        """Return the indices of a tool's parameters."""
        return [n for n, (owner, _) in enumerate(self.parameters) if owner == tool]

    def name_relations(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the ``likeness`` of each parameter's name to these names (parameters, names)."""
        rows = [[likeness(p.name, name) for name in names] for _, p in self.parameters]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(names))

    def _add_card(self, tool_index: int, tool: ToolSpec, tokenizer: Tokenizer) -> None:
        tokens = [(CLS, -1, False)]

        def add(text: str, node: int, max_tokens: int, is_example: bool = False) -> None:
            ids = tokenizer.encode(text, add_special_tokens=False).ids[:max_tokens]
            tokens.extend((token, node, is_example) for token in ids)

        add(f"{' '.join(words_in(tool.name))}: {tool.description}", tool_index, MAX_DESCRIPTION)
        if tool.example is not None:
            add(f"for example: {tool.example.query}", -1, MAX_EXAMPLE, is_example=True)
        for index in self.parameters_of(tool_index):
            parameter = self.parameters[index][1]
            name = " ".join(words_in(parameter.name))
            add(f"; {name}: {parameter.description}", len(self.tools) + index, MAX_PARAMETER)
            for choice, (owner, text) in enumerate(self.choices):
                if owner == index:
                    words = " ".join(words_in(text)) or text
                    add(f", {words}", self.first_choice + choice, MAX_CHOICE)
        for result, (owner, name) in enumerate(self.results):
            if owner == tool_index:
                add(f"> {' '.join(words_in(name))}", self.first_result + result, MAX_FIELD)
        # A long card is truncated; every card ends with SEP.
        tokens[MAX_CARD - 1 :] = [(SEP, -1, False)]
        self.cards.append([token for token, _, _ in tokens])
        self.node_of.append([node for _, node, _ in tokens])
        self.in_example.append([is_example for _, _, is_example in tokens])

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Yield each node's name and description."""
        yield from ((tool.name, tool.description) for tool in self.tools)
        yield from ((parameter.name, parameter.description) for _, parameter in self.parameters)
        yield from ((text, text) for _, text in self.choices)
        yield from ((name, name) for _, name in self.results)

    def types(self) -> NDArray[np.int64]:
        """Return each node's type (nodes,)."""
        return np.repeat(np.arange(TOOL_NODE, RESULT_NODE + 1), self.sizes)

    @cached_property
    def relations(self) -> NDArray[np.int64]:
        """The relation of each pair of nodes (nodes, nodes)."""
        types = self.types()
        tools = [
            *range(len(self.tools)),
            *(tool for tool, _ in self.parameters),
            *(self.parameters[parameter][0] for parameter, _ in self.choices),
            *(tool for tool, _ in self.results),
        ]
        tool_of = np.array(tools, dtype=np.int64)
        relations = NODE_TYPE_COUNT * types[:, None] + types[None]
        same_tool = tool_of[:, None] == tool_of[None]
        same_type = types[:, None] == types[None]
        relations[same_tool & same_type & (types != CHOICE_NODE)[:, None]] = SAME_TOOL_AND_TYPE
        is_tool_pair = (types == TOOL_NODE)[:, None] ^ (types == TOOL_NODE)[None]
        relations[same_tool & is_tool_pair] = OWN_TOOL
        for choice_node, (index, _) in enumerate(self.choices, self.first_choice):
            node = len(self.tools) + index
            relations[choice_node, node] = relations[node, choice_node] = OWN_PARAMETER
        for node, (tool, parameter) in enumerate(self.parameters, len(self.tools)):
            for result_node, (result_tool, name) in enumerate(self.results, self.first_result):
                if result_tool != tool and (relation := likeness(parameter.name, name)):
                    relations[node, result_node] = relations[result_node, node] = relation
        return relations

    def parameter_features(self) -> NDArray[np.float32]:
        """Return each parameter's features (parameters, PARAMETER_FEATURES)."""
        rows = [
            [
                *(source in parameter.sources for source in Source),
                *(parameter.kind == kind for kind in KINDS),
                parameter.required,
                bool(parameter.choices),
            ]
            for _, parameter in self.parameters
        ]
        return np.array(rows, dtype=np.float32).reshape(len(rows), PARAMETER_FEATURES)

    def tool_features(self) -> NDArray[np.float32]:
        """Return each tool's features, in addition to its card (tools, TOOL_FEATURES)."""
        # Tools that need a value from the context or a step; a message cannot state this value.
        other_sources = {Source.CONTEXT, Source.STEP}
        dependent_tools = {
            tool
            for tool, parameter in self.parameters
            if parameter.required and not parameter.choices and parameter.sources <= other_sources
        }
        rows = [
            [tool.name == NO_EVIDENCE.name, index in dependent_tools, not tool.parameters]
            for index, tool in enumerate(self.tools)
        ]
        return np.array(rows, dtype=np.float32)


# Cached, since the same few names are compared for every message.
@lru_cache(maxsize=10_000)
def likeness(parameter: str, field: str) -> int:
    """Return SAME_NAME for equal names, LIKE_NAME for a shared word or ending, else 0."""
    words, field_words = words_in(parameter), words_in(field)
    if words == field_words:
        return SAME_NAME
    # These words are in so many names that they do not make names similar.
    shared = set(words) & set(field_words) - {"id", "no", "code", "nr", "key", "name"}
    if not words or not field_words:
        return 0
    is_suffix = words == field_words[-len(words) :] or field_words == words[-len(field_words) :]
    return LIKE_NAME if shared or is_suffix else 0
