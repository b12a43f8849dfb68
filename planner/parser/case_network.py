"""Votes of cases on a toolbox's nodes, weighed by how near their messages are, for training."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from casewright.planner.parser.layers_network import perceptron
from casewright.planner.parser.plan_reading import KIND_COUNT

#: Dimension in which messages are compared.
KEY = 128
FAR = -1e4


@dataclass(slots=True)
class CaseArrays:
    """Cases of one toolbox, as tensors; see ``arrays.case_arrays``.

    Attributes:
        keys: Where messages are compared (cases, KEY).
        vectors: Of the messages (cases, size of the encoder).
        spans: Of the words that arguments were taken from (spans, size of the encoder).
        owner: The case of each span.
        of: The parameter of each span.
        has, kinds, choices, fields, pairs, context, sequences: See ``arrays``.
        tool_of: The tool of each parameter.
        parameter_of: The parameter of each choice.
    """

    keys: Tensor
    vectors: Tensor
    spans: Tensor
    owner: Tensor
    of: Tensor
    has: Tensor
    kinds: Tensor
    choices: Tensor
    fields: Tensor
    pairs: Tensor
    context: Tensor
    sequences: Tensor
    tool_of: Tensor
    parameter_of: Tensor


@dataclass(slots=True)
class CaseVotes:
    """Votes of cases for n messages.

    Attributes:
        states: Added to each node of the toolbox (n, nodes, size).
        weights: Of each case (n, cases); they sum to less than one.
        tools: Votes and their evidence (n, tools, 4).
        kinds: Of each parameter (n, parameters, KIND_COUNT + 1).
        choices: (n, choices).
        fields: (n, parameters, result fields).
        context: (n, parameters, context fields).
    """

    states: Tensor
    weights: Tensor
    tools: Tensor
    kinds: Tensor
    choices: Tensor
    fields: Tensor
    context: Tensor


class Cases(nn.Module):
    """Weighs cases, and tells every node what they say of it."""

    def __init__(self, encoder: int, size: int) -> None:
        super().__init__()
        self.key = nn.Linear(encoder, KEY, bias=False)
        self.sharpness = nn.Parameter(torch.tensor(2.5))
        self.nothing = nn.Parameter(torch.tensor(0.4))
        self.vector, self.span = nn.Linear(encoder, size), nn.Linear(encoder, size)
        self.tool, self.parameter = perceptron(4, 32, size), perceptron(KIND_COUNT + 1, 32, size)
        self.choice, self.field = perceptron(2, 16, size), perceptron(2, 16, size)
        for layer in (self.vector, self.span):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)

    def keys(self, vectors: Tensor) -> Tensor:
        """Return where messages are compared (n, KEY), unit vectors."""
        return functional.normalize(self.key(vectors).float(), dim=-1)

    def forward(self, keys: Tensor, cases: CaseArrays, known: Tensor) -> CaseVotes:
        """Return what cases say.

        Args:
            keys: Of the messages (n, KEY).
            cases: All there are.
            known: Which cases each message may know (n, cases).
        """
        likeness = keys @ cases.keys.T
        scores = (likeness * self.sharpness.exp()).masked_fill(~known, FAR)
        nothing = (self.nothing * self.sharpness.exp()).expand(len(scores), 1)
        weights = torch.cat([scores, nothing], 1).softmax(-1)[:, :-1]
        has = cases.has.T[None] > 0
        there = known[:, None] & has
        by_tool = scores[:, None].masked_fill(~there, FAR).softmax(-1) * there
        count = there.sum(-1).float()
        best = likeness[:, None].masked_fill(~there, -1).amax(-1)
        vote = torch.einsum("nc,ct->nt", weights, cases.has)
        log_count = torch.log1p(count) / 3
        tools = torch.stack([vote, best, log_count, torch.log(vote + 0.02) / 4], -1)
        by_parameter = by_tool[:, cases.tool_of]
        kinds = torch.einsum("npc,cpk->npk", by_parameter, cases.kinds)
        kinds = torch.cat([kinds, log_count[:, cases.tool_of, None]], -1)
        by_choice = by_parameter[:, cases.parameter_of]
        choices = torch.einsum("nqc,cq->nq", by_choice, cases.choices)
        fields = torch.einsum("npc,cpf->npf", by_parameter, cases.fields)
        context = torch.einsum("npc,cpnx->npx", by_parameter, cases.context)
        states = [
            self.tool(tools) + by_tool.to(cases.vectors.dtype) @ self.vector(cases.vectors),
            self.parameter(kinds) + self._spans(by_parameter, cases),
            self.choice(torch.stack([choices, (choices > 0).float()], -1)),
            self.field(torch.stack([fields.amax(1), (fields.amax(1) > 0).float()], -1)),
        ]
        return CaseVotes(torch.cat(states, 1), weights, tools, kinds, choices, fields, context)

    def _spans(self, by_parameter: Tensor, cases: CaseArrays) -> Tensor:
        """Return the mean of what each parameter's words were, (n, parameters, size)."""
        own = cases.of[None] == torch.arange(by_parameter.shape[1])[:, None]
        weights = by_parameter[:, :, cases.owner] * own
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-6)
        made: Tensor = weights.to(cases.spans.dtype) @ self.span(cases.spans)
        return made


def continued(cases: CaseArrays, weights: Tensor, before: Tensor, tools: int) -> Tensor:
    """Return what cases say comes next (n, places, tools + 1, 4).

    Args:
        cases: All there are.
        weights: Of each case (n, cases).
        before: Tools so far, for each place the one before it, ``tools`` at the first, -1 beyond
            the plan (n, places).
        tools: Their number, which is the end's.
    """
    places = before.shape[1]
    count = cases.sequences.shape[0]
    alive = torch.ones(len(before), count, dtype=torch.bool)
    found = []
    for place in range(places):
        if place:
            same = cases.sequences[None, :, min(place, cases.sequences.shape[1]) - 1]
            alive = alive & (same == before[:, place, None])
        following = cases.sequences[:, min(place, cases.sequences.shape[1] - 1)]
        named = functional.one_hot(following.clamp(min=0), tools + 1).float()
        named = named * (following >= 0)[:, None]
        votes = (weights * alive) @ named
        total = (weights * alive).sum(-1, keepdim=True)
        pairs = torch.einsum(
            "nc,nct->nt", weights, cases.pairs[:, before[:, place]].transpose(0, 1)
        )
        norm = pairs.sum(-1, keepdim=True)
        found.append(torch.stack([votes, votes / (total + 0.05), pairs, pairs / (norm + 0.05)], -1))
    return torch.stack(found, 1)
