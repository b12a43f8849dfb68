"""Encodes texts with sentence-transformers: its own models or plain transformer checkpoints."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import DependencyError, InputError, one_line
from casewright.stores.encoders.encoder import checked_vectors
from casewright.stores.encoders.onnx_export import quiet

#: AnglE's instruction before a query that is compared with passages (``Prompts.C``). CBR-RAG's
#: inter-embedding uses this cue (Wiratunga et al. 2024, section 4.2).
PASSAGE_CUE = "Represent this sentence for searching relevant passages: "
#: The cue of a model, by the last part of the model's name in lower case.
CUES = {"angle-bert-base-uncased-nli-en-v1": PASSAGE_CUE, "uae-large-v1": PASSAGE_CUE}
#: Plain checkpoints with AnglE's pooling ``cls_avg`` (Li & Li 2023), the mean of two vectors: the
#: first token's, and the mean of all tokens. Sentence-transformers would take only the second.
CLS_AVERAGE_MODELS = {"angle-bert-base-uncased-nli-en-v1"}


class SentenceTransformersEncoder:
    """An encoder by a model's name or folder, loaded from safetensors only, without remote code.

    A plain checkpoint (BERT, LegalBERT) embeds a text as the mean of its tokens' vectors. A model
    with a ``cue`` (the text before a query that is compared with passages) uses no prompts; other
    models use their own prompts. ``device`` is for torch; ``batch_size`` is a number of texts.

    Raises:
        DependencyError: sentence-transformers is not installed.
        InputError: The model does not exist, or cannot be loaded.
    """

    def __init__(self, model: str, *, device: str = "cpu", batch_size: int = 32) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            problem = f"Encoder {model!r} needs sentence-transformers."
            raise DependencyError(f"{problem} Run: pip install 'casewright[encoders]'") from error
        try:
            # A download shows its progress; loading from a folder prints nothing useful.
            with quiet() if Path(model).is_dir() else nullcontext():
                model_settings = {"use_safetensors": True}
                self._model = SentenceTransformer(
                    model, device=device, trust_remote_code=False, model_kwargs=model_settings
                )
        except Exception as error:
            raise _load_error(model, error) from error
        short_name = Path(model).name.lower()
        self.name = f"sentence-transformers/{model}"
        if (file := Path(model, "model.safetensors")).is_file():
            # A model that was trained anew in the same folder needs a different name.
            self.name += f"@{zlib.crc32(file.read_bytes()):08x}"
        self.cue = CUES.get(short_name, "")
        self.dimension = int(self._model.get_embedding_dimension() or 0)
        self._batch_size = batch_size
        self._cls_average = short_name in CLS_AVERAGE_MODELS

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n documents as unit vectors, array (n, dimension)."""
        return self._encode(texts, "encode_document", ("document", "passage", "corpus"))

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n queries as unit vectors, array (n, dimension)."""
        return self._encode(texts, "encode_query", ("query",))

    def _encode(
        self, texts: Sequence[str], method: str, prompt_names: Sequence[str]
    ) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        prompts = {} if self.cue else self._model.prompts
        encode = getattr(self._model, method)
        settings: dict[str, Any] = {
            # Without a prompt, an empty text: ``None`` would mean the model's default prompt.
            "prompt": next((prompts[name] for name in prompt_names if prompts.get(name)), ""),
            "batch_size": self._batch_size,
            "show_progress_bar": False,
        }
        if self._cls_average:
            tokens = encode(list(texts), output_value="token_embeddings", **settings)
            vectors = np.stack([((t[0] + t.mean(0)) / 2).float().cpu().numpy() for t in tokens])
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        else:
            vectors = encode(list(texts), normalize_embeddings=True, **settings)
        return checked_vectors(vectors, len(texts), self.dimension, self.name)


def _load_error(model: str, error: Exception) -> InputError:
    folder = Path(model)
    if folder.is_dir():
        has_pickle = any(folder.rglob("pytorch_model*.bin"))
        is_pickled = has_pickle and not any(folder.rglob("*.safetensors"))
    else:
        # transformers' error names the missing file.
        is_pickled = isinstance(error, OSError) and "safetensors" in str(error)
    if is_pickled:
        # Keep the last part of the name, on which the cue and the pooling depend.
        target = f"safetensors/{folder.name}"
        return InputError(
            f"Encoder {model!r} has no model.safetensors. Its weights are a pickle (*.bin), which "
            "could run code when it is read, and is not loaded. If you trust its author, "
            f"convert it once, then give the folder {target!r}: python -c "
            '"from sentence_transformers import SentenceTransformer as S; '
            f"S({model!r}, device='cpu', model_kwargs={{'use_safetensors': False}})"
            f'.save({target!r})"'
        )
    problem = f"Encoder {model!r} could not be loaded: {one_line(error).rstrip('.')}."
    advice = "Give a sentence-transformers model's name or a folder that holds one."
    return InputError(f"{problem} {advice}")
