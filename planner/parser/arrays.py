"""Converts messages, a toolbox and plan cases to arrays for the plan parser's network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.message import WORD_FEATURES, Message
from casewright.planner.parser.plan_reading import (
    CHOICE,
    CONTEXT,
    KIND_COUNT,
    NUMBER,
    SPAN,
    STEP,
    ReadStep,
)
from casewright.planner.parser.schema import (
    FIELD_NODE,
    FIRST_DISTANCE,
    LIKE_NAME,
    MAX_DISTANCE,
    NODE_TYPE_COUNT,
    SAME_NAME,
    WORD_NODE,
    Schema,
    likeness,
)

Array = NDArray[Any]
#: A plan case as the parser reads it: the message and the plan's steps.
ReadCase = tuple[Message, Sequence[ReadStep]]
#: Length of ``tool_sequences``: the first tools of a case, and the plan's end if there is room.
SEQUENCE_LENGTH = 7
#: Number of channels of the links between nodes; see ``pair_arrays``.
LINK_CHANNELS = 4
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Votes(Generic[T]):
    """Votes of plan cases for what their plans use: arrays for one message, tensors (n, …) for n.

    Attributes:
        states: Addends to the states of the toolbox's nodes (nodes, size).
        weights: Weights of the cases (cases,); their sum is below 1.
        tools: For each tool, measures of the cases that call it (tools, 4): total weight, highest
            cosine to the message, scaled logarithms of the number of cases and of the total weight.
        kinds: For each parameter, votes for the kinds of its argument, then the scaled logarithm of
            the number of cases that call its tool (parameters, KIND_COUNT + 1).
        choices: Votes for the parameters' choices (choices,).
        fields: Votes for result fields as arguments (parameters, result fields).
        context: Votes for context fields as arguments (parameters, context fields).
    """

    states: T
    weights: T
    tools: T
    kinds: T
    choices: T
    fields: T
    context: T


@dataclass(slots=True)
class CaseData:
    """Plan cases of one toolbox: arrays from ``CaseVoting``, or tensors from ``case_tensors``.

    ``case_arrays`` explains ``calls``, ``kinds``, ``choices``, ``fields`` and ``pairs``. In arrays,
    the first two axes of the first four are swapped, and ``calls`` is Boolean.

    Attributes:
        keys: Vectors by which the cases' messages are compared with others (cases, KEY_SIZE).
        vectors: Mean states of the messages (cases, width); in arrays, mapped to (cases, size).
        spans: Mean states of each argument's words (spans, width); in arrays (spans, size).
        span_case: Index of the case of each span.
        span_parameter: Index of each span's parameter; in arrays, a mask (parameters, spans).
        context: See ``case_fields``; in arrays, see ``context_uses``.
        sequences: See ``tool_sequences``.
        tool_of: Index of the tool of each parameter.
        parameter_of: Index of the parameter of each choice.
    """

    keys: Any
    vectors: Any
    spans: Any
    span_case: Any
    span_parameter: Any
    calls: Any
    kinds: Any
    choices: Any
    fields: Any
    pairs: Any
    context: Any
    sequences: Any
    tool_of: Any
    parameter_of: Any


def message_arrays(messages: Sequence[Message]) -> dict[str, Array]:
    """Return the messages' token ids, and weights that pool tokens to words and context fields.

    Returns:
        ``ids``, ``types``, ``mask`` (n, tokens); ``words`` (n, words, tokens) and ``fields``
        (n, fields, tokens), weights that add up to 1 in each row, or to 0 for padding;
        ``features`` (n, words, WORD_FEATURES).
    """
    count, token_count = len(messages), max(len(message.ids) for message in messages)
    word_count = _axis_length(message.words for message in messages)
    field_count = _axis_length(message.fields for message in messages)
    ids, types, mask = np.zeros((3, count, token_count), dtype=np.int64)
    words = np.zeros((count, word_count, token_count), dtype=np.float32)
    fields = np.zeros((count, field_count, token_count), dtype=np.float32)
    features = np.zeros((count, word_count, WORD_FEATURES), dtype=np.float32)
    for row, message in enumerate(messages):
        length = len(message.ids)
        ids[row, :length] = message.ids
        types[row, :length] = message.types
        mask[row, :length] = 1
        for weights, owner_of in ((words, message.word_of), (fields, message.field_of)):
            for token, owner in enumerate(owner_of):
                if owner >= 0:
                    weights[row, owner, token] = 1
        if message.words:
            features[row, : len(message.words)] = message.features
    pooling = {"words": _normalised(words), "fields": _normalised(fields)}
    return {"ids": ids, "types": types, "mask": mask, **pooling, "features": features}


def card_arrays(schema: Schema) -> dict[str, Array]:
    """Return the token ids of the tools' cards (texts), and weights that pool tokens to nodes.

    Returns:
        ``ids``, ``mask`` (tools, tokens); ``nodes`` (nodes, tools × tokens) and ``examples``
        (tools, tools × tokens), weights with rows of sum 1; ``parameters`` and ``tools``: features.
    """
    token_count = max(map(len, schema.cards))
    tool_count = len(schema.cards)
    ids = np.zeros((tool_count, token_count), dtype=np.int64)
    nodes = np.zeros((schema.size, tool_count, token_count), dtype=np.float32)
    examples = np.zeros((tool_count, tool_count, token_count), dtype=np.float32)
    for tool, card in enumerate(schema.cards):
        ids[tool, : len(card)] = card
        for token, node in enumerate(schema.node_of[tool]):
            if node >= 0:
                nodes[node, tool, token] = 1
        examples[tool, tool, : len(card)] = schema.in_example[tool]
    return {
        "ids": ids,
        "mask": (ids != 0).astype(np.int64),
        "nodes": _normalised(nodes.reshape(schema.size, -1)),
        "examples": _normalised(examples.reshape(tool_count, -1)),
        "parameters": schema.parameter_features(),
        "tools": schema.tool_features(),
    }


def _normalised(weights: Array) -> Array:
    """Return weights that add up to 1 in each row; a row of zeros is unchanged."""
    normalised: Array = weights / np.maximum(weights.sum(-1, keepdims=True), 1)
    return normalised


def pair_arrays(schema: Schema, messages: Sequence[Message]) -> dict[str, Array]:
    """Return relations and links of nodes: words, context fields, then the toolbox's nodes.

    Returns:
        ``relations`` (nodes, nodes), each pair's relation, the same for all messages; ``links`` (n,
        words + context fields, context fields + the toolbox's nodes, LINK_CHANNELS), 1 for a link.
        Channel 0: a node's name or a context field's value contains the word. 1: a node's
        description contains the word. 2: a context field and a node have the same name. 3: their
        names are similar. ``present`` (n, nodes), False for padding.
    """
    word_count = _axis_length(message.words for message in messages)
    field_count = _axis_length(message.fields for message in messages)
    first_toolbox_node = word_count + field_count
    message_types = np.repeat([WORD_NODE, FIELD_NODE], [word_count, field_count])
    types = np.concatenate([message_types, schema.types()])
    relations = NODE_TYPE_COUNT * types[:, None] + types[None]
    distances = np.arange(word_count)[None] - np.arange(word_count)[:, None]
    relations[:word_count, :word_count] = (
        FIRST_DISTANCE + MAX_DISTANCE + np.clip(distances, -MAX_DISTANCE, MAX_DISTANCE)
    )
    relations[first_toolbox_node:, first_toolbox_node:] = schema.relations
    shape = (len(messages), first_toolbox_node, field_count + schema.size, LINK_CHANNELS)
    links = np.zeros(shape, dtype=np.float32)
    present = np.zeros((len(messages), first_toolbox_node + schema.size), dtype=bool)
    present[:, first_toolbox_node:] = True
    parameters = enumerate(schema.parameters, len(schema.tools))
    names = [(node, parameter.name) for node, (_, parameter) in parameters]
    names += [(node, name) for node, (_, name) in enumerate(schema.results, schema.first_result)]
    likenesses_by_field = {
        field_name: [(node, like) for node, name in names if (like := likeness(name, field_name))]
        for field_name in {name for message in messages for name in message.fields}
    }
    for row, message in enumerate(messages):
        present[row, : len(message.words)] = True
        present[row, word_count : word_count + len(message.fields)] = True
        for field, name in enumerate(message.fields):
            for node, like in likenesses_by_field[name]:
                channel = 2 if like == SAME_NAME else 3
                links[row, word_count + field, field_count + node, channel] = 1
        for word, word_stem in enumerate(message.stems):
            for field, stems in enumerate(message.field_stems):
                links[row, word, field, 0] = word_stem in stems
            for channel, nodes_by_stem in enumerate((schema.name_nodes, schema.description_nodes)):
                for node in nodes_by_stem.get(word_stem, ()):
                    links[row, word, field_count + node, channel] = 1
    return {"relations": relations, "links": links, "present": present}


def name_likeness(schema: Schema) -> Array:
    """Return flags (parameters, result fields, 2): the names are equal; the names are similar."""
    return _likeness(schema, [name for _, name in schema.results])


def field_likeness(schema: Schema, messages: Sequence[Message]) -> Array:
    """Return flags (n, parameters, context fields, 2): the names are equal; they are similar."""
    field_count = _axis_length(message.fields for message in messages)
    likenesses = np.zeros((len(messages), len(schema.parameters), field_count, 2), dtype=np.float32)
    for row, message in enumerate(messages):
        likenesses[row, :, : len(message.fields)] = _likeness(schema, message.fields)
    return likenesses


def _likeness(schema: Schema, names: Sequence[str]) -> Array:
    flags: Array = schema.name_relations(names)[..., None] == [SAME_NAME, LIKE_NAME]
    return flags.astype(np.float32)


def _axis_length(rows: Iterable[Sized]) -> int:
    """Return the length of the longest row, at least 1: no axis may have length 0."""
    return max(1, *map(len, rows))


def case_arrays(schema: Schema, cases: Sequence[ReadCase]) -> dict[str, Array]:
    """Return how cases use a toolbox's nodes.

    Returns:
        ``calls`` (cases, tools), 1 for the tools that a case calls; ``kinds`` (cases, parameters,
        kinds), ``choices`` (cases, choices) and ``fields`` (cases, parameters, result fields): the
        share of a case's calls of the parameter's tool that have this kind, choice or field;
        ``pairs`` (cases, tools + 1, tools + 1), 1 if the column's tool follows the row's tool. The
        last row stands for the start of a plan, and the last column for its end.
    """
    tool_count, parameter_count, choice_count, result_count = schema.sizes
    calls = np.zeros((len(cases), tool_count), dtype=np.float32)
    kinds = np.zeros((len(cases), parameter_count, KIND_COUNT), dtype=np.float32)
    choice_uses = np.zeros((len(cases), choice_count), dtype=np.float32)
    fields = np.zeros((len(cases), parameter_count, result_count), dtype=np.float32)
    pairs = np.zeros((len(cases), tool_count + 1, tool_count + 1), dtype=np.float32)
    for row, (_, steps) in enumerate(cases):
        start = end = tool_count
        for previous, tool in pairwise([start, *(step.tool for step in steps), end]):
            pairs[row, previous, tool] = 1
        for step in steps:
            calls[row, step.tool] += 1
            for argument in step.arguments:
                kinds[row, argument.parameter, argument.kind] += 1
                if argument.kind == CHOICE:
                    choice_uses[row, argument.node] += 1
                elif argument.kind == STEP:
                    fields[row, argument.parameter, argument.node] += 1
    tool_of = np.array([tool for tool, _ in schema.parameters], dtype=np.int64)
    parameter_of = np.array([parameter for parameter, _ in schema.choices], dtype=np.int64)
    # Calls of each parameter's tool, at least 1 to avoid a division by zero.
    call_counts = np.maximum(calls, 1)[:, tool_of]
    return {
        "calls": (calls > 0).astype(np.float32),
        "kinds": kinds / call_counts[..., None],
        "choices": choice_uses / call_counts[:, parameter_of],
        "fields": fields / call_counts[..., None],
        "pairs": pairs,
    }


def case_spans(cases: Sequence[ReadCase]) -> NDArray[np.int64]:
    """Return case, parameter, first and last word of each span or number argument (spans, 4)."""
    spans: list[tuple[int, ...]] = []
    for row, (message, steps) in enumerate(cases):
        for step in steps:
            for argument in step.arguments:
                if argument.kind == SPAN:
                    spans.append((row, argument.parameter, *argument.spans[0]))
                elif argument.kind == NUMBER:
                    number = message.numbers[argument.numbers[0]]
                    spans.append((row, argument.parameter, number.first, number.last))
    return np.array(spans, dtype=np.int64).reshape(-1, 4)


def context_uses(schema: Schema, cases: Sequence[ReadCase]) -> dict[str, Array]:
    """Return an array (parameters, cases) for each context field, 1 where a case refers to it."""
    uses: dict[str, Array] = {}
    for row, (message, steps) in enumerate(cases):
        for argument in chain.from_iterable(step.arguments for step in steps):
            if argument.kind == CONTEXT:
                name = message.fields[argument.node]
                if name not in uses:
                    uses[name] = np.zeros((len(schema.parameters), len(cases)), dtype=np.float32)
                uses[name][argument.parameter, row] = 1
    return uses


def case_fields(schema: Schema, cases: Sequence[ReadCase], messages: Sequence[Message]) -> Array:
    """Return an array (cases, parameters, n, fields), 1 where a case uses a message's field."""
    field_count = _axis_length(message.fields for message in messages)
    shape = (len(cases), len(schema.parameters), len(messages), field_count)
    fields = np.zeros(shape, dtype=np.float32)
    uses = context_uses(schema, cases)
    for row, message in enumerate(messages):
        for field, name in enumerate(message.fields):
            if name in uses:
                fields[:, :, row, field] = uses[name].T
    return fields


def tool_sequences(cases: Sequence[ReadCase], end: int) -> Array:
    """Return each case's tools, then ``end``, padded with -1 (cases, SEQUENCE_LENGTH)."""
    sequences = np.full((len(cases), SEQUENCE_LENGTH), -1, dtype=np.int64)
    for row, (_, steps) in enumerate(cases):
        tools = [*(step.tool for step in steps), end][:SEQUENCE_LENGTH]
        sequences[row, : len(tools)] = tools
    return sequences


def number_arrays(messages: Sequence[Message], word_count: int) -> tuple[Array, Array, Array]:
    """Return three arrays of the messages' numbers: weights over words, features, and a mask.

    Returns:
        (n, numbers, words), (n, numbers, 3), (n, numbers). The features are the scaled logarithm,
        1 for a fraction, and 1 for a number in digits. The mask is False for padding.
    """
    number_count = _axis_length(message.numbers for message in messages)
    weights = np.zeros((len(messages), number_count, word_count), dtype=np.float32)
    features = np.zeros((len(messages), number_count, 3), dtype=np.float32)
    present = np.zeros((len(messages), number_count), dtype=bool)
    for row, message in enumerate(messages):
        for column, number in enumerate(message.numbers):
            end = number.last + 1
            weights[row, column, number.first : end] = 1 / (end - number.first)
            starts_with_digit = message.text(number.first, number.first)[0].isdigit()
            magnitude = np.log1p(abs(number.value)) / 4
            features[row, column] = (magnitude, number.value % 1 != 0, starts_with_digit)
            present[row, column] = True
    return weights, features, present
