"""A model that writes one text, whatever its network computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from casewright.planner import PlanRequest, render_prompt
from casewright.planner.language_model import LanguageModel
from tests.support.tiny_mistral import tiny_mistral


class Wanting(torch.nn.Module):
    """A network whose likeliest tokens behind a prompt are those of one text.

    Args:
        model: A model with the network.
        prompt: Number of the prompt's tokens.
        wanted: The text's tokens; the last one is repeated.
    """

    def __init__(self, model: LanguageModel, prompt: int, wanted: Sequence[int]) -> None:
        super().__init__()
        self.network = model.network
        self.config = model.network.config
        self.prompt, self.wanted = prompt, wanted

    def forward(self, **inputs: Any) -> Any:
        output = self.network(**inputs)
        keep = inputs.get("logits_to_keep", 0)
        positions = inputs["position_ids"][0]
        rows = positions[-keep:] if isinstance(keep, int) else positions[keep]
        for row, position in enumerate(rows):
            index = int(position) + 1 - self.prompt
            output.logits[:, row, self.wanted[max(0, min(index, len(self.wanted) - 1))]] = 1e9
        return output


def model_writing(text: str, request: PlanRequest, *, ends: bool = True) -> LanguageModel:
    """Return a model that writes this text, and then its end or the last token again and again."""
    model: Any = tiny_mistral(3)
    prompt = model.encode(render_prompt(request))
    wanted = [*model.encode_plan(text), *model.ends[: int(ends)]]
    model.network = Wanting(model, len(prompt.head) + len(prompt.tail), wanted)
    return model  # type: ignore[no-any-return]
