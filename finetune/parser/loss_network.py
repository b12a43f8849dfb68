"""The plan parser's loss: how unlikely it finds the gold plans of an episode."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from casewright.finetune.parser.episodes import Episode
from casewright.finetune.parser.targets import IGNORED, Targets, targets_of
from casewright.planner.parser.arrays import (
    card_arrays,
    field_likeness,
    message_arrays,
    name_likeness,
    pair_arrays,
)
from casewright.planner.parser.layers_network import masked
from casewright.planner.parser.parser_network import Encoded, Memory, ParserNetwork
from casewright.planner.parser.plan_reading import LONGEST, NUMBER, PLACES, SPAN, STEP
from casewright.planner.parser.tensors_network import (
    case_tensors,
    number_tensors,
    tensors,
    with_fields,
)


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
    logits = torch.cat([one.flatten(1).float() for one in parts], 1)
    losses["kinds"] = _sum(masked(logits, of["allowed"]), of["options"])
    losses["indices"] = _where(network.which(states), of["indices"], of["kinds"] == STEP)
    span = (of["kinds"] == SPAN) & of["spans"].flatten(1).any(1)
    if span.any():
        found = network.spans(memory, states[span], rows[span]).flatten(1).log_softmax(-1)
        right = of["spans"][span].flatten(1)
        losses["spans"] = -found.masked_fill(~right, -torch.inf).logsumexp(-1).sum()
    number = of["kinds"] == NUMBER
    if number.any():
        weights, facts, there = number_tensors(episode.messages[: episode.asked], memory.words)
        most = there.shape[1]
        found = network.numbers(memory, states[number], weights, facts, rows[number])
        found = masked(found, there[rows[number]]).log_softmax(-1)
        right = of["numbers"][number][:, :most]
        losses["numbers"] = -found.masked_fill(~right, -torch.inf).logsumexp(-1).sum()
    count = episode.asked
    total = sum(losses.values(), torch.zeros(())) / count
    return total, {name: float(one.detach()) / count for name, one in losses.items()}


def joined(network: ParserNetwork, episode: Episode) -> Memory:
    """Return an episode's messages joined with its toolbox."""
    schema, asked = episode.schema, episode.asked
    encoded = network.read(tensors(message_arrays(episode.messages)))
    nodes = network.schema(tensors(card_arrays(schema)), schema.sizes)
    cases = list(zip(episode.messages, episode.plans, strict=True))
    pairs = tensors(pair_arrays(schema, episode.messages))
    told = case_tensors(schema, cases, encoded)
    told = with_fields(told, schema, cases, episode.messages)
    told.context = told.context[:, :, :asked]
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
        {name: one if name == "relations" else one[:asked] for name, one in pairs.items()},
        told,
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
    told = network.step_inputs(
        memory,
        of["step_rows"],
        of["step_tools"],
        of["step_places"].clamp(max=PLACES - 1),
        share.to(taken.dtype) @ taken,
    )
    width = of["tools"].shape[1]
    fed = torch.zeros((len(of["tools"]), width, told.shape[-1]), dtype=told.dtype)
    fed[:, 0] = (network.start + network.place.weight[0]).to(told.dtype)
    fed[of["step_rows"], of["step_places"] + 1] = told
    return fed


def _sum(logits: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(logits, target, ignore_index=IGNORED, reduction="sum")


def _where(logits: Tensor, target: Tensor, there: Tensor) -> Tensor:
    return _sum(logits.float(), target.masked_fill(~there, IGNORED))
