"""Log-probabilities of answers' tokens by a network, for several questions at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.utils.rnn import pad_sequence

from casewright.finetune.demonstrations.answer_tokens import AnswerTokens

if TYPE_CHECKING:
    from torch import Tensor

    from casewright.planner.language_model import LanguageModel

#: For each question a list of its answers, each the log-probabilities of its tokens.
Logprobs = list[list[list[float]]]
#: Largest difference between two ways of computing one number in float32; others are coarser.
_NEAR = 1e-2


class AnswerNetwork:
    """Reads contexts and their answers with a causal language model.

    A context's key/value states are computed once. Its answers follow it in one row, each of which
    sees the context and itself, by a mask of its own: the states are neither copied nor computed
    again. Networks that take no such mask read the context again with each answer.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._network = model.network
        self._device = model.device
        config: Any = model.network.config.get_text_config()
        self._window: int | None = getattr(config, "sliding_window", None)
        self._packs = self._takes_own_masks(config.vocab_size)

    @torch.inference_mode()
    def shared(self, asked: Sequence[AnswerTokens]) -> Logprobs:
        """Return the log-probabilities, each context being read once for all of its answers."""
        narrow = (
            self._window is not None and max(question.longest for question in asked) > self._window
        )
        if narrow or not self._packs:
            return self.apart(asked)
        contexts, mask = self._padded([question.context for question in asked])
        read = self._network(
            input_ids=contexts,
            attention_mask=mask,
            position_ids=_positions(mask),
            use_cache=True,
            logits_to_keep=1,
        )
        first = read.logits[:, -1].float().log_softmax(-1)
        # What follows the first token of an answer is read with it.
        more = self._packed(asked, read.past_key_values, mask)
        return [
            [
                [float(first[row, answer[0]]), *more[row][index]]
                for index, answer in enumerate(question.answers)
            ]
            for row, question in enumerate(asked)
        ]

    @torch.inference_mode()
    def apart(self, asked: Sequence[AnswerTokens]) -> Logprobs:
        """Return the log-probabilities, each context being read again with each answer."""
        rows = [(question.context, answer) for question in asked for answer in question.answers]
        ids, mask = self._padded([[*context, *answer[:-1]] for context, answer in rows])
        read = self._network(
            input_ids=ids,
            attention_mask=mask,
            position_ids=_positions(mask),
            use_cache=False,
            logits_to_keep=max(len(answer) for _, answer in rows),
        )
        # Padded on the left: an answer's tokens are the last ones.
        wanted, _ = self._padded([answer for _, answer in rows])
        result = _picked(read.logits, wanted)
        flat = (
            row[len(row) - len(answer) :] for row, (_, answer) in zip(result, rows, strict=True)
        )
        return [[next(flat) for _ in question.answers] for question in asked]

    def _packed(self, asked: Sequence[AnswerTokens], states: Any, mask: Tensor) -> Logprobs:
        """Return the log-probabilities from each answer's second token on, a row a question."""
        ids, owners, offsets, wanted = [], [], [], []
        for question in asked:
            lengths = [len(answer) - 1 for answer in question.answers]
            owners.append([at for at, n in enumerate(lengths, 1) for _ in range(n)])
            offsets.append([at for n in lengths for at in range(n)])
            ids.append([token for answer in question.answers for token in answer[:-1]])
            wanted.append([token for answer in question.answers for token in answer[1:]])
        # Padding is of no answer: its owner is 0.
        owner, offset = self._padded(owners, "right")[0], self._padded(offsets, "right")[0]
        if not owner.shape[1]:
            return [[[] for _ in question.answers] for question in asked]
        own = (owner[:, :, None] == owner[:, None, :]) & (offset[:, :, None] >= offset[:, None, :])
        seen = torch.cat([mask.bool()[:, None, :].expand(-1, own.shape[1], -1), own], dim=2)
        read = self._network(
            input_ids=self._padded(ids, "right")[0],
            attention_mask=self._bias(seen),
            position_ids=mask.sum(1, keepdim=True) + offset,
            past_key_values=states,
            use_cache=True,
        )
        result = _picked(read.logits, self._padded(wanted, "right")[0])
        rows = [iter(row) for row in result]
        return [
            [list(islice(row, len(answer) - 1)) for answer in question.answers]
            for row, question in zip(rows, asked, strict=True)
        ]

    @torch.inference_mode()
    def _takes_own_masks(self, vocabulary: int) -> bool:
        """Try whether the network gives answers in one row the numbers that they have in two."""
        some = [token % vocabulary for token in (7, 11, 13, 17, 19, 23)]
        tried = AnswerTokens(tuple(some[:2]), (tuple(some[2:5]), tuple(some[3:])), (0, 0))
        self._packs = True
        try:
            packed, apart = self.shared([tried])[0], self.apart([tried])[0]
        except (TypeError, ValueError, RuntimeError, IndexError):
            return False
        pairs = zip(chain.from_iterable(packed), chain.from_iterable(apart), strict=True)
        return all(abs(a - b) <= _NEAR * max(1.0, abs(b)) for a, b in pairs)

    def _bias(self, seen: Tensor) -> Tensor:
        """Return a mask as what is added to attention's scores, array (rows, 1, new, all)."""
        dtype = self._network.dtype
        hidden = torch.full((), torch.finfo(dtype).min, dtype=dtype, device=self._device)
        shown = torch.zeros((), dtype=dtype, device=self._device)
        return torch.where(seen, shown, hidden)[:, None]

    def _padded(self, rows: Sequence[Sequence[int]], side: str = "left") -> tuple[Tensor, Tensor]:
        """Return rows padded on one side, and the mask of what is theirs."""
        results = [torch.tensor(row, dtype=torch.long) for row in rows]
        ids, own = (
            pad_sequence(part, batch_first=True, padding_side=side).to(self._device)
            for part in (results, [torch.ones_like(row) for row in results])
        )
        return ids, own


def _positions(mask: Tensor) -> Tensor:
    return (mask.cumsum(1) - 1).clamp(min=0)


def _picked(logits: Tensor, wanted: Tensor) -> list[list[float]]:
    """Return the log-probability of each wanted token."""
    scores = logits.float()
    chosen = scores.gather(-1, wanted.unsqueeze(-1)).squeeze(-1) - scores.logsumexp(-1)
    rows: list[list[float]] = chosen.tolist()
    return rows
