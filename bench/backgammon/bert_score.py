"""BERTScore (Zhang et al. 2020, section 3): texts compared token by token, each with its nearest.

The paper's scores are of larger models; here the tokens are embedded by the packaged MiniLM, whose
scores are not to be compared with those of another model. No inverse document frequency, no
rescaling.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.stores.encoders.minilm import packaged_minilm
from casewright.stores.encoders.onnx_export import quiet

if TYPE_CHECKING:
    from torch import Tensor

#: Texts that run through the model together, and tokens of one at most.
BATCH, TOKENS = 32, 256


def bert_scores(answers: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
    """Return the F1 of BERTScore of n answers against their references, array (n), -1 to 1.

    Raises:
        DependencyError: The packaged MiniLM is not installed.
    """
    given, wanted = _tokens(answers), _tokens(references)
    found = []
    for own, other in zip(given, wanted, strict=True):
        if not len(own) or not len(other):
            found.append(0.0)
            continue
        likeness = own @ other.T
        precision, recall = likeness.max(axis=1).mean(), likeness.max(axis=0).mean()
        both = precision + recall
        found.append(2 * precision * recall / both if both > 0 else 0.0)
    return np.array(found)


def _tokens(texts: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return each text's tokens as vectors of length 1, array (tokens, units) each."""
    import torch

    tokenizer, model = _loaded()
    found: list[NDArray[np.float64]] = []
    for start in range(0, len(texts), BATCH):
        batch = tokenizer(
            list(texts[start : start + BATCH]),
            return_tensors="pt",
            padding=True,
            truncation=True,
            max_length=TOKENS,
        )
        with torch.inference_mode():
            vectors: Tensor = model(**batch).last_hidden_state
        units = torch.nn.functional.normalize(vectors, dim=2).numpy().astype(np.float64)
        lengths = batch["attention_mask"].sum(dim=1).tolist()
        # The first and the last token are the model's own marks.
        found += [row[1 : length - 1] for row, length in zip(units, lengths, strict=True)]
    return found


@cache
def _loaded() -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    folder = packaged_minilm()
    with quiet():
        return AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
