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
    """Texts (sequences of tokens) that a model has read after the same tokens.

    Attributes:
        children: Index of a token's node, by the parent node's index and the token. Node 0 is the
            last token before the texts.
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
        """Return the tokens of the greedily decoded text; ``None`` if the text leaves the tree.

        Args:
            matcher: Matcher of the text; it is advanced.
            ends: End tokens, which the result does not contain.
        """
        node: int | None = 0
        text: list[int] = []
        while node is not None:
            tokens = matcher.consume_forced()
            if not tokens:
                if matcher.finished:
                    return text
                tokens = [greedy(self.logits[node], matcher)]
                if tokens[0] in ends:
                    return text
                matcher.consume(tokens[0])
            for token in tokens:
                node = None if node is None else self.children.get((node, token))
            text += tokens
        return text if matcher.finished else None


def read_tree(
    model: LanguageModel, cache: KVCache, unread: Sequence[int], texts: Sequence[Sequence[int]]
) -> PrefixTree:
    """Return the tree of texts, which follow the cache's content and the ``unread`` tokens.

    The call appends the tree's columns to the cache; reset the cache's length afterwards.

    Args:
        cache: States of one row.
        unread: Tokens between the cache's content and the texts; at least one.
        texts: The texts' tokens; each text has at least one. A text's last token is not read.
    """
    children: dict[tuple[int, int], int] = {}
    node_tokens, paths = [unread[-1]], [[0]]
    for text in texts:
        node = 0
        for token in text[:-1]:
            if (node, token) not in children:
                children[node, token] = len(node_tokens)
                paths.append([*paths[node], len(node_tokens)])
                node_tokens.append(token)
            node = children[node, token]
    cached_count, common_count = cache.length, len(unread) - 1
    new_count, tree_start = common_count + len(node_tokens), cached_count + common_count
    # The common tokens are the unread tokens before node 0. A token attends to the cache, to the
    # common tokens before it, and to its path.
    mask = torch.zeros(new_count, cached_count + new_count, dtype=torch.bool)
    mask[:, :cached_count] = True
    mask[:, cached_count:tree_start] = torch.ones(new_count, common_count, dtype=torch.bool).tril()
    for row, path in enumerate(paths, common_count):
        mask[row, [tree_start + node for node in path]] = True
    positions = [*range(common_count), *(common_count + len(path) - 1 for path in paths)]
    logits = forward(
        model,
        cache,
        torch.tensor([[*unread[:-1], *node_tokens]], device=model.device),
        torch.tensor([positions], device=model.device) + cached_count,
        attention_mask=mask[None, None].to(model.device),
        logits_to_keep=len(node_tokens),
    )
    return PrefixTree(children, to_numpy(logits[0]))
