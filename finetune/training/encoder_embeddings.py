"""Token vectors of a new model that start from what a trained encoder knows of words.

A small model cannot learn from a few thousand questions that a kettle is a thing one buys, or that
`kettle` and ` Kettle` are one word. The packaged encoder's word embeddings say so.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: Standard deviation of the numbers of a vector, as Mistral's initial ones roughly are; and of
#: what is added to each, so that two tokens with one meaning are still two.
SPREAD, NOISE = 0.03, 0.006


def encoder_embeddings(tokenizer: Any, hidden: int, encoder: Path, seed: int = 0) -> torch.Tensor:
    """Return vectors for a tokenizer's tokens, (tokens, hidden).

    Each is the mean of the encoder's word embeddings for the token's text, on their first principal
    components. A token without words of the encoder has random numbers.

    Args:
        tokenizer: Of the new model.
        hidden: Numbers of a vector; what the encoder has fewer of, is random.
        encoder: Folder of a transformers model with a word embedding.
        seed: Of what is random.
    """
    import torch

    transformers: Any = import_module("transformers")
    words = _word_embeddings(encoder)
    pieces = transformers.AutoTokenizer.from_pretrained(encoder)
    texts = [tokenizer.decode([token]).replace("_", " ") for token in range(len(tokenizer))]
    known = torch.zeros(len(texts), words.shape[1])
    found = torch.zeros(len(texts), dtype=torch.bool)
    for token, ids in enumerate(pieces(texts, add_special_tokens=False)["input_ids"]):
        if ids := [one for one in ids if one != pieces.unk_token_id]:
            known[token] = words[ids].mean(0)
            found[token] = True
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(len(texts), hidden, generator=generator) * SPREAD
    if int(found.sum()) > 1:
        _, _, axes = torch.linalg.svd(known[found], full_matrices=False)
        part = known @ axes[:hidden].T
        vectors[found, : part.shape[1]] = part[found] / part[found].std() * SPREAD
    return vectors + torch.randn(vectors.shape, generator=generator) * NOISE


def _word_embeddings(encoder: Path) -> torch.Tensor:
    """Return the encoder's word embeddings, (words, dimension), their mean taken off."""
    import torch

    transformers: Any = import_module("transformers")
    network = transformers.AutoModel.from_pretrained(encoder, dtype=torch.float32)
    words: torch.Tensor = network.get_input_embeddings().weight.detach()
    return words - words.mean(0)
