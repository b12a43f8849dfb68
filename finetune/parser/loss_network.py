"""The loss of the plan parser: the negative log-likelihood of an episode's gold plans."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from casewright.finetune.parser.episodes import Episode
from casewright.planner.parser.arrays import (
    card_arrays,
    field_likeness,
    message_arrays,
    name_likeness,
    pair_arrays,
)
from casewright.planner.parser.layers_network import masked
from casewright.planner.parser.options import Options
from casewright.planner.parser.parser_network import Encoded, Memory, ParserNetwork
from casewright.planner.parser.plan_reading import (
    CHOICE,
    CONTEXT,
    LONGEST,
    NUMBER,
    PLACES,
    SPAN,
    STEP,
    Argument,
    pointed,
)
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
    - before: tool before each place (n, places); see ``case_network.continued``
    - step_rows, step_places, step_tools: message of each step, its number from 0, its tool
    - step_parameters: parameters of each step's tool, padded with -1 (steps, most)
    - steps, slots: step of each argument, and its index in the step
    - parameters, kinds, indices: parameter, kind and index of each argument
    - allowed: plain kinds, choices, context fields, results by step (arguments, options)
    - options: correct option of each argument
    - weights: weights of the nodes that an argument points to (arguments, nodes)
    - spans: flags of correct runs of words (arguments, words, longest)
    - numbers: flags of correct numbers (arguments, numbers)
    """
    schema = episode.schema
    messages = episode.messages
    fields = max(1, *(len(message.fields) for message in messages))
    most_numbers = max(1, *(len(message.numbers) for message in messages))
    end = len(schema.tools)
    longest_plan = max(len(episode.plans[row]) for row in range(episode.count))
    tools = np.full((episode.count, longest_plan + 1), IGNORED, dtype=np.int64)
    before = np.full((episode.count, longest_plan + 1), -1, dtype=np.int64)
    options = Options(schema)
    steps: list[tuple[int, int, int, list[int]]] = []
    rows: list[tuple[int, int, Argument]] = []
    allowed, gold = [], []
    for row in range(episode.count):
        plan = episode.plans[row]
        calls = [step.tool for step in plan]
        tools[row, : len(calls) + 1] = [*calls, end]
        before[row, : len(calls) + 1] = [end, *calls]
        plain = options.plain_of(messages[row])
        context = options.context_of(messages[row], episode.contexts[row], fields)
        for index, step in enumerate(plan):
            for slot, argument in enumerate(step.arguments):
                rows.append((len(steps), slot, argument))
                results = options.results_of(calls[:index], PLACES)
                results &= options.steps[argument.parameter]
                parts = (
                    plain[argument.parameter],
                    options.choices[argument.parameter],
                    context[argument.parameter],
                    results.ravel(),
                )
                allowed.append(np.concatenate(parts))
                gold.append(_option(argument, parts, len(schema.results)))
            steps.append((row, index, step.tool, schema.parameters_of(step.tool)))
    most = max(1, *(len(step[3]) for step in steps))
    weights = np.zeros((len(rows), words + fields + schema.size), dtype=np.float32)
    spans = np.zeros((len(rows), words, LONGEST), dtype=bool)
    numbers = np.zeros((len(rows), most_numbers), dtype=bool)
    for number, (owner, _, argument) in enumerate(rows):
        first, last = pointed(argument, messages[steps[owner][0]], schema, words, fields)
        weights[number, first:last] = 1 / max(1, last - first)
        numbers[number, list(argument.numbers)] = True
        for start, stop in argument.spans:
            if stop - start < LONGEST:
                spans[number, start, stop - start] = True
    integers = {
        "step_rows": [step[0] for step in steps],
        "step_places": [step[1] for step in steps],
        "step_tools": [step[2] for step in steps],
        "step_parameters": [[*step[3], *[-1] * (most - len(step[3]))] for step in steps],
        "steps": [row[0] for row in rows],
        "slots": [row[1] for row in rows],
        "parameters": [row[2].parameter for row in rows],
        "kinds": [row[2].kind for row in rows],
        "indices": [row[2].index for row in rows],
        "options": gold,
    }
    arrays = {
        "tools": tools,
        "before": before,
        "allowed": np.array(allowed),
        "weights": weights,
        "spans": spans,
        "numbers": numbers,
        **{name: np.array(values, dtype=np.int64) for name, values in integers.items()},
    }
    return tensors(arrays)


def _option(argument: Argument, parts: tuple[NDArray[np.bool_], ...], results: int) -> int:
    """Return an argument's option; ``IGNORED`` if it is masked, as in a truncated message."""
    choices, context, steps = np.cumsum([len(part) for part in parts[:3]]).tolist()
    starts = {CHOICE: choices, CONTEXT: context, STEP: steps + argument.step * results}
    index = argument.kind
    if index in starts:
        index = starts[index] + argument.node
    return index if np.concatenate(parts)[index] else IGNORED


class KeptStates:
    """A cache of the frozen layers' token states by the tokens of a text, in bfloat16."""

    def __init__(self, network: ParserNetwork) -> None:
        self._network = network
        self._states: dict[bytes, Tensor] = {}

    def __call__(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Return token states (n, tokens, encoder), zeros without a token."""
        lengths = mask.sum(-1).tolist()
        keys = [
            ids[row, :size].numpy(force=True).tobytes()
            + types[row, :size].to(torch.int8).numpy(force=True).tobytes()
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
            for row, result in zip(new, states, strict=True):
                self._states[keys[row]] = result[: lengths[row]].to(torch.bfloat16).clone()
        results = [self._states[key] for key in keys]
        return torch.nn.utils.rnn.pad_sequence(results, batch_first=True)


def episode_loss(network: ParserNetwork, episode: Episode) -> tuple[Tensor, dict[str, float]]:
    """Return the mean negative log-likelihood of a plan, and the parts of the loss."""
    memory = _join(network, episode)
    of = _targets(episode, memory.words)
    rows = of["step_rows"][of["steps"]]
    places = of["step_places"]
    taken = network.values(
        memory, rows, of["parameters"], of["kinds"], of["weights"], of["indices"]
    )
    decoded = network.decode(memory, _step_inputs(network, memory, of, taken))
    tools = network.tools(memory, decoded, of["before"]).float()
    losses = {"tools": _sum(tools.flatten(0, 1), of["tools"].flatten())}
    states = network.arguments(
        memory,
        decoded[of["step_rows"], places],
        of["step_rows"],
        of["step_tools"],
        of["step_parameters"],
    )[of["steps"], of["slots"]]
    likeness = (
        tensor(name_likeness(episode.schema)),
        tensor(field_likeness(episode.schema, episode.messages)[: episode.count]),
    )
    parts = network.kinds(memory, states, rows, of["parameters"], places[of["steps"]], likeness)
    logits = torch.cat([part.flatten(1).float() for part in parts], 1)
    losses["kinds"] = _sum(masked(logits, of["allowed"]), of["options"])
    indices = of["indices"].masked_fill(of["kinds"] != STEP, IGNORED)
    losses["indices"] = _sum(network.which(states).float(), indices)
    span = (of["kinds"] == SPAN) & of["spans"].flatten(1).any(1)
    if span.any():
        result = network.spans(memory, states[span], rows[span]).flatten(1).log_softmax(-1)
        right = of["spans"][span].flatten(1)
        losses["spans"] = -result.masked_fill(~right, -torch.inf).logsumexp(-1).sum()
    number = of["kinds"] == NUMBER
    if number.any():
        weights, facts, present = number_tensors(episode.messages[: episode.count], memory.words)
        result = network.numbers(memory, states[number], weights, facts, rows[number])
        result = masked(result, present[rows[number]]).log_softmax(-1)
        right = of["numbers"][number][:, : present.shape[1]]
        losses["numbers"] = -result.masked_fill(~right, -torch.inf).logsumexp(-1).sum()
    count = episode.count
    total = sum(losses.values(), torch.zeros(())) / count
    return total, {name: float(loss.detach()) / count for name, loss in losses.items()}


def _join(network: ParserNetwork, episode: Episode) -> Memory:
    schema, count = episode.schema, episode.count
    encoded = network.read(tensors(message_arrays(episode.messages)))
    nodes = network.schema(tensors(card_arrays(schema)), schema.sizes)
    cases = list(zip(episode.messages, episode.plans, strict=True))
    pairs = tensors(pair_arrays(schema, episode.messages))
    facts = case_tensors(schema, cases, encoded)
    facts = with_fields(facts, schema, cases, episode.messages)
    facts.context = facts.context[:, :, :count]
    return network.join(
        Encoded(*(getattr(encoded, part.name)[:count] for part in dataclasses.fields(encoded))),
        nodes,
        schema.sizes,
        {name: pair if name == "relations" else pair[:count] for name, pair in pairs.items()},
        facts,
        torch.tensor(episode.known),
    )


def _step_inputs(
    network: ParserNetwork, memory: Memory, of: dict[str, Tensor], taken: Tensor
) -> Tensor:
    """Return the decoder's input at each place: the previous step (n, places, SIZE)."""
    count = len(of["step_rows"])
    share = torch.zeros(count, len(of["steps"]))
    share[of["steps"], torch.arange(len(of["steps"]))] = 1
    share = share / share.sum(-1, keepdim=True).clamp(min=1)
    facts = network.step_inputs(
        memory,
        of["step_rows"],
        of["step_tools"],
        of["step_places"].clamp(max=PLACES - 1),
        share.to(taken.dtype) @ taken,
    )
    width = of["tools"].shape[1]
    fed = torch.zeros((len(of["tools"]), width, facts.shape[-1]), dtype=facts.dtype)
    fed[:, 0] = (network.start + network.place.weight[0]).to(facts.dtype)
    fed[of["step_rows"], of["step_places"] + 1] = facts
    return fed


def _sum(logits: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(logits, target, ignore_index=IGNORED, reduction="sum")
