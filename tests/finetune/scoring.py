"""Helpers for tests of demonstrations: log-probabilities computed token by token, and a network
that repeats the tokens of its prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from casewright.finetune.demonstrations import AnswerPrompt, Likelihood
from casewright.finetune.demonstrations.judged import context_of
from casewright.planner.language_model import LanguageModel
from tests.support.tiny_mistral import byte_level_tokenizer


@torch.no_grad()
def sum_logprobs(model: LanguageModel, ids: Sequence[int], start: int) -> float:
    """Return the log-probability of the tokens from ``start`` on, in one pass without a cache."""
    inputs = torch.tensor([list(ids[:-1])])
    logprobs = model.network(input_ids=inputs, use_cache=False).logits[0].double().log_softmax(-1)
    return sum(float(logprobs[index - 1, ids[index]]) for index in range(start, len(ids)))


def answer_logprob(
    model: LanguageModel, prompt: AnswerPrompt, answer: str, *, begins: bool = True
) -> float:
    """Return an answer's log-probability in the default form; the whole text is tokenized at once.

    Args:
        prompt: The question with its demonstrations.
        answer: The answer.
        begins: Whether the tokenizer's beginning-of-text token precedes the text.
    """
    context = context_of(prompt.question, prompt.demonstrations)
    tokenizer: Any = model.tokenizer
    text = f"{context} {answer}"
    tokens = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    token_ends = [end for _, end in tokens["offset_mapping"]]
    start = next(index for index, end in enumerate(token_ends) if end > len(context))
    prefix = [tokenizer.bos_token_id] if begins else []
    return sum_logprobs(model, [*prefix, *tokens["input_ids"]], start + len(prefix))


def following_model(gain: float = 40.0) -> LanguageModel:
    """Return a Mistral whose logit of a token is proportional to the token's share of the prompt.

    The embedding of a token is one-hot. The only layer attends equally to all earlier tokens, so
    its output is their mean: the share of each token. The head multiplies it to give logits.
    """
    from transformers import MistralConfig, MistralForCausalLM

    tokenizer = byte_level_tokenizer(320)
    vocabulary = 320
    config = MistralConfig(
        vocab_size=vocabulary,
        hidden_size=2 * vocabulary,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=vocabulary,
        max_position_embeddings=4096,
        sliding_window=None,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    network = MistralForCausalLM(config)
    identity = torch.eye(vocabulary)
    zeros = torch.zeros_like(identity)
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
        layer = network.model.layers[0]
        for norm in (layer.input_layernorm, layer.post_attention_layernorm, network.model.norm):
            norm.weight.fill_(1.0)
        network.model.embed_tokens.weight.copy_(torch.cat([identity, zeros], dim=1))
        layer.self_attn.v_proj.weight.copy_(torch.cat([identity, zeros], dim=1))
        layer.self_attn.o_proj.weight.copy_(torch.cat([zeros, identity], dim=0))
        network.lm_head.weight.copy_(gain * torch.cat([zeros, identity], dim=1))
    return LanguageModel("following", network, tokenizer)


class CountingScorer:
    """A scorer that computes likelihoods from text lengths and records its prompts.

    Attributes:
        prompts: The scored prompts, in order.
        fails_after: The number of prompts after which it raises an error, or ``None``.
    """

    name = "counting"
    signature = "counting 1"

    def __init__(self, fails_after: int | None = None) -> None:
        self.prompts: list[AnswerPrompt] = []
        self.fails_after = fails_after

    def key(self, prompt: AnswerPrompt) -> str:
        """Return the whole prompt as text."""
        return repr(prompt)

    def tokens(self, prompts: Sequence[AnswerPrompt]) -> int:
        """Return the number of characters of the answers."""
        return sum(len(answer) for prompt in prompts for answer in prompt.answers)

    def score(self, prompts: Sequence[AnswerPrompt]) -> Iterator[tuple[int, list[Likelihood]]]:
        """Yield likelihoods from text lengths, in reverse order of the prompts."""
        for index in reversed(range(len(prompts))):
            if self.fails_after is not None and len(self.prompts) == self.fails_after:
                raise KeyboardInterrupt
            self.prompts.append(prompts[index])
            count = len(prompts[index].demonstrations)
            yield index, [Likelihood(-float(len(a)) - count, 1) for a in prompts[index].answers]
