"""The probability of answers by a causal language model, computed once for what they share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.finetune.demonstrations.answer_tokens import AnswerTokenizer, AnswerTokens
from casewright.finetune.demonstrations.judged import Asked, Likelihood, QuestionForm
from casewright.stores.select import check_counts

if TYPE_CHECKING:
    import torch

    from casewright.finetune.demonstrations.answer_network import AnswerNetwork
    from casewright.planner.language_model import LanguageModel


#: Tokens read in one call of the network, padding included: on a CPU, and on what else there is.
CPU_TOKENS, GPU_TOKENS = 1024, 16_384
#: Questions whose lengths are looked at together, so that those of a batch are alike.
WINDOW = 256
#: Numbers of each weight that the fingerprint is made of.
_SAMPLED = 64


class ModelScorer:
    """Scores answers with any causal language model of transformers.

    A question's context is read once, and its key/value states serve all of its answers
    (``reuse=False`` reads it again with each, for comparison). Several questions are read
    together, and the answers of several, too.

    Args:
        model: The model; see ``load_language_model``.
        batch_tokens: Tokens read in one call; 1,024 on a CPU, whose caches more would not fit
            into, and 16,384 elsewhere.
        reuse: Whether a question's answers share its states.

    Attributes:
        fingerprint: Of its weights: a digest of numbers sampled from each of them.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        form: QuestionForm | None = None,
        batch_tokens: int | None = None,
        reuse: bool = True,
    ) -> None:
        default = CPU_TOKENS if model.device.type == "cpu" else GPU_TOKENS
        self._batch_tokens = default if batch_tokens is None else batch_tokens
        check_counts(1, batch_tokens=self._batch_tokens)
        self.name = model.name
        self.form = form or QuestionForm()
        self.fingerprint = _fingerprint(model)
        self._model = model
        self._reuse = reuse
        self._tokenizer = AnswerTokenizer(model.tokenizer)

    @property
    def signature(self) -> str:
        """The model's name, with the beginning of its fingerprint."""
        return f"{self.name} {self.fingerprint[:12]}"

    def without_reuse(self) -> ModelScorer:
        """Return a scorer of the same model that reads a context again with each answer."""
        return ModelScorer(
            self._model, form=self.form, batch_tokens=self._batch_tokens, reuse=False
        )

    def keys(self, asked: Asked) -> list[str]:
        """Return for each answer a digest of the model's weights, its context and itself."""
        context = self.form.context(asked.question, asked.demonstrations)
        return [_digest(self.fingerprint, context, self.form.answered(a)) for a in asked.answers]

    def tokens(self, asked: Sequence[Asked]) -> int:
        """Return how many tokens the network reads for these, padding left aside."""
        read = 0
        for question in asked:
            result = self._tokens(question)
            times = 1 if self._reuse else len(result.answers)
            read += times * len(result.context) + sum(len(answer) for answer in result.answers)
        return read

    def score(self, asked: Sequence[Asked]) -> Iterator[tuple[int, Sequence[Likelihood]]]:
        """Yield each question's place and its answers' likelihoods; see ``AnswerScorer``."""
        for start in range(0, len(asked), WINDOW):
            results = [self._tokens(question) for question in asked[start : start + WINDOW]]
            for batch in _batches(results, self._batch_tokens, reuse=self._reuse):
                result = _likelihoods(self._network, [results[p] for p in batch], self._reuse)
                yield from zip((start + index for index in batch), result, strict=True)

    @cached_property
    def _network(self) -> AnswerNetwork:
        from casewright.finetune.demonstrations.answer_network import AnswerNetwork

        return AnswerNetwork(self._model)

    def _tokens(self, asked: Asked) -> AnswerTokens:
        if not asked.answers:
            raise InputError(f"The question {asked.question!r:.200} has no answers to score.")
        context = self.form.context(asked.question, asked.demonstrations)
        answers = [self.form.answered(answer) for answer in asked.answers]
        return self._fitting(self._tokenizer.answers(context, answers))

    def _fitting(self, tokens: AnswerTokens) -> AnswerTokens:
        most = self._model.positions
        if most is not None and tokens.longest > most:
            raise InputError(
                f"A prompt with its answer has {tokens.longest} tokens, and {self.name!r} reads "
                f"{most}. Show fewer demonstrations, or leave out long cases."
            )
        return tokens


def _likelihoods(
    network: AnswerNetwork, made: Sequence[AnswerTokens], reuse: bool
) -> list[list[Likelihood]]:
    output = network.shared(made) if reuse else network.apart(made)
    return [
        [
            Likelihood(sum(logprobs[own:]), len(logprobs) - own)
            for logprobs, own in zip(rows, result.own, strict=True)
        ]
        for rows, result in zip(output, made, strict=True)
    ]


def _batches(made: Sequence[AnswerTokens], most: int, *, reuse: bool) -> Iterator[list[int]]:
    """Yield the places of what is read together: of like length, and no more tokens than most."""
    batch: list[int] = []
    rows = 0
    for index in sorted(range(len(made)), key=lambda p: _length(made[p], reuse=reuse)):
        own = 1 if reuse else len(made[index].answers)
        if batch and (rows + own) * _length(made[index], reuse=reuse) > most:
            yield batch
            batch, rows = [], 0
        batch.append(index)
        rows += own
    if batch:
        yield batch


def _length(one: AnswerTokens, *, reuse: bool) -> int:
    """Return how long a row is: a question's with all of its answers, or an answer's."""
    if reuse:
        return len(one.context) + sum(len(answer) for answer in one.answers)
    return one.longest


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()


def _fingerprint(model: LanguageModel) -> str:
    """Return a digest of the weights' names, forms and some of their numbers.

    A training or an adapter changes every number of what it changes at all, so a few will do, and
    the digest of a large model takes no time.
    """
    import torch

    result = hashlib.sha256()
    for name, weight in sorted(model.network.state_dict().items()):
        flat = weight.detach().reshape(-1)
        last, count = max(len(flat) - 1, 0), min(_SAMPLED, len(flat))
        # float32 would round the places of more than 2^24 numbers, past the last one too.
        places = torch.linspace(0, last, count, dtype=torch.float64).long()
        sampled: torch.Tensor = flat[places.to(flat.device)].float().cpu()
        result.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        result.update(sampled.numpy().tobytes())
    tokenizer: Any = model.tokenizer
    result.update(tokenizer.backend_tokenizer.to_str().encode())
    return result.hexdigest()
