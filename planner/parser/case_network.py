"""Votes of cases for a toolbox's nodes, weighted by the similarity of messages, for training."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from casewright.planner.parser.arrays import CaseData, Votes
from casewright.planner.parser.layers_network import perceptron
from casewright.planner.parser.plan_reading import KIND_COUNT

#: Dimension of the keys by which messages are compared.
KEY = 128
#: Score of masked cases.
MASKED = -1e4


class Cases(nn.Module):
    """Computes weights of cases, and their votes: states of ``size`` from those of ``encoder``."""

    def __init__(self, encoder: int, size: int) -> None:
        super().__init__()
        self.key = nn.Linear(encoder, KEY, bias=False)
        self.sharpness = nn.Parameter(torch.tensor(2.5))  # Log of the factor of a cosine.
        self.nothing = nn.Parameter(torch.tensor(0.4))  # The cosine that stands for no case.
        self.vector, self.span = nn.Linear(encoder, size), nn.Linear(encoder, size)
        self.tool, self.parameter = perceptron(4, 32, size), perceptron(KIND_COUNT + 1, 32, size)
        self.choice, self.field = perceptron(2, 16, size), perceptron(2, 16, size)
        for layer in (self.vector, self.span):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)

    def keys(self, vectors: Tensor) -> Tensor:
        """Return the messages' keys (n, KEY), unit vectors."""
        return functional.normalize(self.key(vectors).float(), dim=-1)

    def forward(self, keys: Tensor, cases: CaseData, allowed: Tensor) -> Votes[Tensor]:
        """Return votes for messages.

        Args:
            keys: Keys of the messages (n, KEY).
            allowed: True for the cases that each message may use (n, cases).
        """
        cosines = keys @ cases.keys.T
        scores = (cosines * self.sharpness.exp()).masked_fill(~allowed, MASKED)
        nothing = (self.nothing * self.sharpness.exp()).expand(len(scores), 1)
        weights = torch.cat([scores, nothing], 1).softmax(-1)[:, :-1]
        usable = allowed[:, None] & (cases.calls.T[None] > 0)
        # Weights of the cases that call a tool, among these cases (n, tools, cases).
        by_tool = scores[:, None].masked_fill(~usable, MASKED).softmax(-1) * usable
        best_cosine = cosines[:, None].masked_fill(~usable, -1).amax(-1)
        weight = torch.einsum("nc,ct->nt", weights, cases.calls)
        # The divisors bring both logarithms to about the range of the other measures.
        log_count = torch.log1p(usable.sum(-1).float()) / 3
        tools = torch.stack([weight, best_cosine, log_count, torch.log(weight + 0.02) / 4], -1)
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
            self.choice(with_sign(choices)),
            self.field(with_sign(fields.amax(1))),
        ]
        return Votes(torch.cat(states, 1), weights, tools, kinds, choices, fields, context)

    def _spans(self, by_parameter: Tensor, cases: CaseData) -> Tensor:
        """Return the mean vector of each parameter's spans in the cases (n, parameters, size)."""
        of_parameter = cases.span_parameter[None] == torch.arange(by_parameter.shape[1])[:, None]
        weights = by_parameter[:, :, cases.span_case] * of_parameter
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-6)
        means: Tensor = weights.to(cases.spans.dtype) @ self.span(cases.spans)
        return means


def with_sign(votes: Tensor) -> Tensor:
    """Return pairs of a vote and its sign, 1 if positive, else 0 (…, 2), for votes (…)."""
    return torch.stack([votes, (votes > 0).float()], -1)


def continued(cases: CaseData, weights: Tensor, previous_tools: Tensor, tools: int) -> Tensor:
    """Return the cases' votes for each next tool and for the end (n, places, tools + 1, 4).

    The four measures are the weight of the cases that continue the same first tools in this way,
    its share, the weight of the cases in which the tool follows the previous one, and its share.

    Args:
        weights: Weights of the cases (n, cases).
        previous_tools: The tool before each place (n, places): first the start, -1 after the plan.
        tools: How many tools there are, which is also the number of the start and of the end.
    """
    places = previous_tools.shape[1]
    count = cases.sequences.shape[0]
    matching = torch.ones(len(previous_tools), count, dtype=torch.bool)
    votes_by_place = []
    for place in range(places):
        if place:
            same_tool = cases.sequences[None, :, min(place, cases.sequences.shape[1]) - 1]
            matching = matching & (same_tool == previous_tools[:, place, None])
        following = cases.sequences[:, min(place, cases.sequences.shape[1] - 1)]
        next_tools = functional.one_hot(following.clamp(min=0), tools + 1).float()
        next_tools = next_tools * (following >= 0)[:, None]
        votes = (weights * matching) @ next_tools
        total = (weights * matching).sum(-1, keepdim=True)
        following_pairs = cases.pairs[:, previous_tools[:, place]].transpose(0, 1)
        pairs = torch.einsum("nc,nct->nt", weights, following_pairs)
        pair_total = pairs.sum(-1, keepdim=True)
        shares = [votes, votes / (total + 0.05), pairs, pairs / (pair_total + 0.05)]
        votes_by_place.append(torch.stack(shares, -1))
    return torch.stack(votes_by_place, 1)
