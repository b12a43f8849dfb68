"""The reader: what a message asks, one ask after the other, and by which words."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.asks import Ask
from casewright.planner.reader_input import MAX_TOKENS, ReaderInput, padded, read_input
from casewright.planner.reader_layers import Memory, NextAsks, ReaderLayers
from casewright.planner.reader_limits import MAX_SLOTS
from casewright.planner.reader_weights import ReaderCard, read_card, read_weights, unfit
from casewright.stores.encoders.bert import Bert
from casewright.stores.encoders.minilm import packaged_minilm

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Floats = NDArray[np.float32]
Span = tuple[int, int]
#: Longest literal in words.
LONGEST = 14


class Reader:
    """Runs a trained reader, without torch. Thread-safe; loaded at the first use.

    Args:
        folder: Where ``casewright finetune reader`` wrote it.

    Raises:
        InputError: The folder holds no reader.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = folder = Path(folder)
        self.card: ReaderCard = read_card(folder)
        self.asks: list[Ask] = [form.read() for form in self.card.forms]
        #: The number of each form that was trained; 0 is the end of the message.
        self.numbers = {ask.form: number for number, ask in enumerate(self.asks, 1)}
        self.unknown, self.start = len(self.asks) + 1, len(self.asks) + 2
        self._lock = threading.Lock()
        self._parts: tuple[Tokenizer, Bert, ReaderLayers] | None = None

    def preload(self) -> None:
        """Load the network in the background, beside other work."""

        def load() -> None:
            # What fails here fails again, and is told, at the first use.
            with suppress(Exception):
                self._load()

        # No daemon: a process that ends while a session is being made would abort.
        threading.Thread(target=load, name="casewright-reader").start()

    def read(self, question: str, context: Mapping[str, Any]) -> Reading:
        """Read a question; of one that is too long, the beginning."""
        return self.read_all([(question, context)])[0]

    def read_all(self, asked: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Reading]:
        """Read several questions at once, each with its context."""
        tokenizer, encoder, layers = self._load()
        inputs = [read_input(tokenizer, question, context) for question, context in asked]
        ids, types, mask = padded(inputs)
        states = encoder(ids, types, mask)
        widths = [len(one.ids) for one in inputs]
        return [
            Reading(
                self,
                layers,
                one,
                layers.memory(states[row : row + 1, :width], mask[row : row + 1, :width]),
            )
            for row, (one, width) in enumerate(zip(inputs, widths, strict=True))
        ]

    def _load(self) -> tuple[Tokenizer, Bert, ReaderLayers]:
        with self._lock:
            if self._parts is None:
                weights = read_weights(self.folder, self.card)
                try:
                    layers = ReaderLayers(weights)
                except (KeyError, ValueError) as error:
                    raise unfit(self.folder, error) from error
                self._parts = reader_tokenizer(), Bert(weights, "encoder."), layers
            return self._parts


def reader_tokenizer() -> Tokenizer:
    """Return the encoder's tokenizer, cutting what is longer: the question, or a huge context."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS, strategy="longest_first")
    return tokenizer


class Reading:
    """A question as the network sees it.

    Attributes:
        input: Its tokens and words.
    """

    def __init__(
        self, reader: Reader, layers: ReaderLayers, read: ReaderInput, memory: Memory
    ) -> None:
        self.input = read
        self._reader, self._layers, self._memory = reader, layers, memory
        places = np.arange(len(read.words))
        sentence = np.cumsum([word.after_break for word in read.words])
        length = places[None] - places[:, None]
        together = sentence[None] == sentence[:, None]
        #: Which pairs of a first and a last word make a literal.
        self._spans = (length >= 0) & (length < LONGEST) & together

    def next_asks(
        self, beginnings: Sequence[Sequence[tuple[int, Sequence[Span | None]]]]
    ) -> NextAsks:
        """Return what may be asked after each beginning; they are equally long.

        Args:
            beginnings: The asks so far, each a form's number and where its literals stand.
        """
        width = len(self.input.ids)
        before = [[self._reader.start, *(form for form, _ in asks)] for asks in beginnings]
        nothing = np.zeros(width, dtype=np.float32)
        covered = [
            [nothing, *(self.input.coverage(spans, width) for _, spans in asks)]
            for asks in beginnings
        ]
        return self._layers.next_asks(
            self._memory, np.array(before), np.array(covered, dtype=np.float32)
        )

    def literals(
        self, decoded: Sequence[Floats], forms: Sequence[int], slots: Sequence[int]
    ) -> list[Span | None]:
        """Return where n literals stand: the best first and last word of each.

        A literal has no sentence's end inside and at most ``LONGEST`` words.
        """
        if not forms:
            return []
        starts, ends = self._layers.point(
            self._memory,
            np.stack(decoded),
            np.array(forms),
            np.minimum(np.array(slots), MAX_SLOTS - 1),
        )
        return [self._best(start, end) for start, end in zip(starts, ends, strict=True)]

    def _best(self, start: Floats, end: Floats) -> Span | None:
        if not self.input.words:
            return None
        scores = start[self.input.first][:, None] + end[self.input.last][None]
        best = int(np.where(self._spans, scores, -np.inf).argmax())
        return divmod(best, len(self.input.words))
