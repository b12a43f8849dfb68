"""Helpers for tests of demonstrations: log-probabilities one token after the other, and a network
whose answers follow what it was shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from casewright.finetune.demonstrations import AnswerPrompt, Likelihood
from casewright.finetune.demonstrations.judged import context_of
from casewright.planner.language_model import LanguageModel
from tests.support.tiny_mistral import byte_level_tokenizer


@torch.no_grad()
def by_hand(model: LanguageModel, ids: Sequence[int], start: int) -> float:
    """Return the log-probability of the tokens from ``start`` on, alone and without any cache."""
    whole = torch.tensor([list(ids[:-1])])
    logprobs = model.network(input_ids=whole, use_cache=False).logits[0].double().log_softmax(-1)
    return sum(float(logprobs[place - 1, ids[place]]) for place in range(start, len(ids)))


def answer_by_hand(
    model: LanguageModel, asked: AnswerPrompt, answer: str, *, begins: bool = True
) -> float:
    """Return an answer's log-probability in the default form, its tokens made of the whole text.

    Args:
        model: The model.
        asked: The question.
        answer: The answer.
        begins: Whether a token that begins a text stands before it.
    """
    context = context_of(asked.question, asked.demonstrations)
    tokenizer: Any = model.tokenizer
    made = tokenizer(f"{context} {answer}", add_special_tokens=False, return_offsets_mapping=True)
    ends = [end for _, end in made["offset_mapping"]]
    start = next(place for place, end in enumerate(ends) if end > len(context))
    before = [tokenizer.bos_token_id] if begins else []
    return by_hand(model, [*before, *made["input_ids"]], start + len(before))


def following_model(gain: float = 40.0) -> LanguageModel:
    """Return a Mistral that expects each token as often as it stood before.

    A token's embedding is one number of its own. One layer attends to all tokens before alike, so
    that it brings how often each stood there, which the head turns into logits.
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
    one = torch.eye(vocabulary)
    none = torch.zeros_like(one)
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
        layer = network.model.layers[0]
        for norm in (layer.input_layernorm, layer.post_attention_layernorm, network.model.norm):
            norm.weight.fill_(1.0)
        network.model.embed_tokens.weight.copy_(torch.cat([one, none], dim=1))
        layer.self_attn.v_proj.weight.copy_(torch.cat([one, none], dim=1))
        layer.self_attn.o_proj.weight.copy_(torch.cat([none, one], dim=0))
        network.lm_head.weight.copy_(gain * torch.cat([none, one], dim=1))
    return LanguageModel("following", network, tokenizer)


class CountingScorer:
    """A scorer whose likelihoods are made of the texts, and that remembers what it was asked.

    Attributes:
        asked: Each question that it was asked, in order.
        fails_after: After so many it fails, if it is given.
    """

    name = "counting"
    signature = "counting 1"

    def __init__(self, fails_after: int | None = None) -> None:
        self.asked: list[AnswerPrompt] = []
        self.fails_after = fails_after

    def key(self, asked: AnswerPrompt) -> str:
        """Return all of the question."""
        return repr(asked)

    def tokens(self, asked: Sequence[AnswerPrompt]) -> int:
        """Return how many characters there are."""
        return sum(len(answer) for one in asked for answer in one.answers)

    def score(self, asked: Sequence[AnswerPrompt]) -> Iterator[tuple[int, list[Likelihood]]]:
        """Yield made-up numbers, the last question first."""
        for place in reversed(range(len(asked))):
            if self.fails_after is not None and len(self.asked) == self.fails_after:
                raise KeyboardInterrupt
            self.asked.append(asked[place])
            shown = len(asked[place].demonstrations)
            yield place, [Likelihood(-float(len(a)) - shown, 1) for a in asked[place].answers]
