"""The plan parser's loss: the negative log-likelihood of the gold plans of an episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
    tensors,
    with_fields,
)

Ints = NDArray[np.int64]
#: Target of what is not to be learned; torch's own choice.
IGNORED = -100


@dataclass(frozen=True, slots=True)
class Targets:
    """Gold plans; arguments and steps of all messages stand in one row each.

    Attributes:
        tools: Of each message's steps, then the end (n, places).
        before: The tool before each place (n, places); see ``case_network.continued``.
        step_rows, step_places, step_tools: Of each step: message, number from 0, tool.
        step_parameters: Its tool's parameters, -1 beyond (steps, most).
        steps, slots: Of each argument: its step's number here, and its place in the step.
        parameters, kinds, indices: Of each argument.
        allowed: Plain kinds, choices, context fields, results by step (arguments, options).
        options: Which of these is right.
        weights: Over the nodes that an argument points to (arguments, nodes).
        spans: Which runs are right (arguments, words, longest).
        numbers: Which numbers are right (arguments, numbers).
    """

    tools: Ints
    before: Ints
    step_rows: Ints
    step_places: Ints
    step_tools: Ints
    step_parameters: Ints
    steps: Ints
    slots: Ints
    parameters: Ints
    kinds: Ints
    indices: Ints
    allowed: NDArray[np.bool_]
    options: Ints
    weights: NDArray[np.float32]
    spans: NDArray[np.bool_]
    numbers: NDArray[np.bool_]


def targets_of(episode: Episode, words: int, places: int, longest: int) -> Targets:
    """Return the gold plans of an episode's messages.

    Args:
        episode: The messages and plans.
        words: Words of the longest message, examples included.
        places: Steps that results may be of.
        longest: Most words of a span.
    """
    schema = episode.schema
    asked = range(episode.asked)
    messages = episode.messages
    fields = max(1, *(len(message.fields) for message in messages))
    most_numbers = max(1, *(len(message.numbers) for message in messages))
    end = len(schema.tools)
    longest_plan = max(len(episode.plans[row]) for row in asked)
    tools = np.full((episode.asked, longest_plan + 1), IGNORED, dtype=np.int64)
    before = np.full((episode.asked, longest_plan + 1), -1, dtype=np.int64)
    options = Options(schema)
    steps: list[tuple[int, int, int, list[int]]] = []
    rows: list[tuple[int, int, Argument]] = []
    allowed, wanted = [], []
    for row in asked:
        plan = episode.plans[row]
        own = [step.tool for step in plan]
        tools[row, : len(own) + 1] = [*own, end]
        before[row, : len(own) + 1] = [end, *own]
        plain = options.plain_of(messages[row])
        context = options.context_of(messages[row], episode.contexts[row], fields)
        for index, step in enumerate(plan):
            for slot, argument in enumerate(step.arguments):
                rows.append((len(steps), slot, argument))
                results = options.results_of(argument.parameter, own[:index], places)
                parts = (
                    plain[argument.parameter],
                    options.choices[argument.parameter],
                    context[argument.parameter],
                    results.ravel(),
                )
                allowed.append(np.concatenate(parts))
                wanted.append(_option(argument, parts, len(schema.results)))
            steps.append((row, index, step.tool, schema.parameters_of(step.tool)))
    most = max(1, *(len(step[3]) for step in steps))
    weights = np.zeros((len(rows), words + fields + schema.size), dtype=np.float32)
    spans = np.zeros((len(rows), words, longest), dtype=bool)
    numbers = np.zeros((len(rows), most_numbers), dtype=bool)
    for number, (owner, _, argument) in enumerate(rows):
        first, last = pointed(argument, messages[steps[owner][0]], schema, words, fields)
        weights[number, first:last] = 1 / max(1, last - first)
        numbers[number, list(argument.numbers)] = True
        for start, stop in argument.spans:
            if stop - start < longest:
                spans[number, start, stop - start] = True
    return Targets(
        tools=tools,
        before=before,
        step_rows=_ints([step[0] for step in steps]),
        step_places=_ints([step[1] for step in steps]),
        step_tools=_ints([step[2] for step in steps]),
        step_parameters=_ints([[*step[3], *[-1] * (most - len(step[3]))] for step in steps]),
        steps=_ints([row[0] for row in rows]),
        slots=_ints([row[1] for row in rows]),
        parameters=_ints([row[2].parameter for row in rows]),
        kinds=_ints([row[2].kind for row in rows]),
        indices=_ints([row[2].index for row in rows]),
        allowed=np.array(allowed),
        options=_ints(wanted),
        weights=weights,
        spans=spans,
        numbers=numbers,
    )


def _ints(values: Sequence[Any]) -> Ints:
    return np.array(values, dtype=np.int64)


def _option(one: Argument, parts: tuple[NDArray[np.bool_], ...], results: int) -> int:
    """Return which option an argument is; none where masks refuse it, as for a cut message."""
    plain, choices, context, _ = parts
    index = one.kind
    if one.kind == CHOICE:
        index = len(plain) + one.node
    elif one.kind == CONTEXT:
        index = len(plain) + len(choices) + one.node
    elif one.kind == STEP:
        index = len(plain) + len(choices) + len(context) + one.step * results + one.node
    return index if np.concatenate(parts)[index] else IGNORED


class KeptStates:
    """Remembers token states by a text's tokens, in bfloat16.

    Args:
        network: Whose lower layers are run.
    """

    def __init__(self, network: ParserNetwork) -> None:
        self._network = network
        self._states: dict[bytes, Tensor] = {}

    def __call__(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Return token states (n, tokens, encoder), zeros where there is no token."""
        lengths = mask.sum(-1).tolist()
        keys = [
            ids[row, :size].numpy().tobytes() + types[row, :size].to(torch.int8).numpy().tobytes()
            for row, size in enumerate(lengths)
        ]
        new = [row for row, key in enumerate(keys) if key not in self._states]
        if new:
            own = torch.tensor(new)
            training = self._network.encoder.training
            self._network.encoder.eval()
            with torch.no_grad():
                states = self._network.lower(ids[own], mask[own], types[own])
            self._network.encoder.train(training)
            for row, result in zip(new, states, strict=True):
                self._states[keys[row]] = result[: lengths[row]].to(torch.bfloat16).clone()
        results = [self._states[key] for key in keys]
        return torch.nn.utils.rnn.pad_sequence(results, batch_first=True)


def episode_loss(network: ParserNetwork, episode: Episode) -> tuple[Tensor, dict[str, float]]:
    """Return the mean negative log-likelihood of a plan, and its parts.

    Args:
        network: In training.
        episode: Messages with gold plans.
    """
    memory = joined(network, episode)
    target = targets_of(episode, memory.words, PLACES, LONGEST)
    of = {name: torch.from_numpy(getattr(target, name)) for name in Targets.__slots__}
    rows = of["step_rows"][of["steps"]]
    places = of["step_places"]
    taken = network.values(
        memory, rows, of["parameters"], of["kinds"], of["weights"], of["indices"]
    )
    decoded = network.decode(memory, _fed(network, memory, of, taken))
    tools = network.tools(memory, decoded, of["before"]).float()
    losses = {"tools": _sum(tools.flatten(0, 1), of["tools"].flatten())}
    states = network.arguments(
        memory,
        decoded[of["step_rows"], places],
        of["step_rows"],
        of["step_tools"],
        of["step_parameters"],
    )[of["steps"], of["slots"]]
    likeness = _likeness(episode)
    parts = network.kinds(memory, states, rows, of["parameters"], places[of["steps"]], likeness)
    logits = torch.cat([part.flatten(1).float() for part in parts], 1)
    losses["kinds"] = _sum(masked(logits, of["allowed"]), of["options"])
    losses["indices"] = _where(network.which(states), of["indices"], of["kinds"] == STEP)
    span = (of["kinds"] == SPAN) & of["spans"].flatten(1).any(1)
    if span.any():
        result = network.spans(memory, states[span], rows[span]).flatten(1).log_softmax(-1)
        right = of["spans"][span].flatten(1)
        losses["spans"] = -result.masked_fill(~right, -torch.inf).logsumexp(-1).sum()
    number = of["kinds"] == NUMBER
    if number.any():
        weights, facts, there = number_tensors(episode.messages[: episode.asked], memory.words)
        most = there.shape[1]
        result = network.numbers(memory, states[number], weights, facts, rows[number])
        result = masked(result, there[rows[number]]).log_softmax(-1)
        right = of["numbers"][number][:, :most]
        losses["numbers"] = -result.masked_fill(~right, -torch.inf).logsumexp(-1).sum()
    count = episode.asked
    total = sum(losses.values(), torch.zeros(())) / count
    return total, {name: float(loss.detach()) / count for name, loss in losses.items()}


def joined(network: ParserNetwork, episode: Episode) -> Memory:
    """Return an episode's messages joined with its toolbox."""
    schema, asked = episode.schema, episode.asked
    encoded = network.read(tensors(message_arrays(episode.messages)))
    nodes = network.schema(tensors(card_arrays(schema)), schema.sizes)
    cases = list(zip(episode.messages, episode.plans, strict=True))
    pairs = tensors(pair_arrays(schema, episode.messages))
    facts = case_tensors(schema, cases, encoded)
    facts = with_fields(facts, schema, cases, episode.messages)
    facts.context = facts.context[:, :, :asked]
    return network.join(
        Encoded(
            encoded.words[:asked],
            encoded.fields[:asked],
            encoded.features[:asked],
            encoded.vectors[:asked],
            encoded.keys[:asked],
        ),
        nodes,
        schema.sizes,
        {name: pair if name == "relations" else pair[:asked] for name, pair in pairs.items()},
        facts,
        torch.tensor(episode.known),
    )


def _likeness(episode: Episode) -> tuple[Tensor, Tensor]:
    return (
        torch.from_numpy(name_likeness(episode.schema)),
        torch.from_numpy(field_likeness(episode.schema, episode.messages)[: episode.asked]),
    )


def _fed(network: ParserNetwork, memory: Memory, of: dict[str, Tensor], taken: Tensor) -> Tensor:
    """Return what each place is told of the step before (n, places, SIZE)."""
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


def _where(logits: Tensor, target: Tensor, there: Tensor) -> Tensor:
    return _sum(logits.float(), target.masked_fill(~there, IGNORED))
