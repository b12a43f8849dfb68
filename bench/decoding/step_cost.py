"""What a call of the network costs by how many tokens it reads.

A step that reads forced tokens together with the next one pays off where a call of a few tokens
costs about as much as a call of one, as long as memory is what it waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.bench.decoding.generate import Generation
from casewright.bench.decoding.turns import timed

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Tokens that a call reads.
WIDTHS = (1, 2, 4, 8, 32, 128)
ROUNDS = 5


def step_costs(model: LanguageModel, head: Sequence[int]) -> dict[int, float]:
    """Return the milliseconds of a call that reads so many tokens behind a head, at the median.

    Args:
        model: Whose network is called, as transformers calls it.
        head: Tokens that were read before.
    """
    import torch

    network: Any = model.network
    cache = Generation(model).head_states(head)
    times: dict[int, list[float]] = {width: [] for width in WIDTHS}
    for _ in range(ROUNDS):
        for width in WIDTHS:
            tokens = torch.full((1, width), head[-1], device=model.device)

            def read(tokens: Any = tokens) -> None:
                with torch.no_grad():
                    network(
                        input_ids=tokens, past_key_values=cache, use_cache=True, logits_to_keep=1
                    )

            times[width].append(timed(model.device, read)[1])
            cache.crop(-width)
    return {width: float(np.median(own)) for width, own in times.items()}
