"""The plan parser's network in torch, for training: encoder, joint layers and decoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from casewright.planner.parser import schema
from casewright.planner.parser.arrays import LINK_CHANNELS, CaseData, Votes
from casewright.planner.parser.case_network import Cases, next_tool_votes, with_sign
from casewright.planner.parser.layers_network import (
    DecodingLayer,
    JointLayer,
    dots,
    hidden_bias,
    masked,
    perceptron,
)
from casewright.planner.parser.message import WORD_FEATURES
from casewright.planner.parser.plan_reading import (
    CHOICE,
    CONTEXT,
    KIND_COUNT,
    MAX_RESULTS,
    MAX_SPAN_WORDS,
    PLACE_COUNT,
    PLAIN_COUNT,
    STEP,
)

#: Size of all states except the encoder's, and the numbers of attention heads and joint layers.
SIZE, HEADS, LAYERS = 256, 8, 3
#: Numbers of texts in a batch of the encoder; the first for at most ``MAX_SMALL_COUNT`` texts.
SMALL_BATCH_SIZE, BATCH_SIZE, MAX_SMALL_COUNT = 4, 10, 24


@dataclass(slots=True)
class EncodedMessages:
    """Encoded messages; width is the encoder's hidden size.

    Attributes:
        words: States of words (n, words, width).
        fields: States of context fields (n, fields, width).
        features: Features of words (n, words, WORD_FEATURES).
        vectors: Mean states of the questions (n, width).
        keys: Keys by which messages are compared (n, case_network.KEY_SIZE).
    """

    words: Tensor
    fields: Tensor
    features: Tensor
    vectors: Tensor
    keys: Tensor


@dataclass(slots=True)
class Memory:
    """Messages encoded together with a toolbox.

    Attributes:
        states: States of all nodes (n, nodes, SIZE): words, context fields, the toolbox's nodes.
        present: False for padding (n, nodes).
        word_count: Number of the words' nodes.
        field_count: Number of the context fields' nodes.
        sizes: Numbers of tools, parameters, choices and result fields.
        votes: Votes of ``cases``, the plan cases.
        keys_values: Keys and values of the states, for each decoding layer.
    """

    states: Tensor
    present: Tensor
    word_count: int
    field_count: int
    sizes: tuple[int, int, int, int]
    votes: Votes[Tensor]
    cases: CaseData
    keys_values: dict[DecodingLayer, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def keys_values_of(self, layer: DecodingLayer, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return a layer's keys and values for messages with these indices, or for all messages."""
        if layer not in self.keys_values:
            self.keys_values[layer] = layer.keys_values(self.states)
        key, value = self.keys_values[layer]
        return (key, value) if rows is None else (key[rows], value[rows])

    @property
    def first_tool(self) -> int:
        """Index of the first tool's node."""
        return self.word_count + self.field_count

    def states_of(self, node_type: str) -> Tensor:
        """Return the states of tools, parameters, choices or result_fields (n, …, SIZE)."""
        index = ("tools", "parameters", "choices", "result_fields").index(node_type)
        start = self.first_tool + sum(self.sizes[:index])
        return self.states[:, start : start + self.sizes[index]]


class ParserNetwork(nn.Module):
    """Encoder, joint layers and decoder of the plan parser.

    Methods take steps or arguments of several messages. For each of them, ``rows`` has the index of
    the message in ``memory``, and ``places`` the place of the step in the plan. ``rows=None`` means
    that there is one item for each message, in the same order.

    Args:
        encoder: A BERT-like model with hidden states as its first output.
    """

    def __init__(self, encoder: Any, dropout: float = 0.1) -> None:
        super().__init__()
        width = int(encoder.config.hidden_size)
        self.encoder = encoder
        self.depth = len(encoder.encoder.layer)
        #: Number of the encoder's first layers that are frozen: by default all layers.
        self.frozen_count = self.depth
        #: Replacement of ``frozen_states`` that caches its results during a training.
        self.cached_frozen_states: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
        self.word, self.field = nn.Linear(width, SIZE), nn.Linear(width, SIZE)
        self.node = nn.ModuleList([nn.Linear(width, SIZE) for _ in range(4)])
        self.card, self.example = nn.Linear(width, SIZE), nn.Linear(width, SIZE)
        self.word_features = nn.Linear(WORD_FEATURES, SIZE)
        self.parameter_features = nn.Linear(schema.PARAMETER_FEATURES, SIZE)
        self.tool_features = nn.Linear(schema.TOOL_FEATURES, SIZE)
        self.node_type = nn.Embedding(schema.NODE_TYPE_COUNT, SIZE)
        self.cases = Cases(width, SIZE)
        self.relation = nn.Embedding(schema.RELATION_COUNT, LAYERS * HEADS)
        self.link = nn.Linear(LINK_CHANNELS, LAYERS * HEADS, bias=False)
        nn.init.zeros_(self.relation.weight)
        nn.init.constant_(self.link.weight, 0.5)
        self.layers = nn.ModuleList([JointLayer(SIZE, HEADS, dropout) for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(SIZE)
        self.start, self.end = nn.Parameter(torch.zeros(SIZE)), nn.Parameter(torch.zeros(SIZE))
        self.place = nn.Embedding(PLACE_COUNT + 1, SIZE)
        self.distance = nn.Embedding(PLACE_COUNT + 1, SIZE)
        self.kind = nn.Embedding(KIND_COUNT, SIZE)
        self.index = nn.Embedding(MAX_RESULTS, SIZE)
        for table in (self.node_type, self.place, self.distance, self.kind, self.index):
            nn.init.normal_(table.weight, std=0.05)
        # Maps of the states of an argument's target nodes, and of its parameter's state.
        self.took, self.took_for = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
        self.steps = nn.ModuleList([DecodingLayer(SIZE, HEADS, dropout) for _ in range(2)])
        self.step_norm = nn.LayerNorm(SIZE)
        self.tool_query, self.tool_key = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
        self.next_votes = perceptron(4, 32, 1)
        self.tool_votes = perceptron(4, 32, 1)
        self.mix = nn.Sequential(nn.Linear(3 * SIZE, SIZE), nn.GELU(), nn.Linear(SIZE, SIZE))
        self.argument = nn.ModuleList([DecodingLayer(SIZE, HEADS, dropout)])
        self.argument_norm = nn.LayerNorm(SIZE)
        self.plain = nn.Linear(SIZE, KIND_COUNT)
        self.kind_votes = perceptron(KIND_COUNT + 1, 32, KIND_COUNT)
        self.choice_key, self.context_key = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
        self.field_key = nn.Linear(SIZE, SIZE)
        self.choice_votes, self.context_votes = perceptron(2, 16, 1), perceptron(4, 16, 1)
        self.field_votes = perceptron(4, 16, 1)
        # Maps an argument to logits of the index of the result that the argument refers to.
        self.which = nn.Linear(SIZE, MAX_RESULTS)
        self.span_first, self.span_last = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
        self.span_join = nn.Linear(SIZE, 64)
        self.span_ends = nn.ModuleList([nn.Linear(SIZE, 64) for _ in range(2)])
        self.length = nn.Parameter(torch.zeros(MAX_SPAN_WORDS))  # Biases of the spans' lengths.
        self.number_key = nn.Linear(SIZE, SIZE)
        self.number_features = nn.Sequential(nn.Linear(3, 32), nn.GELU(), nn.Linear(32, SIZE))

    def _token_states(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Return the encoder's token states (n, tokens, width)."""
        states = (self.cached_frozen_states or self.frozen_states)(ids, mask, types)
        all_frozen = self.frozen_count >= self.depth
        return states if all_frozen else self._run_layers(states, mask, self.frozen_count, None)

    def frozen_states(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Return token states (n, tokens, width) after the encoder's frozen layers."""
        states = self.encoder.embeddings(input_ids=ids, token_type_ids=types)
        return self._run_layers(states, mask, 0, self.frozen_count)

    def _run_layers(self, states: Tensor, mask: Tensor, first: int, stop: int | None) -> Tensor:
        """Return states after layers ``first:stop``; texts of similar lengths share a batch."""
        lengths = mask.sum(-1)
        order = lengths.argsort()
        outputs = []
        for texts in order.split(BATCH_SIZE if len(mask) > MAX_SMALL_COUNT else SMALL_BATCH_SIZE):
            length = int(lengths[texts[-1]])
            batch = states[texts, :length]
            mask_bias = (1.0 - mask[texts, None, None, :length].to(batch.dtype)) * -1e4
            for layer in self.encoder.encoder.layer[first:stop]:
                batch = layer(batch, mask_bias)
            outputs.append(nn.functional.pad(batch, (0, 0, 0, mask.shape[1] - length)))
        return torch.cat(outputs)[order.argsort()]

    def encode_messages(self, arrays: dict[str, Tensor]) -> EncodedMessages:
        """Encode messages; see ``arrays.message_arrays``."""
        states = self._token_states(arrays["ids"], arrays["mask"], arrays["types"])
        weights = (arrays["mask"] * (arrays["types"] == 0)).to(states.dtype)
        vectors = (weights[:, None] @ states)[:, 0] / weights.sum(-1, keepdim=True)
        words = arrays["words"].to(states.dtype) @ states
        fields = arrays["fields"].to(states.dtype) @ states
        return EncodedMessages(words, fields, arrays["features"], vectors, self.cases.keys(vectors))

    def encode_toolbox(self, arrays: dict[str, Tensor], sizes: tuple[int, int, int, int]) -> Tensor:
        """Return the states of a toolbox's nodes (nodes, SIZE); see ``arrays.card_arrays``."""
        ids = arrays["ids"]
        states = self._token_states(ids, arrays["mask"], torch.zeros_like(ids))
        flat = states.flatten(0, 1)
        parts = (arrays["nodes"].to(flat.dtype) @ flat).split(list(sizes))
        nodes = [layer(part) for layer, part in zip(self.node, parts, strict=True)]
        nodes[0] = nodes[0] + self.card(states[:, 0]) + self.tool_features(arrays["tools"])
        nodes[0] = nodes[0] + self.example(arrays["examples"].to(flat.dtype) @ flat)
        nodes[1] = nodes[1] + self.parameter_features(arrays["parameters"])
        counts = torch.tensor(sizes)
        types = torch.arange(schema.TOOL_NODE, schema.NODE_TYPE_COUNT).repeat_interleave(counts)
        node_states: Tensor = torch.cat(nodes) + self.node_type(types)
        return node_states

    def join(
        self,
        encoded: EncodedMessages,
        nodes: Tensor,
        sizes: tuple[int, int, int, int],
        pairs: dict[str, Tensor],
        cases: CaseData,
        allowed: Tensor,
    ) -> Memory:
        """Encode messages together with a toolbox's nodes.

        Args:
            nodes: States of the nodes, from ``encode_toolbox``.
            sizes: Numbers of tools, parameters, choices and result fields.
            pairs: See ``arrays.pair_arrays``.
            allowed: True for the cases that each message may use (n, cases).
        """
        count = len(encoded.words)
        votes = self.cases(encoded.keys, cases, allowed)
        word_type, field_type = self.node_type.weight[:2]
        states = torch.cat(
            [
                self.word(encoded.words) + self.word_features(encoded.features) + word_type,
                self.field(encoded.fields) + field_type,
                nodes[None].expand(count, -1, -1) + votes.states,
            ],
            1,
        )
        # The first axis of the biases is the layer; ``JointLayer`` takes the part of one layer.
        relation_bias = self.relation(pairs["relations"]).permute(2, 0, 1)
        relation_bias = relation_bias.unflatten(0, (LAYERS, 1, HEADS))
        link_bias = self.link(pairs["links"]).permute(3, 0, 1, 2)
        link_bias = link_bias.unflatten(0, (LAYERS, HEADS)).transpose(1, 2)
        padding_bias = hidden_bias(pairs["present"][:, None, None])
        for index, layer in enumerate(self.layers):
            states = layer(states, relation_bias[index], link_bias[index], padding_bias)
        states, present = self.norm(states), pairs["present"]
        word_count, field_count = encoded.words.shape[1], encoded.fields.shape[1]
        return Memory(states, present, word_count, field_count, sizes, votes, cases)

    def step_inputs(
        self, memory: Memory, rows: Tensor, tools: Tensor, places: Tensor, argument_means: Tensor
    ) -> Tensor:
        """Return decoder inputs that represent steps, to predict the next step (steps, SIZE).

        Args:
            argument_means: Mean ``argument_embeddings`` of each step's arguments (steps, SIZE).
        """
        called = memory.states_of("tools")[rows, tools]
        inputs: Tensor = called + argument_means + self.place(places + 1)
        return inputs

    def argument_embeddings(
        self,
        memory: Memory,
        rows: Tensor,
        parameters: Tensor,
        kinds: Tensor,
        weights: Tensor,
        indices: Tensor,
    ) -> Tensor:
        """Return embeddings of arguments (arguments, SIZE).

        Args:
            weights: Weights over the nodes to which each argument points (arguments, nodes).
            indices: Index of the result to which each argument refers.
        """
        states = (weights[:, None].to(memory.states.dtype) @ memory.states[rows])[:, 0]
        embeddings: Tensor = (
            self.took(states)
            + self.took_for(memory.states_of("parameters")[rows, parameters])
            + self.kind(kinds)
            + self.index(indices)
        )
        return embeddings

    def decode(self, memory: Memory, inputs: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return a state (n, places, SIZE) for the step at each place of the plans.

        Args:
            inputs: The decoder's inputs: ``start``, then ``step_inputs`` (n, places, SIZE).
        """
        present = (memory.present if rows is None else memory.present[rows])[:, None, None]
        places = inputs.shape[1]
        causal = torch.ones(places, places, dtype=torch.bool).tril()[None, None]
        for layer in self.steps:
            assert isinstance(layer, DecodingLayer)
            inputs = layer(inputs, causal, memory.keys_values_of(layer, rows), present)
        states: Tensor = self.step_norm(inputs)
        return states

    def tool_logits(
        self, memory: Memory, decoded: Tensor, previous_tools: Tensor, rows: Tensor | None = None
    ) -> Tensor:
        """Return logits (n, places, tools + 1) of each tool and, last, of the plan's end.

        Args:
            decoded: States from ``decode``.
            previous_tools: Tool before each place; see ``next_tool_votes``.
        """
        states = memory.states_of("tools")
        votes, weights = memory.votes.tools, memory.votes.weights
        if rows is not None:
            states, votes, weights = states[rows], votes[rows], weights[rows]
        end = self.end[None, None].expand(len(states), 1, -1)
        keys = self.tool_key(torch.cat([states, end.to(states.dtype)], 1))
        logits = dots(self.tool_query(decoded), keys)
        measures = next_tool_votes(memory.cases, weights, previous_tools, memory.sizes[0])
        logits = logits + self.next_votes(measures)[..., 0]
        tool_scores = self.tool_votes(votes).transpose(1, 2)
        total_logits: Tensor = logits + nn.functional.pad(tool_scores, (0, 1))
        return total_logits

    def argument_states(
        self, memory: Memory, states: Tensor, rows: Tensor, tools: Tensor, parameters: Tensor
    ) -> Tensor:
        """Return a state (steps, parameters, SIZE) for each argument of the steps.

        Args:
            states: States of the steps (steps, SIZE).
            parameters: Parameters of the steps' tools, padded with -1 (steps, parameters).
        """
        exists = parameters >= 0
        parameter_states = memory.states_of("parameters")[rows[:, None], parameters.clamp(min=0)]
        step_states = states[:, None].expand_as(parameter_states)
        tool_states = memory.states_of("tools")[rows, tools][:, None].expand_as(parameter_states)
        joined = torch.cat([parameter_states, step_states, tool_states], -1)
        mixed = self.mix(joined) + parameter_states
        present = memory.present[rows][:, None, None]
        for layer in self.argument:
            assert isinstance(layer, DecodingLayer)
            mixed = layer(mixed, exists[:, None, None], memory.keys_values_of(layer, rows), present)
        argument_states: Tensor = self.argument_norm(mixed)
        return argument_states

    def option_logits(
        self,
        memory: Memory,
        states: Tensor,
        rows: Tensor,
        parameters: Tensor,
        places: Tensor,
        name_flags: tuple[Tensor, Tensor],
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the logits of each argument's options.

        Args:
            states: States of the arguments (arguments, SIZE).
            name_flags: ``arrays.name_likeness`` and ``arrays.field_likeness``.

        Returns:
            Plain kinds (arguments, PLAIN_COUNT), choices (arguments, choices), context
            fields (arguments, fields), result fields by step (arguments, PLACE_COUNT, fields).
        """
        votes, (result_flags, context_flags) = memory.votes, name_flags
        kind_logits = self.plain(states).float() + self.kind_votes(votes.kinds[rows, parameters])
        query = states[:, None]

        def scores(keys: Tensor, vote_scores: Tensor) -> Tensor:
            return dots(query, keys[rows])[:, 0] + vote_scores[..., 0]

        choice_scores = self.choice_votes(with_sign(votes.choices[rows]))
        choice = scores(self.choice_key(memory.states_of("choices")), choice_scores)
        fields = memory.states[:, memory.word_count : memory.first_tool]
        vote_features = with_sign(votes.context[rows, parameters])
        vote_features = torch.cat([vote_features, context_flags[rows, parameters]], -1)
        context = scores(self.context_key(fields), self.context_votes(vote_features))
        vote_features = with_sign(votes.fields[rows, parameters])
        vote_features = torch.cat([vote_features, result_flags[parameters]], -1)
        keys = self.field_key(memory.states_of("result_fields"))
        result = scores(keys, self.field_votes(vote_features))
        distances = (places[:, None] - torch.arange(PLACE_COUNT)).clamp(min=0, max=PLACE_COUNT)
        step = dots(query, self.place.weight[None, 1:] + self.distance(distances))[:, 0]
        return (
            kind_logits[:, :PLAIN_COUNT],
            choice + kind_logits[:, CHOICE, None],
            context + kind_logits[:, CONTEXT, None],
            result[:, None] + step[..., None] + kind_logits[:, None, None, STEP],
        )

    def span_logits(self, memory: Memory, states: Tensor, rows: Tensor) -> Tensor:
        """Return spans' logits (arguments, words, MAX_SPAN_WORDS) by first word and length - 1."""
        words = memory.states[:, : memory.word_count]
        query = states[:, None]
        first_scores = dots(query, self.span_first(words)[rows])[:, 0]
        last_scores = dots(query, self.span_last(words)[rows])[:, 0]
        first_keys, last_keys = (layer(words)[rows] for layer in self.span_ends)
        joined = self.span_join(states)[:, None] * first_keys
        # The divisor is the root of the keys' size, 64.
        products = (joined @ last_keys.transpose(1, 2)).float() / 8
        pairs = first_scores[:, :, None] + last_scores[:, None] + products
        first = torch.arange(memory.word_count)[:, None]
        last = first + torch.arange(MAX_SPAN_WORDS)
        clamped = last.clamp(max=memory.word_count - 1)
        present = memory.present[:, : memory.word_count][rows][:, clamped]
        return masked(pairs[:, first, clamped] + self.length, present & (last < memory.word_count))

    def number_logits(
        self, memory: Memory, states: Tensor, weights: Tensor, features: Tensor, rows: Tensor
    ) -> Tensor:
        """Return logits (arguments, numbers) of the message's numbers.

        ``weights`` and ``features`` are from ``arrays.number_arrays``.
        """
        pooled = weights.to(memory.states.dtype) @ memory.states[:, : memory.word_count]
        keys = self.number_key(pooled) + self.number_features(features)
        return dots(states[:, None], keys[rows])[:, 0]
