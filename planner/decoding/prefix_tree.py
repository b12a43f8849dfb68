"""Tree attention: several texts in one call of a model, as a tree of their common prefixes.

A mask lets each token attend to its own path only (SpecInfer, Miao et al. 2024, section 4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.planner.decoding.kv_cache import KVCache
from casewright.planner.decoding.matcher import Matcher, greedy

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """Texts that a model has read behind one beginning.

    Attributes:
        children: Nodes by their parent and token; node 0 is the beginning's last token.
        logits: Those after each node, (nodes, vocabulary).
    """

    children: dict[tuple[int, int], int]
    logits: NDArray[np.float32]

    def log_probability(self, text: Sequence[int]) -> float:
        """Return the model's log-probability of one of the texts."""
        import torch

        path = [0]
        for token in text[:-1]:
            path.append(self.children[path[-1], token])
        logs = torch.from_numpy(self.logits[path]).log_softmax(-1)
        return float(logs[range(len(text)), list(text)].sum())

    def walk(self, matcher: Matcher, ends: Sequence[int]) -> list[int] | None:
        """Return what the model would write, without the end; ``None`` if it is not in the tree.

        Args:
            matcher: Of the text; it is advanced.
            ends: Tokens that end a text.
        """
        node: int | None = 0
        written: list[int] = []
        while node is not None:
            tokens = matcher.forced()
            if not tokens:
                if matcher.finished:
                    return written
                tokens = [greedy(self.logits[node], matcher)]
                if tokens[0] in ends:
                    return written
                matcher.consume(tokens[0])
            for token in tokens:
                node = None if node is None else self.children.get((node, token))
            written += tokens
        return written if matcher.finished else None


def read_tree(
    model: LanguageModel, cache: KVCache, before: Sequence[int], texts: Sequence[Sequence[int]]
) -> PrefixTree:
    """Return the tree of texts that follow the content of a cache and some more tokens.

    The call appends columns of the tree to the cache; reset its length afterwards.

    Args:
        cache: States of one row.
        before: Tokens that all texts follow; at least one.
        texts: Texts in tokens, none of them empty. Their last tokens are not read.
    """
    import torch

    children: dict[tuple[int, int], int] = {}
    tokens, paths = [before[-1]], [[0]]
    for text in texts:
        node = 0
        for token in text[:-1]:
            if (node, token) not in children:
                children[node, token] = len(tokens)
                paths.append([*paths[node], len(tokens)])
                tokens.append(token)
            node = children[node, token]
    start, common = cache.length, len(before) - 1
    size = common + len(tokens)
    mask = torch.zeros(size, start + size, dtype=torch.bool)
    mask[:, :start] = True
    mask[:common, start : start + common] = torch.ones(common, common, dtype=torch.bool).tril()
    mask[common:, start : start + common] = True
    for row, path in enumerate(paths, common):
        mask[row, [start + common + node for node in path]] = True
    positions = [*range(common), *(common + len(path) - 1 for path in paths)]
    with torch.no_grad():
        logits = model.network(
            input_ids=torch.tensor([[*before[:-1], *tokens]], device=model.device),
            position_ids=torch.tensor([positions], device=model.device) + start,
            attention_mask=mask[None, None].to(model.device),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=len(tokens),
        ).logits[0]
    return PrefixTree(children, logits.float().cpu().numpy())
