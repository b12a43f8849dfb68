"""Transformers' ``generate``, as a plan is written with it: plain, or under the grammar's mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from casewright.planner.grammar import PlanMatcher
    from casewright.planner.language_model import LanguageModel, PromptTokens


class Generation:
    """Writes with ``generate``, greedily, with its dynamic cache.

    Args:
        model: Writes.
        most: Tokens that are written at most under a mask.
    """

    def __init__(self, model: LanguageModel, most: int = 1024) -> None:
        self._model = model
        self._most = most

    def head_states(self, head: Sequence[int]) -> Any:
        """Return a cache with the key/value states of a prompt's head."""
        import torch
        from transformers import DynamicCache

        cache = DynamicCache(config=self._model.network.config)
        network: Any = self._model.network
        with torch.no_grad():
            network(
                input_ids=self._tensor(head),
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
        return cache

    def plain(self, prompt: PromptTokens, tokens: int, head: Any = None) -> list[int]:
        """Write so many tokens, whichever they are.

        Args:
            prompt: What is read first.
            tokens: How many.
            head: States of the prompt's head, which ``generate`` adds to.
        """
        return self._written(prompt, head, min_new_tokens=tokens, max_new_tokens=tokens)

    def masked(
        self,
        prompt: PromptTokens,
        matcher: PlanMatcher,
        head: Any = None,
        choices: Sequence[int] | None = None,
    ) -> list[int]:
        """Write what a grammar admits, up to an end-of-sequence token, which is not returned.

        Args:
            prompt: What is read first.
            matcher: Of the grammar; it is used up.
            head: States of the prompt's head, which ``generate`` adds to.
            choices: What is chosen at each step, instead of the likeliest of what is allowed.
        """
        from transformers import LogitsProcessorList

        mask: Any = GrammarMask(matcher, choices)
        written = self._written(
            prompt, head, max_new_tokens=self._most, logits_processor=LogitsProcessorList([mask])
        )
        return [token for token in written if token not in self._model.ends]

    def _written(self, prompt: PromptTokens, head: Any, **settings: Any) -> list[int]:
        import torch

        ids = self._tensor((*prompt.head, *prompt.tail))
        network: Any = self._model.network
        made = network.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            use_cache=True,
            past_key_values=head,
            eos_token_id=list(self._model.ends),
            pad_token_id=self._model.ends[0],
            **settings,
        )
        written: list[int] = made[0, ids.shape[1] :].tolist()
        return written

    def _tensor(self, tokens: Sequence[int]) -> Any:
        import torch

        return torch.tensor([list(tokens)], device=self._model.device)


class GrammarMask:
    """A logits processor that leaves what the grammar admits, and of it what a script chooses.

    Args:
        matcher: Follows what is written.
        choices: The script; without it all that is admitted is left.
    """

    def __init__(self, matcher: PlanMatcher, choices: Sequence[int] | None = None) -> None:
        self._matcher = matcher
        self._choices: Iterator[int] | None = None if choices is None else iter(choices)
        self._started = False

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores of one row, those of tokens that may not come next at minus infinity.

        Args:
            input_ids: What was read and written; shape (1, length).
            scores: Shape (1, vocabulary).
        """
        import torch

        if self._started:
            self._matcher.consume(int(input_ids[0, -1]))
        self._started = True
        mask = torch.from_numpy(self._matcher.mask(scores.shape[-1])).to(scores.device)
        admitted = scores.masked_fill(~mask, float("-inf"))
        if self._choices is None:
            return admitted
        token = next(self._choices)
        chosen = torch.full_like(admitted, float("-inf"))
        chosen[0, token] = admitted[0, token]
        return chosen
