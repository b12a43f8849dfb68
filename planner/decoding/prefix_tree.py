"""Tree attention: a model reads several texts in one call, as a tree of their common prefixes.

A mask lets each token attend to its own path only (SpecInfer, Miao et al. 2024, section 4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from casewright.planner.decoding.kv_cache import KVCache
from casewright.planner.decoding.matcher import Matcher, greedy
from casewright.planner.decoding.steps import forward, to_numpy
from casewright.planner.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """Texts that a model has read after the same tokens.

    Attributes:
        children: (Parent node, token) to the index of the node for this token; node 0 is the last
            token before the texts.
        logits: Logits after each node, (nodes, vocabulary).
    """

    children: dict[tuple[int, int], int]
    logits: NDArray[np.float32]

    def log_probability(self, text: Sequence[int]) -> float:
        """Return the model's log-probability of one of the texts."""
        path = [0]
        for token in text[:-1]:
            path.append(self.children[path[-1], token])
        log_probabilities = torch.from_numpy(self.logits[path]).log_softmax(-1)
        return float(log_probabilities[range(len(text)), list(text)].sum())

    def greedy_tokens(self, matcher: Matcher, ends: Sequence[int]) -> list[int] | None:
        """Return the greedily decoded text, in tokens; ``None`` if it is not within the tree.

        Args:
            matcher: Matcher of the text; it is advanced.
            ends: Tokens that end a text; the result has none.
        """
        node: int | None = 0
        written: list[int] = []
        while node is not None:
            tokens = matcher.consume_forced()
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
    model: LanguageModel, cache: KVCache, unread: Sequence[int], texts: Sequence[Sequence[int]]
) -> PrefixTree:
    """Return the tree of texts that follow the cache's content and the ``unread`` tokens.

    The call appends columns of the tree to the cache; reset its length afterwards.

    Args:
        cache: States of one row.
        unread: Tokens before all texts; at least one.
        texts: Texts in tokens, none of them empty. Their last tokens are not read.
    """
    children: dict[tuple[int, int], int] = {}
    nodes, paths = [unread[-1]], [[0]]
    for text in texts:
        node = 0
        for token in text[:-1]:
            if (node, token) not in children:
                children[node, token] = len(nodes)
                paths.append([*paths[node], len(nodes)])
                nodes.append(token)
            node = children[node, token]
    n_cached, n_common = cache.length, len(unread) - 1
    n_new = n_common + len(nodes)
    # Each token attends to the cache, to the common tokens before it, and to its path.
    mask = torch.zeros(n_new, n_cached + n_new, dtype=torch.bool)
    mask[:, :n_cached] = True
    mask[:, n_cached : n_cached + n_common] = torch.ones(n_new, n_common, dtype=torch.bool).tril()
    for row, path in enumerate(paths, n_common):
        mask[row, [n_cached + n_common + node for node in path]] = True
    positions = [*range(n_common), *(n_common + len(path) - 1 for path in paths)]
    logits = forward(
        model,
        cache,
        torch.tensor([[*unread[:-1], *nodes]], device=model.device),
        torch.tensor([positions], device=model.device) + n_cached,
        attention_mask=mask[None, None].to(model.device),
        logits_to_keep=len(nodes),
    )
    return PrefixTree(children, to_numpy(logits[0]))
