"""Tree attention: several texts in one call of a model, as a tree of their common prefixes.

A mask lets each token attend to its own path only (SpecInfer, Miao et al. 2024, section 4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from casewright.planner.decoding.kv_cache import KVCache

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel


def log_probabilities(
    model: LanguageModel, cache: KVCache, last: int, texts: Sequence[Sequence[int]]
) -> list[float]:
    """Return the model's log-probability of each text after the content of a cache.

    The call appends columns of the tree to the cache; reset its length afterwards.

    Args:
        cache: States of one row, without those of the last token.
        last: The token before the texts.
        texts: Texts in tokens, none of them empty.
    """
    import torch

    tokens, paths = [last], [[0]]
    children: dict[tuple[int, int], int] = {}
    nodes: list[list[int]] = []
    for text in texts:
        node, on_path = 0, [0]
        for token in text[:-1]:
            if (node, token) not in children:
                children[node, token] = len(tokens)
                paths.append([*paths[node], len(tokens)])
                tokens.append(token)
            node = children[node, token]
            on_path.append(node)
        nodes.append(on_path)
    mask = torch.zeros(len(tokens), cache.length + len(tokens), dtype=torch.bool)
    mask[:, : cache.length] = True
    for row, path in enumerate(paths):
        mask[row, [cache.length + column for column in path]] = True
    positions = [cache.length + len(path) - 1 for path in paths]
    with torch.no_grad():
        logits = model.network(
            input_ids=torch.tensor([tokens], device=model.device),
            position_ids=torch.tensor([positions], device=model.device),
            attention_mask=mask[None, None].to(model.device),
            past_key_values=cache,
            use_cache=True,
        ).logits[0]
    logs = logits.float().log_softmax(-1)
    return [float(logs[path, list(text)].sum()) for path, text in zip(nodes, texts, strict=True)]
