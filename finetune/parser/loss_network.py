"""The loss of the plan parser: the negative log-likelihood of an episode's gold plans."""

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
from casewright.planner.parser.options import Options
from casewright.planner.parser.parser_network import Encoded, Memory, ParserNetwork
from casewright.planner.parser.plan_reading import Argument
from casewright.planner.parser.tensors_network import (
    case_tensors,
    number_tensors,
    tensor,
    tensors,
    with_fields,
)

#: The target that the loss ignores, torch's default.
IGNORED = -100


def _targets(episode: Episode, words: int) -> dict[str, Tensor]:
    """Return the gold plans of an episode's messages as tensors.

    Steps and arguments have one numbering for all messages.

    - tools: tools of each message's steps, then the end (n, places)
    - previous_tools: tool before each place (n, places); see ``case_network.continued``
    - step_rows, step_places, step_tools: message of each step, its number from 0, its tool
    - step_parameters: parameters of each step's tool, padded with -1 (steps, most)
    - steps, slots: step of each argument, and its index in the step
    - parameters, kinds, indices: parameter, kind and index of each argument
    - allowed: flags of the options: plain kinds, choices, context fields, results by step
      (arguments, options)
    - options: correct option of each argument
    - weights: weights of the nodes that an argument points to (arguments, nodes)
    - spans: flags of correct runs of words, by first word and length (arguments, words, longest)
    - numbers: flags of correct numbers (arguments, numbers)
    """
    schema, messages = episode.schema, episode.messages
    plans = episode.plans[: episode.count]
    steps = [(row, n, step) for row, plan in enumerate(plans) for n, step in enumerate(plan)]
    arguments = [
        (number, slot, argument)
        for number, (_, _, step) in enumerate(steps)
        for slot, argument in enumerate(step.arguments)
    ]
    end = len(schema.tools)
    tools = np.full((len(plans), max(map(len, plans)) + 1), IGNORED, dtype=np.int64)
    previous_tools = np.full_like(tools, -1)
    for row, plan in enumerate(plans):
        calls = [step.tool for step in plan]
        tools[row, : len(calls) + 1] = [*calls, end]
        previous_tools[row, : len(calls) + 1] = [end, *calls]
    fields = max(1, *(len(message.fields) for message in messages))
    most_numbers = max(1, *(len(message.numbers) for message in messages))
    options = Options(schema)
    plain = [options.plain_of(message) for message in messages[: len(plans)]]
    pairs = zip(messages, episode.contexts, strict=False)
    context = [options.context_of(message, values, fields) for message, values in pairs]
    allowed, right_options = [], []
    weights = np.zeros((len(arguments), words + fields + schema.size), dtype=np.float32)
    spans = np.zeros((len(arguments), words, reading.LONGEST), dtype=bool)
    numbers = np.zeros((len(arguments), most_numbers), dtype=bool)
    for number, (step_number, _, argument) in enumerate(arguments):
        row, place, _ = steps[step_number]
        parameter = argument.parameter
        calls = [step.tool for step in plans[row][:place]]
        results = options.results_of(calls, reading.PLACES) & options.steps[parameter]
        choices = options.choices[parameter]
        parts = (plain[row][parameter], choices, context[row][parameter], results.ravel())
        allowed.append(np.concatenate(parts))
        right_options.append(_option(argument, parts, len(schema.results)))
        first, last = reading.pointed(argument, messages[row], schema, words, fields)
        weights[number, first:last] = 1 / max(1, last - first)
        numbers[number, list(argument.numbers)] = True
        for start, stop in argument.spans:
            if stop - start < reading.LONGEST:
                spans[number, start, stop - start] = True
    step_parameters = [schema.parameters_of(step.tool) for _, _, step in steps]
    most = max(1, *map(len, step_parameters))
    integers = {
        "step_rows": [row for row, _, _ in steps],
        "step_places": [place for _, place, _ in steps],
        "step_tools": [step.tool for _, _, step in steps],
        "step_parameters": [[*row, *[-1] * (most - len(row))] for row in step_parameters],
        "steps": [number for number, _, _ in arguments],
        "slots": [slot for _, slot, _ in arguments],
        "parameters": [argument.parameter for _, _, argument in arguments],
        "kinds": [argument.kind for _, _, argument in arguments],
        "indices": [argument.index for _, _, argument in arguments],
        "options": right_options,
    }
    others = {
        "tools": tools,
        "previous_tools": previous_tools,
        "allowed": np.array(allowed),
        "weights": weights,
        "spans": spans,
        "numbers": numbers,
    }
    return tensors(others | {n: np.array(row, dtype=np.int64) for n, row in integers.items()})


def _option(argument: Argument, parts: tuple[NDArray[np.bool_], ...], results: int) -> int:
    """Return an argument's option; ``IGNORED`` if it is masked, as in a truncated message."""
    choices, context, steps = np.cumsum([len(part) for part in parts[:3]]).tolist()
    starts = {
        reading.CHOICE: choices,
        reading.CONTEXT: context,
        reading.STEP: steps + argument.step * results,
    }
    index = argument.kind
    if index in starts:
        index = starts[index] + argument.node
    return index if np.concatenate(parts)[index] else IGNORED


class FrozenStates:
    """A cache of the token states of the frozen layers, by a text's tokens, in bfloat16."""

    def __init__(self, network: ParserNetwork) -> None:
        self._network = network
        self._states: dict[bytes, Tensor] = {}

    def __call__(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Return token states (n, tokens, encoder), zeros without a token."""
        lengths = mask.sum(-1).tolist()
        keys = [
            torch.stack([ids[row, :size], types[row, :size]]).numpy(force=True).tobytes()
            for row, size in enumerate(lengths)
        ]
        new = [row for row, key in enumerate(keys) if key not in self._states]
        if new:
            rows = torch.tensor(new)
            training = self._network.encoder.training
            self._network.encoder.eval()
            with torch.no_grad():
                states = self._network.lower(ids[rows], mask[rows], types[rows])
            self._network.encoder.train(training)
            for row, text_states in zip(new, states, strict=True):
                self._states[keys[row]] = text_states[: lengths[row]].to(torch.bfloat16).clone()
        by_text = [self._states[key] for key in keys]
        return torch.nn.utils.rnn.pad_sequence(by_text, batch_first=True)


def episode_loss(network: ParserNetwork, episode: Episode) -> tuple[Tensor, dict[str, float]]:
    """Return the mean negative log-likelihood of a plan, and its parts by name."""
    memory = _memory_of(network, episode)
    gold = _targets(episode, memory.words)
    rows = gold["step_rows"][gold["steps"]]
    places = gold["step_places"]
    values = network.values(
        memory, rows, gold["parameters"], gold["kinds"], gold["weights"], gold["indices"]
    )
    decoded = network.decode(memory, _step_inputs(network, memory, gold, values))
    tools = network.tools(memory, decoded, gold["previous_tools"]).float()
    losses = {"tools": _sum(tools.flatten(0, 1), gold["tools"].flatten())}
    step_rows, step_tools = gold["step_rows"], gold["step_tools"]
    states = network.arguments(
        memory, decoded[step_rows, places], step_rows, step_tools, gold["step_parameters"]
    )[gold["steps"], gold["slots"]]
    likeness = (
        tensor(arrays.name_likeness(episode.schema)),
        tensor(arrays.field_likeness(episode.schema, episode.messages)[: episode.count]),
    )
    parts = network.kinds(memory, states, rows, gold["parameters"], places[gold["steps"]], likeness)
    logits = torch.cat([part.flatten(1).float() for part in parts], 1)
    losses["kinds"] = _sum(masked(logits, gold["allowed"]), gold["options"])
    indices = gold["indices"].masked_fill(gold["kinds"] != reading.STEP, IGNORED)
    losses["indices"] = _sum(network.which(states).float(), indices)
    is_span = (gold["kinds"] == reading.SPAN) & gold["spans"].flatten(1).any(1)
    if is_span.any():
        scores = network.spans(memory, states[is_span], rows[is_span]).flatten(1)
        losses["spans"] = _sum_of_any(scores, gold["spans"][is_span].flatten(1))
    is_number = gold["kinds"] == reading.NUMBER
    if is_number.any():
        weights, facts, present = number_tensors(episode.messages[: episode.count], memory.words)
        scores = network.numbers(memory, states[is_number], weights, facts, rows[is_number])
        right = gold["numbers"][is_number][:, : present.shape[1]]
        losses["numbers"] = _sum_of_any(masked(scores, present[rows[is_number]]), right)
    count = episode.count
    total = sum(losses.values(), torch.zeros(())) / count
    return total, {name: float(loss.detach()) / count for name, loss in losses.items()}


def _memory_of(network: ParserNetwork, episode: Episode) -> Memory:
    """Return the encoded messages, toolbox and plan cases, as the network plans with them."""
    schema, count = episode.schema, episode.count
    encoded = network.read(tensors(arrays.message_arrays(episode.messages)))
    nodes = network.schema(tensors(arrays.card_arrays(schema)), schema.sizes)
    cases = list(zip(episode.messages, episode.plans, strict=True))
    pairs = tensors(arrays.pair_arrays(schema, episode.messages))
    case_data = with_fields(case_tensors(schema, cases, encoded), schema, cases, episode.messages)
    case_data.context = case_data.context[:, :, :count]
    return network.join(
        Encoded(*(getattr(encoded, part.name)[:count] for part in dataclasses.fields(encoded))),
        nodes,
        schema.sizes,
        {name: pair if name == "relations" else pair[:count] for name, pair in pairs.items()},
        case_data,
        torch.tensor(episode.is_case),
    )


def _step_inputs(
    network: ParserNetwork, memory: Memory, gold: dict[str, Tensor], values: Tensor
) -> Tensor:
    """Return the decoder's input at each place: the previous step (n, places, SIZE)."""
    owners = gold["steps"]
    # The share of each argument in the mean over the arguments of its step (steps, arguments).
    share = torch.zeros(len(gold["step_rows"]), len(owners))
    share[owners, torch.arange(len(owners))] = 1
    share = share / share.sum(-1, keepdim=True).clamp(min=1)
    step_inputs = network.step_inputs(
        memory,
        gold["step_rows"],
        gold["step_tools"],
        gold["step_places"].clamp(max=reading.PLACES - 1),
        share.to(values.dtype) @ values,
    )
    dtype = step_inputs.dtype
    inputs = torch.zeros((*gold["tools"].shape, step_inputs.shape[-1]), dtype=dtype)
    inputs[:, 0] = (network.start + network.place.weight[0]).to(dtype)
    inputs[gold["step_rows"], gold["step_places"] + 1] = step_inputs
    return inputs


def _sum(logits: Tensor, target: Tensor) -> Tensor:
    """Return the summed cross-entropy of logits (n, options) with right options (n)."""
    return functional.cross_entropy(logits, target, ignore_index=IGNORED, reduction="sum")


def _sum_of_any(logits: Tensor, right: Tensor) -> Tensor:
    """Return the summed negative log-likelihood of any right option; ``right`` are flags."""
    return -logits.log_softmax(-1).masked_fill(~right, -torch.inf).logsumexp(-1).sum()
