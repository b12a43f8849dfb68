"""A cross-encoder that finds which part of a passage, such as a sentence, answers a question.

MPNet reads the question and a passage together (as BERT does in Nogueira and Cho 2019, arXiv
1901.04085), and gives each part of the passage a logit. In training, the passage's search score is
added to the logit, and one softmax is taken over the parts of all passages and "no answer", which
has the logit 0 (Clark and Gardner 2018, arXiv 1710.10723, section 3.3).
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from casewright.errors import InputError
from casewright.stores.encoders.encoder import Encoder
from casewright.stores.encoders.minilm import packaged_minilm
from casewright.stores.encoders.mpnet import END, ID_OFFSET, START, MPNet
from casewright.stores.encoders.mpnet_weights import PASSAGE, TOKEN, read_weights
from casewright.stores.encoders.onnx_graph import Floats, bits_for_cpu

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WEIGHTS = Path(__file__).parent / "weights" / "cross_encoder.safetensors"
#: Maximum tokens of a question, of a heading, and of all parts; further tokens are not read.
MAX_QUESTION_TOKENS, MAX_HEADING_TOKENS, MAX_PARTS_TOKENS = 64, 32, 300
#: Maximum number of model runs for one passage.
MAX_WINDOWS = 8
#: The logit of a part that is not read.
UNREAD_LOGIT = -20.0
#: A text of which n tokens are read is first cut to n times this number of characters.
MAX_TOKEN_CHARACTERS = 20
MAX_CACHED_PASSAGES = 256

#: Weights and bias of two affine maps: of the first token's state to the passage's logit, and of
#: each token's state to the token's logit.
AffineMaps = Sequence[tuple[Floats, np.float32]]
#: A heading, which may be empty, and the parts below it.
Passage = Sequence[str]


@dataclass(frozen=True, slots=True)
class Pair:
    """MPNet's input for a question and a passage.

    Attributes:
        ids: The token ids.
        boundaries: Index of the first token of each part, and the end of the last part. A part that
            is not read has no tokens.
    """

    ids: Sequence[int]
    boundaries: Sequence[int]


class CrossEncoder:
    """A fine-tuned MPNet, by default the packaged one; loaded at the first use. Thread-safe.

    ``weights`` is a file that ``casewright finetune cross-encoder`` wrote.
    """

    def __init__(self, weights: Path = WEIGHTS) -> None:
        self._file = weights
        self._lock, self._model_lock = threading.Lock(), threading.Lock()
        self._model: tuple[MPNet, AffineMaps] | None = None
        self._logits: OrderedDict[bytes, Floats] = OrderedDict()

    def answer_logits(self, question: str, passages: Sequence[Passage]) -> list[Floats]:
        """Return for each passage an array (parts,): each part's logit, in nats, as the answer.

        Once the search score is added (see ``PassageSearch``), the logit of "no answer" is 0. The
        latest logits are cached, since a generator asks again for passages that a search has read.
        """
        hashes = [hashlib.sha256(repr((question, *p)).encode("utf-8", "replace")) for p in passages]
        return [
            self._cached_logits(text_hash.digest(), question, passage)
            for text_hash, passage in zip(hashes, passages, strict=True)
        ]

    def _cached_logits(self, key: bytes, question: str, passage: Passage) -> Floats:
        with self._lock:
            if key in self._logits:
                self._logits.move_to_end(key)
                return self._logits[key]
        pairs = [encode_pair(question, window) for window in windows(passage)]
        logits = np.full(len(passage) - 1, UNREAD_LOGIT, np.float32)
        # The empty array is for a passage without parts, which has no windows.
        read_logits = np.concatenate([logits[:0], *map(self._window_logits, pairs)])
        logits[: len(read_logits)] = read_logits
        logits.setflags(write=False)
        with self._lock:
            self._logits[key] = logits
            while len(self._logits) > MAX_CACHED_PASSAGES:
                self._logits.popitem(last=False)
        return logits

    def _window_logits(self, pair: Pair) -> Floats:
        network, maps = self._load()
        states = network.read(pair.ids)
        logits = np.array([states @ weight + bias for weight, bias in maps])
        if not np.isfinite(logits).all():
            raise InputError(
                f"The cross-encoder's weights {self._file} give logits that are not finite. Train "
                "them again."
            )
        (passage_logit, *_), token_logits = logits
        part_logits = [
            passage_logit + np.logaddexp.reduce(token_logits[start:end]) - np.log(end - start)
            if start < end
            else UNREAD_LOGIT
            for start, end in pairwise(pair.boundaries)
        ]
        return np.array(part_logits, np.float32)

    def _load(self) -> tuple[MPNet, AffineMaps]:
        with self._model_lock:
            if self._model is None:
                weights = read_weights(self._file)
                maps = [
                    (weights[f"{name}.weight"][0], weights[f"{name}.bias"][0])
                    for name in (PASSAGE, TOKEN)
                ]
                self._model = MPNet(weights, bits_for_cpu()), maps
            return self._model


def answer_logits(
    encoder: Encoder | None, question: str, passages: Sequence[Passage]
) -> list[Floats] | None:
    """Return an encoder's ``answer_logits`` for passages, checked; ``None`` if it gives none.

    Raise ``InputError`` unless each part has a finite logit.
    """
    method = getattr(encoder, "answer_logits", None)
    answer = None if method is None else method(question, passages)
    if answer is None:
        return None
    try:
        tensors = [p.detach().cpu() if hasattr(p, "detach") else p for p in answer]
        with np.errstate(over="ignore"):
            logits = [np.asarray(parts, np.float32) for parts in tensors]
    except (TypeError, ValueError, OverflowError, RuntimeError):
        logits = []
    shapes = [(len(passage) - 1,) for passage in passages]
    if [parts.shape for parts in logits] != shapes or not all(np.isfinite(p).all() for p in logits):
        raise InputError(
            f"The encoder {getattr(encoder, 'name', encoder)!r} must return a finite logit for "
            "each part of each passage. Correct its answer_logits."
        )
    return logits


def log_sum(logits: Sequence[float] | Floats) -> float:
    """Return the log-sum-exp of logits and ``UNREAD_LOGIT``: a finite sum even without logits."""
    return float(np.logaddexp.reduce([UNREAD_LOGIT, *logits]))


def windows(passage: Passage) -> list[list[str]]:
    """Cut a passage into windows: its heading, and parts of at most ``MAX_PARTS_TOKENS`` in total.

    A part with more tokens has a window of its own. Parts after ``MAX_WINDOWS`` are left out.
    """
    heading, *parts = passage
    result: list[list[str]] = []
    size = 0
    for part in parts:
        part_size = len(_ids(part, MAX_PARTS_TOKENS))
        size += part_size
        if not result or size > MAX_PARTS_TOKENS:
            if len(result) == MAX_WINDOWS:
                break
            result.append([heading])
            size = part_size
        result[-1].append(part)
    return result


def encode_pair(question: str, passage: Passage) -> Pair:
    """Return a question and a passage as MPNet's input."""
    heading, *parts = passage
    ids = [START, *_ids(question, MAX_QUESTION_TOKENS), END, END]
    ids += _ids(f"{heading}:", MAX_HEADING_TOKENS) if heading else ()
    boundaries, end = [len(ids)], len(ids) + MAX_PARTS_TOKENS
    for part in parts:
        ids += _ids(part, end - len(ids))
        boundaries.append(len(ids))
    return Pair([*ids, END], boundaries)


def _ids(text: str, limit: int) -> list[int]:
    """Return the ids of a text's first tokens, at most ``limit``."""
    beginning = text[: limit * MAX_TOKEN_CHARACTERS]
    ids = _tokenizer().encode(beginning, add_special_tokens=False).ids if limit else []
    return [id_ + ID_OFFSET for id_ in ids[:limit]]


@cache
def _tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer

    # MiniLM has the tokens of MPNet in the same order; their ids differ by ``ID_OFFSET``.
    tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
