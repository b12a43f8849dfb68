"""The torch module that computes plan cases' votes, weighted by the similarity of messages."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from casewright.planner.parser.arrays import CaseData, Votes
from casewright.planner.parser.layers_network import perceptron
from casewright.planner.parser.plan_reading import KIND_COUNT

#: Dimension of the keys by which messages are compared.
KEY_SIZE = 128
MASKED_SCORE = -1e4


class Cases(nn.Module):
    """Computes weights and votes of plan cases; encoder states have ``width``, others ``size``."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.key = nn.Linear(width, KEY_SIZE, bias=False)
        self.sharpness = nn.Parameter(torch.tensor(2.5))  # Logarithm of an inverse temperature.
        self.nothing = nn.Parameter(torch.tensor(0.4))  # Cosine of a virtual case without votes.
        # The following layers compute ``Votes.states``.
        self.vector, self.span = nn.Linear(width, size), nn.Linear(width, size)
        self.tool, self.parameter = perceptron(4, 32, size), perceptron(KIND_COUNT + 1, 32, size)
        self.choice, self.field = perceptron(2, 16, size), perceptron(2, 16, size)
        for layer in (self.vector, self.span):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)

    def keys(self, vectors: Tensor) -> Tensor:
        """Return the messages' keys (n, KEY_SIZE), unit vectors."""
        return functional.normalize(self.key(vectors).float(), dim=-1)

    def forward(self, keys: Tensor, cases: CaseData, allowed: Tensor) -> Votes[Tensor]:
        """Return the cases' votes for n messages.

        Args:
            keys: Keys of the messages (n, KEY_SIZE).
            allowed: True for the cases that each message may use (n, cases).
        """
        cosines = keys @ cases.keys.T
        scores = (cosines * self.sharpness.exp()).masked_fill(~allowed, MASKED_SCORE)
        virtual_score = (self.nothing * self.sharpness.exp()).expand(len(scores), 1)
        weights = torch.cat([scores, virtual_score], 1).softmax(-1)[:, :-1]
        usable = allowed[:, None] & (cases.calls.T[None] > 0)
        # For each tool, the normalised weights of the cases that call it (n, tools, cases).
        tool_weights = scores[:, None].masked_fill(~usable, MASKED_SCORE).softmax(-1) * usable
        best_cosine = cosines[:, None].masked_fill(~usable, -1).amax(-1)
        total_weight = torch.einsum("nc,ct->nt", weights, cases.calls)
        # The divisors bring both logarithms to about the range of the other measures.
        log_count = torch.log1p(usable.sum(-1).float()) / 3
        log_weight = torch.log(total_weight + 0.02) / 4
        measures = torch.stack([total_weight, best_cosine, log_count, log_weight], -1)
        parameter_weights = tool_weights[:, cases.tool_of]
        kinds = torch.einsum("npc,cpk->npk", parameter_weights, cases.kinds)
        kinds = torch.cat([kinds, log_count[:, cases.tool_of, None]], -1)
        choice_weights = parameter_weights[:, cases.parameter_of]
        choices = torch.einsum("nqc,cq->nq", choice_weights, cases.choices)
        fields = torch.einsum("npc,cpf->npf", parameter_weights, cases.fields)
        context = torch.einsum("npc,cpnx->npx", parameter_weights, cases.context)
        states = [
            self.tool(measures) + tool_weights.to(cases.vectors.dtype) @ self.vector(cases.vectors),
            self.parameter(kinds) + self._mean_spans(parameter_weights, cases),
            self.choice(with_sign(choices)),
            self.field(with_sign(fields.amax(1))),
        ]
        return Votes(torch.cat(states, 1), weights, measures, kinds, choices, fields, context)

    def _mean_spans(self, parameter_weights: Tensor, cases: CaseData) -> Tensor:
        """Return the weighted mean of each parameter's span vectors (n, parameters, size)."""
        matches = cases.span_parameter[None] == torch.arange(parameter_weights.shape[1])[:, None]
        weights = parameter_weights[:, :, cases.span_case] * matches
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-6)
        means: Tensor = weights.to(cases.spans.dtype) @ self.span(cases.spans)
        return means


def with_sign(votes: Tensor) -> Tensor:
    """Return each vote with a flag, 1 if the vote is positive (…, 2)."""
    return torch.stack([votes, (votes > 0).float()], -1)


def next_tool_votes(cases: CaseData, weights: Tensor, previous_tools: Tensor, count: int) -> Tensor:
    """Return the cases' votes for each next tool and for the end (n, places, count + 1, 4).

    The first vote for a tool is the weight of the cases that begin with the plan's tools, followed
    by this tool. The third vote is the weight of the cases in which this tool follows the previous
    tool anywhere. The second and the fourth vote are shares: the first and the third vote, divided
    by their sums over all tools.

    Args:
        weights: Weights of the cases (n, cases).
        previous_tools: Tool before each place (n, places); ``count`` at the start, -1 past the end.
        count: Number of tools; as the index of a tool, it stands for a plan's start or end.
    """
    place_count = previous_tools.shape[1]
    case_count = cases.sequences.shape[0]
    same_start = torch.ones(len(previous_tools), case_count, dtype=torch.bool)
    measures_by_place = []
    for place in range(place_count):
        if place:
            case_tools = cases.sequences[None, :, min(place, cases.sequences.shape[1]) - 1]
            same_start = same_start & (case_tools == previous_tools[:, place, None])
        next_tools = cases.sequences[:, min(place, cases.sequences.shape[1] - 1)]
        next_flags = functional.one_hot(next_tools.clamp(min=0), count + 1).float()
        next_flags = next_flags * (next_tools >= 0)[:, None]
        votes = (weights * same_start) @ next_flags
        total = (weights * same_start).sum(-1, keepdim=True)
        following_pairs = cases.pairs[:, previous_tools[:, place]].transpose(0, 1)
        pairs = torch.einsum("nc,nct->nt", weights, following_pairs)
        pair_total = pairs.sum(-1, keepdim=True)
        measures = [votes, votes / (total + 0.05), pairs, pairs / (pair_total + 0.05)]
        measures_by_place.append(torch.stack(measures, -1))
    return torch.stack(measures_by_place, 1)
