"""Computes log-probabilities of answers' tokens by a language model, for a batch of questions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.utils.rnn import pad_sequence

from casewright.finetune.demonstrations.answer_tokens import AnswerTokens

if TYPE_CHECKING:
    from torch import Tensor

    from casewright.planner.language_model import LanguageModel

#: Log-probabilities, by question, answer, and token of the answer.
Logprobs = list[list[list[float]]]
#: Maximum relative difference between log-probabilities of answers scored together or separately.
_TOLERANCE = 1e-2


class AnswerNetwork:
    """Computes the log-probabilities of answers after their contexts with a causal language model.

    All answers to a question form one row after the context's KV cache. A mask lets each answer
    attend only to the context and itself. Networks that accept no such mask, or whose sliding
    window is too short, read the context again with each answer.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._network = model.network
        self._device = model.device
        config: Any = model.network.config.get_text_config()
        self._window: int | None = getattr(config, "sliding_window", None)
        self._takes_answer_masks = self._try_answer_masks(config.vocab_size)

    @torch.inference_mode()
    def score_together(self, questions: Sequence[AnswerTokens]) -> Logprobs:
        """Return the log-probabilities; if possible, a context is read once for all its answers."""
        longest = max(question.max_length for question in questions)
        if not self._takes_answer_masks or (self._window is not None and longest > self._window):
            return self.score_separately(questions)
        contexts, mask = self._padded([question.context for question in questions])
        output = self._network(
            input_ids=contexts,
            attention_mask=mask,
            position_ids=_positions(mask),
            use_cache=True,
            logits_to_keep=1,
        )
        # The context's last logits predict each answer's first token.
        first_logprobs = output.logits[:, -1].float().log_softmax(-1)
        later_logprobs = self._score_later_tokens(questions, output.past_key_values, mask)
        return [
            [[float(first[a[0]]), *rest] for a, rest in zip(q.answers, later, strict=True)]
            for q, first, later in zip(questions, first_logprobs, later_logprobs, strict=True)
        ]

    @torch.inference_mode()
    def score_separately(self, questions: Sequence[AnswerTokens]) -> Logprobs:
        """Return the log-probabilities; each context is read again with each answer."""
        rows = [(question.context, answer) for question in questions for answer in question.answers]
        ids, mask = self._padded([[*context, *answer[:-1]] for context, answer in rows])
        output = self._network(
            input_ids=ids,
            attention_mask=mask,
            position_ids=_positions(mask),
            use_cache=False,
            logits_to_keep=max(len(answer) for _, answer in rows),
        )
        # Rows are padded on the left, so an answer's tokens are the last ones.
        targets, _ = self._padded([answer for _, answer in rows])
        logprobs = iter(_target_logprobs(output.logits, targets))
        return [[next(logprobs)[-len(answer) :] for answer in q.answers] for q in questions]

    def _score_later_tokens(
        self, questions: Sequence[AnswerTokens], cache: Any, mask: Tensor
    ) -> Logprobs:
        """Return the log-probabilities of each question's answers, without their first tokens."""
        input_ids = [[token for a in q.answers for token in a[:-1]] for q in questions]
        targets = [[token for a in q.answers for token in a[1:]] for q in questions]
        lengths = [[len(answer) - 1 for answer in question.answers] for question in questions]
        offsets = [[offset for length in row for offset in range(length)] for row in lengths]
        # The number of each token's answer, from 1; padding gets 0.
        numbers = [[i for i, length in enumerate(row, 1) for _ in range(length)] for row in lengths]
        answer_of, offset = self._padded(numbers, "right")[0], self._padded(offsets, "right")[0]
        if not answer_of.shape[1]:
            return [[[] for _ in question.answers] for question in questions]
        # A token attends to its context, and to its answer up to itself.
        visible_answer = answer_of[:, :, None] == answer_of[:, None, :]
        visible_answer &= offset[:, :, None] >= offset[:, None, :]
        visible_context = mask.bool()[:, None, :].expand(-1, visible_answer.shape[1], -1)
        visible = torch.cat([visible_context, visible_answer], dim=2)
        # An additive bias of attention scores (questions, 1, answer tokens, all tokens).
        bias = torch.zeros(visible.shape, dtype=self._network.dtype, device=self._device)
        bias = bias.masked_fill(~visible, torch.finfo(bias.dtype).min)[:, None]
        output = self._network(
            input_ids=self._padded(input_ids, "right")[0],
            attention_mask=bias,
            position_ids=mask.sum(1, keepdim=True) + offset,
            past_key_values=cache,
            use_cache=True,
        )
        logprobs = _target_logprobs(output.logits, self._padded(targets, "right")[0])
        rows = zip(map(iter, logprobs), questions, strict=True)
        return [[list(islice(row, len(a) - 1)) for a in q.answers] for row, q in rows]

    @torch.inference_mode()
    def _try_answer_masks(self, vocabulary_size: int) -> bool:
        """Return True if ``score_together`` and ``score_separately`` agree on a sample."""
        tokens = [token % vocabulary_size for token in (7, 11, 13, 17, 19, 23)]
        sample = AnswerTokens(tuple(tokens[:2]), (tuple(tokens[2:5]), tuple(tokens[3:])), (0, 0))
        # If this is False, ``score_together`` does not use masks.
        self._takes_answer_masks = True
        try:
            joined, separate = self.score_together([sample])[0], self.score_separately([sample])[0]
        except (TypeError, ValueError, RuntimeError, IndexError):
            return False
        pairs = zip(chain.from_iterable(joined), chain.from_iterable(separate), strict=True)
        return all(abs(a - b) <= _TOLERANCE * max(1.0, abs(b)) for a, b in pairs)

    def _padded(self, rows: Sequence[Sequence[int]], side: str = "left") -> tuple[Tensor, Tensor]:
        """Return rows padded with 0 on one side, and their mask, which is 0 for padding."""
        tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
        masks = [torch.ones_like(row) for row in tensors]
        pad = partial(pad_sequence, batch_first=True, padding_side=side)
        return pad(tensors).to(self._device), pad(masks).to(self._device)


def _positions(mask: Tensor) -> Tensor:
    return (mask.cumsum(1) - 1).clamp(min=0)


def _target_logprobs(logits: Tensor, targets: Tensor) -> list[list[float]]:
    scores = logits.float()
    logprobs = scores.gather(-1, targets.unsqueeze(-1)).squeeze(-1) - scores.logsumexp(-1)
    rows: list[list[float]] = logprobs.tolist()
    return rows
