"""Encoders of sentence-transformers: any of its models, and any plain transformer checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import DependencyError, InputError, told
from casewright.stores.encoders.checked import checked_vectors
from casewright.stores.encoders.onnx_export import quiet

#: What AnglE models want before a question that is compared with passages: its ``Prompts.C``, the
#: cue of CBR-RAG's g (Wiratunga et al. 2024, section 4.2).
PASSAGE_CUE = "Represent this sentence for searching relevant passages: "
#: Model, by the last part of its name, to its cue.
CUES = {
    "angle-bert-base-uncased-nli-en-v1": PASSAGE_CUE,
    "uae-large-v1": PASSAGE_CUE,
}
#: Plain checkpoints that were trained with AnglE's ``cls_avg``: half the first token's vector, half
#: the mean of all (Li & Li 2023). Sentence-transformers would take the mean alone.
CLS_AVERAGE = {"angle-bert-base-uncased-nli-en-v1"}


class SentenceTransformersEncoder:
    """A model by name or folder; loaded from safetensors only, and without code of its own.

    A plain checkpoint (BERT, LegalBERT) embeds a text as the mean of its tokens. A model that
    declares prompts for queries and documents embeds each with its own, except one with a cue:
    that embeds texts as they are, so that nothing stands before a text twice.

    Attributes:
        name: Identifies the model.
        dimension: Length of a vector.
        cue: Text to put before a query that is compared with passages; empty for most models.

    Args:
        model: The model's name, or a folder that holds it.
        device: Where it runs, as torch names it.
        batch_size: Texts a model run.

    Raises:
        DependencyError: sentence-transformers is not installed.
        InputError: There is no such model, or it cannot be loaded.
    """

    def __init__(self, model: str, *, device: str = "cpu", batch_size: int = 32) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise DependencyError(
                f"Encoder {model!r} needs sentence-transformers. "
                "Run: pip install 'casewright[encoders]'"
            ) from error
        try:
            # What a download prints is progress; a folder's loading is none.
            with quiet() if Path(model).is_dir() else nullcontext():
                self._model = SentenceTransformer(
                    model,
                    device=device,
                    trust_remote_code=False,
                    model_kwargs={"use_safetensors": True},
                )
        except Exception as error:
            raise _refusal(model, error) from error
        key = Path(model).name.lower()
        self.name = f"sentence-transformers/{model}"
        self.cue = CUES.get(key, "")
        # Its new name, and the one that older versions know.
        ask = getattr(self._model, "get_embedding_dimension", None)
        self.dimension = int((ask or self._model.get_sentence_embedding_dimension)() or 0)
        self._batch_size = batch_size
        self._cls_average = key in CLS_AVERAGE

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as unit vectors, array (n, dimension); as documents, where that differs."""
        return self._encode(texts, "encode_document", ("document", "passage", "corpus"))

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n queries as unit vectors, array (n, dimension)."""
        return self._encode(texts, "encode_query", ("query",))

    def _encode(
        self, texts: Sequence[str], method: str, prompts: Sequence[str]
    ) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        known = {} if self.cue else self._model.prompts
        # Older versions know no other way than encode().
        encode = getattr(self._model, method, self._model.encode)
        settings: dict[str, Any] = {
            # Never none: the model's default prompt, made for one kind of text, would stand in.
            "prompt": next((known[name] for name in prompts if known.get(name)), ""),
            "batch_size": self._batch_size,
            "show_progress_bar": False,
        }
        if self._cls_average:
            tokens = encode(list(texts), output_value="token_embeddings", **settings)
            made = np.stack([((t[0] + t.mean(0)) / 2).float().cpu().numpy() for t in tokens])
            made /= np.linalg.norm(made, axis=1, keepdims=True)
        else:
            made = encode(list(texts), normalize_embeddings=True, **settings)
        return checked_vectors(made, len(texts), self.dimension, self.name)


def _refusal(model: str, error: Exception) -> InputError:
    """Return why the model was not loaded, and what to do."""
    folder = Path(model)
    if folder.is_dir():
        pickled = any(folder.rglob("pytorch_model*.bin")) and not any(folder.rglob("*.safetensors"))
    else:
        # The loader names the file that it sought and did not find.
        pickled = isinstance(error, OSError) and "safetensors" in str(error)
    if pickled:
        # The last part of the name stays: cue and pooling are known by it.
        target = f"safetensors/{folder.name}"
        return InputError(
            f"Encoder {model!r} has no model.safetensors. Its weights are a pickle (*.bin), which "
            "could run code when it is read, and is not loaded. Where you trust who made it, "
            f"convert it once, then give the folder {target!r}: python -c "
            '"from sentence_transformers import SentenceTransformer as S; '
            f"S({model!r}, device='cpu', model_kwargs={{'use_safetensors': False}})"
            f'.save({target!r})"'
        )
    return InputError(
        f"Encoder {model!r} could not be loaded: {told(error).rstrip('.')}. "
        "Give a sentence-transformers model's name or a folder that holds one."
    )
