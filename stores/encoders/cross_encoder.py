"""A cross-encoder that finds the sentence of a passage that answers a question.

BERT reads the question and a passage together (Nogueira and Cho 2019, arXiv 1901.04085), and gives
each part of the passage a logit. The logits of all parts of all passages, and 0 for "no answer",
are trained as one softmax (Clark and Gardner 2018, arXiv 1710.10723, section 3.3).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError, one_line
from casewright.stores.encoders.encoder import Encoder
from casewright.stores.encoders.minilm import minilm_weights, packaged_minilm
from casewright.stores.encoders.onnx_graph import Bert, Weights, fitting_bits, in_batches

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: The packaged weights, and the suffix of the name of a matrix's scales.
WEIGHTS, SCALE = Path(__file__).parent / "weights" / "cross_encoder.safetensors", ".scale"
#: The weights of the logits of a passage and of its tokens.
HEADS = ("cls.weight", "cls.bias", "part.weight", "part.bias")
#: Maximum tokens of a question, of a heading, and of a passage's parts; the rest is not read.
MAX_QUESTION, MAX_HEADING, MAX_PARTS = 64, 32, 300
#: The logit of a part that is not read.
UNREAD = -20.0
#: Number of passages whose logits are kept.
MAX_KEPT = 256
#: The ids of BERT's special tokens.
CLS, SEP = 101, 102

Floats = NDArray[np.float32]
#: A heading, which may be empty, and the parts below it.
Passage = Sequence[str]


@dataclass(frozen=True, slots=True)
class Pair:
    """BERT's input for a question and a passage.

    Attributes:
        passage_start: Index of the passage's first token.
        boundaries: Index of the first token of each part, and the end of the last part. A part that
            is not read has no tokens.
    """

    ids: Sequence[int]
    passage_start: int
    boundaries: Sequence[int]


class CrossEncoder:
    """Fine-tuned MiniLM, by default the packaged one; loaded at the first use. Thread-safe.

    ``weights`` is a file of ``casewright finetune cross-encoder``.
    """

    def __init__(self, weights: Path = WEIGHTS) -> None:
        self._file = weights
        self._lock = threading.Lock()
        self._model: tuple[Bert, Weights] | None = None
        self._logits: OrderedDict[tuple[str, ...], Floats] = OrderedDict()

    def answer_logits(self, question: str, passages: Sequence[Passage]) -> list[Floats]:
        """Return, for each passage, the logits that its parts answer the question.

        The latest logits are kept, since a generator reads passages that a search has read.
        """
        keys = [(question, *passage) for passage in passages]
        with self._lock:
            logits = {key: self._logits[key] for key in keys if key in self._logits}
        unread = [key for key in dict.fromkeys(keys) if key not in logits]
        logits |= zip(unread, self._read(question, [key[1:] for key in unread]), strict=True)
        with self._lock:
            self._logits |= {key: logits[key] for key in keys}
            while len(self._logits) > MAX_KEPT:
                self._logits.popitem(last=False)
        return [logits[key] for key in keys]

    def _read(self, question: str, passages: Sequence[Passage]) -> list[Floats]:
        bert, heads = self._load()
        pairs = [encode_pair(question, passage) for passage in passages]
        logits: list[Floats] = [np.zeros(0, np.float32)] * len(passages)
        for batch in in_batches([len(pair.ids) for pair in pairs]):
            ids = np.zeros((len(batch), len(pairs[batch[-1]].ids)), np.int32)
            types, mask = np.zeros_like(ids), np.zeros_like(ids)
            for row, number in enumerate(batch):
                pair = pairs[number]
                ids[row, : len(pair.ids)], mask[row, : len(pair.ids)] = pair.ids, 1
                types[row, pair.passage_start : len(pair.ids)] = 1
            for number, states in zip(batch, bert(ids, types, mask), strict=True):
                passage_logit = states[0] @ heads["cls.weight"][0] + heads["cls.bias"][0]
                odds = np.exp(states @ heads["part.weight"][0] + heads["part.bias"][0])
                parts = [
                    passage_logit + np.log(odds[start:end].mean()) if start < end else UNREAD
                    for start, end in pairwise(pairs[number].boundaries)
                ]
                logits[number] = np.array(parts, np.float32)
        return logits

    def _load(self) -> tuple[Bert, Weights]:
        with self._lock:
            if self._model is None:
                weights = _read_weights(self._file)
                heads = {name: weights[name] for name in HEADS}
                self._model = Bert(weights, bits=fitting_bits()), heads
            return self._model


def answer_logits(
    encoder: Encoder | None, question: str, passages: Sequence[Passage]
) -> list[Floats] | None:
    """Return an encoder's ``answer_logits``, or ``None`` if it has none.

    Raise ``InputError`` if it returns other than a finite logit for each part.
    """
    method = getattr(encoder, "answer_logits", None)
    logits: list[Floats] | None = None if method is None else method(question, passages)
    if logits is not None and (
        [len(parts) for parts in logits] != [len(passage) - 1 for passage in passages]
        or not all(np.isfinite(parts).all() for parts in logits)
    ):
        raise InputError(
            f"The encoder {getattr(encoder, 'name', encoder)!r} must return a finite logit for "
            "each part of each passage. Correct its answer_logits."
        )
    return logits


def log_sum(logits: Sequence[float] | Floats) -> float:
    """Return the logarithm of the sum of the exponentials of logits; ``UNREAD`` without any."""
    return float(np.logaddexp.reduce([UNREAD, *logits]))


def encode_pair(question: str, passage: Passage) -> Pair:
    """Return a question and a passage as BERT's input."""
    heading, *parts = passage
    start = [CLS, *_ids(question)[:MAX_QUESTION], SEP]
    heading_ids = _ids(f"{heading}:")[:MAX_HEADING] if heading else []
    parts_ids = [_ids(part) for part in parts]
    ends = accumulate(map(len, parts_ids), initial=0)
    first = len(start) + len(heading_ids)
    read = [*chain.from_iterable(parts_ids)][:MAX_PARTS]
    boundaries = [first + min(end, MAX_PARTS) for end in ends]
    return Pair([*start, *heading_ids, *read, SEP], len(start), boundaries)


def save_weights(file: Path, weights: Mapping[str, Floats]) -> None:
    """Write trained weights; a matrix as eight-bit integers with a scale for each output."""
    from safetensors.numpy import save_file

    arrays: dict[str, NDArray[Any]] = {}
    for name, weight in weights.items():
        arrays[name] = weight
        if weight.ndim == 2 and len(weight) > 1:
            arrays[name + SCALE] = scale = np.abs(weight).max(1).clip(1e-12) / np.float32(127)
            arrays[name] = np.rint(weight / scale[:, None]).astype(np.int8)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(arrays, file)


def _ids(text: str) -> list[int]:
    ids: list[int] = _tokenizer().encode(text, add_special_tokens=False).ids
    return ids


@cache
def _tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _read_weights(file: Path) -> Weights:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        trained = load_file(file)
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"The cross-encoder's weights {file} cannot be read: {one_line(error)}. Give a file "
            "that casewright finetune cross-encoder wrote."
        ) from error
    scales = {name.removesuffix(SCALE): trained.pop(name) for name in [*trained] if SCALE in name}
    matrices = {name: trained[name] * scale[:, None] for name, scale in scales.items()}
    return {**minilm_weights(), **trained, **matrices}
