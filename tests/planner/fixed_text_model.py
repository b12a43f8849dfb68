"""A model that writes a given text for any input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from casewright.planner import PlanRequest, render_prompt
from casewright.planner.language_model import LanguageModel
from tests.support.tiny_mistral import tiny_mistral


class FixedTextNetwork(torch.nn.Module):
    """A network whose most probable tokens after a prompt are those of a given text.

    Args:
        model: A model with the network.
        prompt_length: Number of tokens of the prompt.
        text: The text's tokens; the last one is repeated.
    """

    def __init__(self, model: LanguageModel, prompt_length: int, text: Sequence[int]) -> None:
        super().__init__()
        self.network = model.network
        self.config = model.network.config
        self.prompt_length, self.text = prompt_length, text

    def forward(self, **inputs: Any) -> Any:
        output = self.network(**inputs)
        keep = inputs.get("logits_to_keep", 0)
        positions = inputs["position_ids"][0]
        rows = positions[-keep:] if isinstance(keep, int) else positions[keep]
        for row, position in enumerate(rows):
            index = int(position) + 1 - self.prompt_length
            output.logits[:, row, self.text[max(0, min(index, len(self.text) - 1))]] = 1e9
        return output


def model_writing(text: str, request: PlanRequest, *, ends: bool = True) -> LanguageModel:
    """Return a model that writes a text, then an end token or its last token repeatedly."""
    model: Any = tiny_mistral(3)
    prompt = model.encode(render_prompt(request))
    tokens = [*model.encode_plan(text), *model.ends[: int(ends)]]
    model.network = FixedTextNetwork(model, len(prompt.head) + len(prompt.tail), tokens)
    return model  # type: ignore[no-any-return]
