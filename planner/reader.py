"""The reader, a network that decodes a message's sub-queries and the spans of literals."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from casewright.planner.parser.layers import Floats
from casewright.planner.parser.weights import weights_error
from casewright.planner.reader_input import MAX_SLOTS, MAX_TOKENS, ReaderInput, Span, read_input
from casewright.planner.reader_layers import Memory, NextSubQueries, ReaderLayers
from casewright.planner.reader_weights import read_card, read_weights
from casewright.planner.sub_queries import SubQuery
from casewright.stores.encoders.minilm import packaged_minilm
from casewright.stores.encoders.onnx_graph import Bert

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Maximum number of words of a literal.
MAX_LITERAL_WORDS = 14


class Reader:
    """Runs a trained reader without torch; the first use loads the network. Thread-safe.

    ``folder`` is the output folder of ``casewright finetune reader``. Raise ``InputError`` if the
    folder contains no reader.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.card = read_card(self.folder)
        #: Trained templates (parts of plans without literals). Template N is ``templates[N - 1]``;
        #: 0 is the number of the message's end.
        self.templates: list[SubQuery] = [example.read() for example in self.card.templates]
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, Bert, ReaderLayers] | None = None

    @property
    def asks(self) -> list[SubQuery]:
        """The former name of ``templates``."""
        warnings.warn(
            "Reader.asks is now Reader.templates; the old name ends with the next release.",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.templates

    def preload(self) -> None:
        """Load the network in a background thread."""

        def load() -> None:
            # An error here is raised again at the first use.
            with suppress(Exception):
                self._load()

        # No daemon thread: a process that ends while such a thread loads the network aborts.
        threading.Thread(target=load, name="casewright-reader").start()

    def read(self, question: str, context: Mapping[str, Any]) -> EncodedQuestion:
        """Return the encoded question and context; the longer one may be truncated."""
        tokenizer, encoder, layers = self._load()
        reader_input = read_input(tokenizer, question, context)
        states = encoder.read(reader_input.ids, reader_input.types)[None]
        mask = np.ones(states.shape[:2], dtype=np.int64)
        return EncodedQuestion(reader_input, layers, layers.memory(states, mask))

    def _load(self) -> tuple[Tokenizer, Bert, ReaderLayers]:
        with self._lock:
            if self._loaded is None:
                weights = read_weights(self.folder, self.card)
                try:
                    layers = ReaderLayers(weights)
                except (KeyError, ValueError) as error:
                    raise weights_error(self.folder, error, "casewright finetune reader") from error
                self._loaded = reader_tokenizer(), Bert(weights, "encoder."), layers
            return self._loaded


def reader_tokenizer() -> Tokenizer:
    """Return the encoder's tokenizer, which truncates the longer one of two texts."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS, strategy="longest_first")
    return tokenizer


class EncodedQuestion:
    """Question that the network has read; ``input`` has its tokens and words."""

    def __init__(self, encoded: ReaderInput, layers: ReaderLayers, memory: Memory) -> None:
        self.input = encoded
        self._layers, self._memory = layers, memory
        positions = np.arange(len(encoded.words))
        sentence_numbers = np.cumsum([word.after_break for word in encoded.words])
        distances = positions[None] - positions[:, None]
        same_sentence = sentence_numbers[None] == sentence_numbers[:, None]
        # True if a literal can begin with the row's word and end with the column's word.
        self._can_be_literal = (distances >= 0) & (distances < MAX_LITERAL_WORDS) & same_sentence

    def next_sub_queries(
        self, prefixes: Sequence[Sequence[tuple[int, Sequence[Span | None]]]]
    ) -> NextSubQueries:
        """Return the scores of the next template after each prefix.

        A prefix is a sequence of sub-queries; a sub-query is the number of a template and the spans
        of the template's literals. All prefixes have the same number of sub-queries.
        """
        width = len(self.input.ids)
        templates = [[self._layers.start, *(number for number, _ in prefix)] for prefix in prefixes]
        no_weights = np.zeros(width, dtype=np.float32)
        literal_weights = [
            [no_weights, *(self.input.token_weights(spans, width) for _, spans in prefix)]
            for prefix in prefixes
        ]
        return self._layers.next_sub_queries(
            self._memory, np.array(templates), np.array(literal_weights, dtype=np.float32)
        )

    def literals(
        self, decoded: Sequence[Floats], templates: Sequence[int], slots: Sequence[int]
    ) -> list[Span | None]:
        """Return the most probable span of each literal, or ``None`` if the question has no words.

        A literal is within one sentence and has at most ``MAX_LITERAL_WORDS`` words. The arguments
        have, for each literal, the sub-query's state and template number, and the literal's index.
        """
        if not templates:
            return []
        starts, ends = self._layers.point(
            self._memory,
            np.stack(decoded),
            np.array(templates),
            np.minimum(np.array(slots), MAX_SLOTS - 1),
        )
        return [self._best_span(start, end) for start, end in zip(starts, ends, strict=True)]

    def _best_span(self, start_logits: Floats, end_logits: Floats) -> Span | None:
        encoded = self.input
        if not encoded.words:
            return None
        scores = start_logits[encoded.first_tokens][:, None] + end_logits[encoded.last_tokens][None]
        flat_index = int(np.where(self._can_be_literal, scores, -np.inf).argmax())
        return divmod(flat_index, len(encoded.words))
