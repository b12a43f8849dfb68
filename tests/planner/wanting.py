"""A model that writes one text, whatever its network computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from casewright.planner import PlanRequest, render_prompt
from casewright.planner.language_model import LanguageModel
from tests.support.tiny_mistral import tiny_mistral


class Wanting(torch.nn.Module):
    """Computes what its network does, and then wants the tokens of one text behind a prompt.

    Args:
        model: Whose network.
        prompt: Tokens that it is given to read before.
        wanted: Tokens; the last of them again and again.
    """

    def __init__(self, model: LanguageModel, prompt: int, wanted: Sequence[int]) -> None:
        super().__init__()
        self.network = model.network
        self.config = model.network.config
        self.prompt, self.wanted = prompt, wanted

    def forward(self, **given: Any) -> Any:
        made = self.network(**given)
        kept = given.get("logits_to_keep", 0)
        positions = given["position_ids"][0]
        read = positions[-kept:] if isinstance(kept, int) else positions[kept]
        for row, position in enumerate(read):
            place = int(position) + 1 - self.prompt
            made.logits[:, row, self.wanted[max(0, min(place, len(self.wanted) - 1))]] = 1e9
        return made


def model_writing(text: str, request: PlanRequest, *, ends: bool = True) -> LanguageModel:
    """Return a model that writes this text, and then its end or the last token for ever."""
    model: Any = tiny_mistral(3)
    prompt = model.encode(render_prompt(request))
    wanted = [*model.encode_plan(text), *model.ends[: int(ends)]]
    model.network = Wanting(model, len(prompt.head) + len(prompt.tail), wanted)
    return model  # type: ignore[no-any-return]
