"""The plan parser's loss: the negative log-likelihood of the gold plans of an ``Episode``."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from casewright.finetune.parser.episodes import Episode
from casewright.planner.parser import arrays
from casewright.planner.parser import plan_reading as reading
from casewright.planner.parser.layers_network import masked
from casewright.planner.parser.options import OptionMasks
from casewright.planner.parser.parser_network import EncodedMessages, Memory, ParserNetwork
from casewright.planner.parser.plan_reading import Argument
from casewright.planner.parser.tensors_network import (
    case_tensors,
    number_tensors,
    tensor,
    tensors,
    with_context,
)

#: A target with this index does not count in the loss (torch's default).
IGNORED = -100


def _targets(episode: Episode, word_count: int) -> dict[str, Tensor]:
    """Return the gold plans of the messages to plan for, and the arguments' options, as tensors.

    A place is the position of a step in its plan, from 0. The steps of all plans are
    numbered together, and so are the arguments. ``word_count`` is the number of word nodes.

    - tools: indices of each plan's tools, then the end's index, which is the number of tools, then
      ``IGNORED`` (messages, places)
    - previous_tools: index of the tool before each place (messages, places); at place 0, the
      end's index, which also marks a plan's start; -1 after the plan
    - step_rows, step_places, step_tools: message, place and tool of each step
    - step_parameters: parameters of each step's tool, padded with -1 (steps, most parameters)
    - argument_steps, argument_slots: each argument's step, and position among the step's arguments
    - parameters, kinds, result_indices: ``Argument.parameter``, ``kind`` and ``index``
    - allowed: flags of each argument's options (arguments, options): the first ``PLAIN_COUNT``
      kinds, the choices, the context fields, then the result fields of each earlier step
    - options: index of the right option of each argument, or ``IGNORED``
    - weights: weights of the nodes that an argument points to (arguments, nodes)
    - spans: flags of right spans (arguments, first word, number of words minus 1)
    - numbers: flags of the right numbers of the message (arguments, numbers)
    """
    schema, messages = episode.schema, episode.messages
    plans = episode.plans[: episode.planned_count]
    steps = [(row, place, s) for row, plan in enumerate(plans) for place, s in enumerate(plan)]
    arguments = [
        (step_index, slot, argument)
        for step_index, (_, _, step) in enumerate(steps)
        for slot, argument in enumerate(step.arguments)
    ]
    end = len(schema.tools)
    tools = np.full((len(plans), max(map(len, plans)) + 1), IGNORED, dtype=np.int64)
    previous_tools = np.full_like(tools, -1)
    for row, plan in enumerate(plans):
        tool_indices = [step.tool for step in plan]
        tools[row, : len(tool_indices) + 1] = [*tool_indices, end]
        previous_tools[row, : len(tool_indices) + 1] = [end, *tool_indices]
    field_count = max(1, *(len(message.fields) for message in messages))
    number_count = max(1, *(len(message.numbers) for message in messages))
    options = OptionMasks(schema)
    planned_messages = messages[: len(plans)]
    plain_masks = [options.plain_of(message) for message in planned_messages]
    pairs = zip(planned_messages, episode.contexts, strict=True)
    context_masks = [options.context_of(m, values, field_count) for m, values in pairs]
    allowed, right_options = [], []
    weights = np.zeros((len(arguments), word_count + field_count + schema.size), dtype=np.float32)
    spans = np.zeros((len(arguments), word_count, reading.MAX_SPAN_WORDS), dtype=bool)
    numbers = np.zeros((len(arguments), number_count), dtype=bool)
    for index, (step_index, _, argument) in enumerate(arguments):
        row, place, _ = steps[step_index]
        parameter = argument.parameter
        tool_indices = [step.tool for step in plans[row][:place]]
        results = options.results_of(tool_indices, reading.PLACE_COUNT)
        results &= options.takes_step[parameter]
        plain, context = plain_masks[row][parameter], context_masks[row][parameter]
        parts = (plain, options.choices[parameter], context, results.ravel())
        allowed.append(np.concatenate(parts))
        right_options.append(_right_option(argument, parts, len(schema.results)))
        low, high = reading.pointed_nodes(argument, messages[row], schema, word_count, field_count)
        weights[index, low:high] = 1 / max(1, high - low)
        numbers[index, list(argument.numbers)] = True
        for first, last in argument.spans:
            if last - first < reading.MAX_SPAN_WORDS:
                spans[index, first, last - first] = True
    step_parameters = [schema.parameters_of(step.tool) for _, _, step in steps]
    parameter_count = max(1, *map(len, step_parameters))
    index_lists = {
        "step_rows": [row for row, _, _ in steps],
        "step_places": [place for _, place, _ in steps],
        "step_tools": [step.tool for _, _, step in steps],
        "step_parameters": [[*p, *[-1] * (parameter_count - len(p))] for p in step_parameters],
        "argument_steps": [step_index for step_index, _, _ in arguments],
        "argument_slots": [slot for _, slot, _ in arguments],
        "parameters": [argument.parameter for _, _, argument in arguments],
        "kinds": [argument.kind for _, _, argument in arguments],
        "result_indices": [argument.index for _, _, argument in arguments],
        "options": right_options,
    }
    filled_arrays = {
        "tools": tools,
        "previous_tools": previous_tools,
        "allowed": np.array(allowed),
        "weights": weights,
        "spans": spans,
        "numbers": numbers,
    }
    return tensors(filled_arrays | {n: np.array(v, dtype=np.int64) for n, v in index_lists.items()})


def _right_option(
    argument: Argument, parts: tuple[NDArray[np.bool_], ...], result_count: int
) -> int:
    """Return the index of an argument's option; ``IGNORED`` if its flag in ``parts`` is False."""
    first_choice, first_field, first_result = np.cumsum([len(part) for part in parts[:3]]).tolist()
    starts = {
        reading.CHOICE: first_choice,
        reading.CONTEXT: first_field,
        reading.STEP: first_result + argument.step * result_count,
    }
    option = argument.kind
    if option in starts:
        option = starts[option] + argument.node
    return option if np.concatenate(parts)[option] else IGNORED


class FrozenStates:
    """Computes the frozen layers' token states once for each text; caches them in bfloat16."""

    def __init__(self, network: ParserNetwork) -> None:
        self._network = network
        self._states: dict[bytes, Tensor] = {}

    def __call__(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Return token states (texts, tokens, the encoder's width); the states of padding are 0."""
        lengths = mask.sum(-1).tolist()
        keys = [
            torch.stack([ids[row, :size], types[row, :size]]).numpy(force=True).tobytes()
            for row, size in enumerate(lengths)
        ]
        missing_rows = [row for row, key in enumerate(keys) if key not in self._states]
        if missing_rows:
            rows = torch.tensor(missing_rows)
            was_training = self._network.encoder.training
            self._network.encoder.eval()
            with torch.no_grad():
                states = self._network.frozen_states(ids[rows], mask[rows], types[rows])
            self._network.encoder.train(was_training)
            for row, text_states in zip(missing_rows, states, strict=True):
                self._states[keys[row]] = text_states[: lengths[row]].to(torch.bfloat16).clone()
        cached_states = [self._states[key] for key in keys]
        return torch.nn.utils.rnn.pad_sequence(cached_states, batch_first=True)


def episode_loss(network: ParserNetwork, episode: Episode) -> tuple[Tensor, dict[str, float]]:
    """Return the negative log-likelihood of the gold plans per message, and its terms by name."""
    memory = _encode_memory(network, episode)
    gold = _targets(episode, memory.word_count)
    step_rows, step_tools, places = gold["step_rows"], gold["step_tools"], gold["step_places"]
    # The message of each argument.
    rows = step_rows[gold["argument_steps"]]
    argument_vectors = network.argument_embeddings(
        memory, rows, gold["parameters"], gold["kinds"], gold["weights"], gold["result_indices"]
    )
    decoded = network.decode(memory, _decoder_inputs(network, memory, gold, argument_vectors))
    tool_logits = network.tool_logits(memory, decoded, gold["previous_tools"]).float()
    losses = {"tools": _summed_cross_entropy(tool_logits.flatten(0, 1), gold["tools"].flatten())}
    states = network.argument_states(
        memory, decoded[step_rows, places], step_rows, step_tools, gold["step_parameters"]
    )[gold["argument_steps"], gold["argument_slots"]]
    name_flags = (
        tensor(arrays.name_likeness(episode.schema)),
        tensor(arrays.field_likeness(episode.schema, episode.messages)[: episode.planned_count]),
    )
    argument_places = places[gold["argument_steps"]]
    logit_parts = network.option_logits(
        memory, states, rows, gold["parameters"], argument_places, name_flags
    )
    logits = torch.cat([part.flatten(1).float() for part in logit_parts], 1)
    losses["kinds"] = _summed_cross_entropy(masked(logits, gold["allowed"]), gold["options"])
    right_indices = gold["result_indices"].masked_fill(gold["kinds"] != reading.STEP, IGNORED)
    losses["indices"] = _summed_cross_entropy(network.which(states).float(), right_indices)
    # A span of over ``MAX_SPAN_WORDS`` words is left out: it has no flags, so an infinite loss.
    is_span = (gold["kinds"] == reading.SPAN) & gold["spans"].flatten(1).any(1)
    if is_span.any():
        scores = network.span_logits(memory, states[is_span], rows[is_span]).flatten(1)
        losses["spans"] = _summed_loss_of_any(scores, gold["spans"][is_span].flatten(1))
    is_number = gold["kinds"] == reading.NUMBER
    if is_number.any():
        messages = episode.messages[: episode.planned_count]
        weights, facts, present = number_tensors(messages, memory.word_count)
        scores = network.number_logits(memory, states[is_number], weights, facts, rows[is_number])
        right = gold["numbers"][is_number][:, : present.shape[1]]
        losses["numbers"] = _summed_loss_of_any(masked(scores, present[rows[is_number]]), right)
    count = episode.planned_count
    total = sum(losses.values(), torch.zeros(())) / count
    return total, {name: float(loss.detach()) / count for name, loss in losses.items()}


def _encode_memory(network: ParserNetwork, episode: Episode) -> Memory:
    """Return the encoded messages to plan for, joined with the toolbox and all plan cases."""
    schema, count = episode.schema, episode.planned_count
    encoded = network.encode_messages(tensors(arrays.message_arrays(episode.messages)))
    nodes = network.encode_toolbox(tensors(arrays.card_arrays(schema)), schema.sizes)
    cases = list(zip(episode.messages, episode.plans, strict=True))
    pairs = tensors(arrays.pair_arrays(schema, episode.messages))
    case_data = with_context(case_tensors(schema, cases, encoded), schema, cases, episode.messages)
    # The axis of messages keeps only the messages to plan for.
    case_data.context = case_data.context[:, :, :count]
    parts = (getattr(encoded, part.name)[:count] for part in dataclasses.fields(encoded))
    return network.join(
        EncodedMessages(*parts),
        nodes,
        schema.sizes,
        {name: pair if name == "relations" else pair[:count] for name, pair in pairs.items()},
        case_data,
        torch.tensor(episode.is_case),
    )


def _decoder_inputs(
    network: ParserNetwork, memory: Memory, gold: dict[str, Tensor], argument_vectors: Tensor
) -> Tensor:
    """Return the decoder's inputs (messages, places, SIZE): a start vector, then the steps."""
    step_of_argument = gold["argument_steps"]
    # The weight of each argument in the mean over the arguments of its step (steps, arguments).
    mean_weights = torch.zeros(len(gold["step_rows"]), len(step_of_argument))
    mean_weights[step_of_argument, torch.arange(len(step_of_argument))] = 1
    mean_weights = mean_weights / mean_weights.sum(-1, keepdim=True).clamp(min=1)
    step_inputs = network.step_inputs(
        memory,
        gold["step_rows"],
        gold["step_tools"],
        # The network embeds ``PLACE_COUNT`` places of steps; later places share the last one.
        gold["step_places"].clamp(max=reading.PLACE_COUNT - 1),
        mean_weights.to(argument_vectors.dtype) @ argument_vectors,
    )
    dtype = step_inputs.dtype
    inputs = torch.zeros((*gold["tools"].shape, step_inputs.shape[-1]), dtype=dtype)
    inputs[:, 0] = (network.start + network.place.weight[0]).to(dtype)
    inputs[gold["step_rows"], gold["step_places"] + 1] = step_inputs
    return inputs


def _summed_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Return the summed cross-entropy of logits (n, options) with right options (n)."""
    return functional.cross_entropy(logits, target, ignore_index=IGNORED, reduction="sum")


def _summed_loss_of_any(logits: Tensor, right: Tensor) -> Tensor:
    """Return the sum over rows of -log p; p is the total probability of a row's right options."""
    return -logits.log_softmax(-1).masked_fill(~right, -torch.inf).logsumexp(-1).sum()
