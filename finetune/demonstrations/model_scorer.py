"""Scores answers by their probability under a causal language model of transformers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.finetune.demonstrations.answer_tokens import AnswerTokenizer, AnswerTokens
from casewright.finetune.demonstrations.judged import AnswerPrompt, Likelihood, context_of
from casewright.planner.shipped import SHIPPED, adapter_folder
from casewright.stores.select import check_counts

if TYPE_CHECKING:
    import torch

    from casewright.finetune.demonstrations.answer_network import AnswerNetwork
    from casewright.planner.language_model import LanguageModel

#: Default maximum number of tokens of a batch, with padding; more than 1,024 exceed a CPU's caches.
MAX_CPU_TOKENS, MAX_GPU_TOKENS = 1024, 16_384
#: Number of prompts that are sorted by length at a time. A batch has prompts of similar lengths.
WINDOW_SIZE = 256
#: Number of values of each weight tensor in the fingerprint. A sample suffices, because training
#: changes tensors as a whole.
_SAMPLE_SIZE = 64
#: Optional prefix of a local model's name, as in the names of planners.
_LOCAL_PREFIX = "local:"


class ModelScorer:
    """Scores answers with any causal language model of transformers.

    Most networks read a prompt's context once, and reuse the context's KV cache for every answer;
    see ``AnswerNetwork``. A batch has at most ``batch_tokens`` tokens with padding, by default
    1,024 on a CPU and 16,384 elsewhere; a longer prompt is a batch of its own. ``fingerprint``
    is a digest of the tokenizer, and of sampled values of each weight tensor.
    """

    def __init__(self, model: LanguageModel, *, batch_tokens: int | None = None) -> None:
        default = MAX_CPU_TOKENS if model.device.type == "cpu" else MAX_GPU_TOKENS
        self._batch_tokens = default if batch_tokens is None else batch_tokens
        check_counts(1, batch_tokens=self._batch_tokens)
        self.name = model.name
        self.fingerprint = _fingerprint(model)
        self.signature = f"{self.name} {self.fingerprint[:12]}"
        self._model = model
        self._tokenizer = AnswerTokenizer(model.tokenizer)

    def key(self, prompt: AnswerPrompt) -> str:
        """Return a digest of the weights, the context and the answers."""
        context = context_of(prompt.question, prompt.demonstrations)
        parts = [self.fingerprint, context, *prompt.answers]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def tokens(self, prompts: Sequence[AnswerPrompt]) -> int:
        """Return the number of tokens that the network reads, without padding."""
        return sum(self._tokenize(prompt).token_count for prompt in prompts)

    def score(self, prompts: Sequence[AnswerPrompt]) -> Iterator[tuple[int, Sequence[Likelihood]]]:
        """Yield each prompt's index and its answers' likelihoods; see ``AnswerScorer``."""
        for start in range(0, len(prompts), WINDOW_SIZE):
            window = [self._tokenize(prompt) for prompt in prompts[start : start + WINDOW_SIZE]]
            for batch in self._batches(window):
                output = self._network.score_together([window[index] for index in batch])
                for index, answer_logprobs in zip(batch, output, strict=True):
                    # An answer's list may begin with tokens of the context; see ``AnswerTokens``.
                    counts = window[index].context_token_counts
                    likelihoods = [
                        Likelihood(sum(logprobs[count:]), len(logprobs) - count)
                        for logprobs, count in zip(answer_logprobs, counts, strict=True)
                    ]
                    yield start + index, likelihoods

    @cached_property
    def _network(self) -> AnswerNetwork:
        from casewright.finetune.demonstrations.answer_network import AnswerNetwork

        return AnswerNetwork(self._model)

    def _tokenize(self, prompt: AnswerPrompt) -> AnswerTokens:
        if not prompt.answers:
            raise InputError(f"The question {prompt.question!r:.200} has no answers to score.")
        context = context_of(prompt.question, prompt.demonstrations)
        tokens = self._tokenizer.tokenize(context, [f" {answer}" for answer in prompt.answers])
        limit = self._model.context_length
        if limit is not None and tokens.max_length > limit:
            raise InputError(
                f"A prompt with its answer has {tokens.max_length} tokens, and {self.name!r} reads "
                f"{limit}. Show fewer demonstrations, or leave out long cases."
            )
        return tokens

    def _batches(self, prompts: Sequence[AnswerTokens]) -> Iterator[list[int]]:
        """Yield the indices of each batch's prompts, which have similar lengths."""
        batch: list[int] = []
        for index in sorted(range(len(prompts)), key=lambda index: prompts[index].token_count):
            if batch and (len(batch) + 1) * prompts[index].token_count > self._batch_tokens:
                yield batch
                batch = []
            batch.append(index)
        if batch:
            yield batch


def _fingerprint(model: LanguageModel) -> str:
    """Return a digest of the tokenizer, and of sampled values of each weight tensor."""
    import torch

    digest = hashlib.sha256()
    for name, weight in sorted(model.network.state_dict().items()):
        values = weight.detach().reshape(-1)
        last, count = max(len(values) - 1, 0), min(_SAMPLE_SIZE, len(values))
        # float32 would round indices above 2^24, and so might exceed the last index.
        indices = torch.linspace(0, last, count, dtype=torch.float64).long()
        sampled: torch.Tensor = values[indices.to(values.device)].float().cpu()
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        digest.update(sampled.numpy().tobytes())
    tokenizer: Any = model.tokenizer
    digest.update(tokenizer.backend_tokenizer.to_str().encode())
    return digest.hexdigest()


def open_scorer(
    name: str, *, adapter: str | None = None, device: str | None = None, dtype: str | None = None
) -> ModelScorer:
    """Load a local language model, and return a scorer of answers with this model.

    Args:
        name: ``mistral`` for the model that ships; or a causal language model's folder or name at
            Hugging Face.
        adapter: A PEFT adapter. For ``device`` and ``dtype``, see ``load_language_model``.

    Raises:
        InputError: There is no such model, or it is a chat model.
        DependencyError: A required package is not installed.
    """
    if ":" in name and not name.startswith(_LOCAL_PREFIX) and not Path(name).is_dir():
        raise InputError(
            f"{name!r} is a chat model: its API returns no probabilities of given answers. Give a "
            "local model."
        )
    from casewright.planner.language_model import load_language_model

    is_shipped = name == SHIPPED
    source = adapter_folder() if is_shipped else name.removeprefix(_LOCAL_PREFIX)
    options = {"adapter": adapter, "device": device, "dtype": dtype}
    return ModelScorer(load_language_model(source, **options, title=name if is_shipped else None))
