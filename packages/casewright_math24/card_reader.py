"""Reads the four numbers of a card from its image, offline, in a few milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright_mcbr.layers import open_network
from casewright_mcbr.picture import ExpectedPicture, open_picture

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from PIL import Image

#: Width and height of the network's input, in pixels.
INPUT_SIDE = 90
#: The pictures that are accepted as a card.
CARD = ExpectedPicture("a card", "about as wide as high", min_side=32, max_ratio=3)
#: The shipped network.
CARD_WEIGHTS = Path(__file__).parent / "weights" / "cards.onnx"
#: Number of images in a batch.
BATCH_SIZE = 64
#: Key of the confidence threshold in the metadata of the network's file.
THRESHOLD_KEY = "least_confidence"


@dataclass(frozen=True, slots=True)
class CardReading:
    """The numbers of a card."""

    #: The numbers upper left, upper right, lower left and lower right, from 1 to 13.
    numbers: tuple[int, int, int, int]
    confidence: float  # the lowest probability of the four numbers, from 0 to 1


class CardReader:
    """A thread-safe card reader; ``weights`` is the network's file, by default the shipped one."""

    def __init__(self, weights: Path | None = None) -> None:
        self._file = weights or CARD_WEIGHTS

    @cached_property
    def _session_and_threshold(self) -> tuple[InferenceSession, float]:
        session, metadata = open_network(self._file, "math24")
        return session, float(metadata.get(THRESHOLD_KEY, 0.5))

    @property
    def threshold(self) -> float:
        """The confidence threshold, below which images are refused."""
        return self._session_and_threshold[1]

    def read(self, image: bytes | Path | Image.Image) -> CardReading:
        """Return the numbers on a card, given as an image file's bytes or path, or an open image.

        Raises:
            InputError: The image is missing, damaged, too small or too large, or does not show a
                card; the network's file is missing.
        """
        probabilities = self.probabilities([image])[0]
        first, second, third, fourth = (int(index) + 1 for index in probabilities.argmax(axis=1))
        confidence = float(probabilities.max(axis=1).min())
        if confidence < self.threshold:
            name = image if isinstance(image, (str, Path)) else "The image"
            raise InputError(
                f"{name} does not look like a card of four numbers from 1 to 13 in a 2×2 grid. "
                "Give an upright image of one card that fills the image."
            )
        return CardReading((first, second, third, fourth), confidence)

    def probabilities(self, images: Iterable[bytes | Path | Image.Image]) -> NDArray[np.float32]:
        """Return an array (n, 4, 13): for n images, the probabilities of 1 to 13 in each cell."""
        session = self._session_and_threshold[0]
        inputs = map(card_input, images)
        batches = [np.empty((0, 4, 13), dtype=np.float32)]
        # All images together might not fit into memory.
        while batch := list(islice(inputs, BATCH_SIZE)):
            batches.append(session.run(None, {"images": np.stack(batch)})[0])
        return np.concatenate(batches)


#: Returns the shipped reader, which loads its network once in a process.
shipped_reader = cache(CardReader)


def card_input(image: bytes | Path | Image.Image) -> NDArray[np.float32]:
    """Return the grey levels of a picture, from 0 (black) to 1 (white), as (90, 90).

    ``open_picture`` decodes the picture, or raises ``InputError``.
    """
    from PIL import Image

    grey = open_picture(image, CARD).convert("L")
    scaled = grey.resize((INPUT_SIDE, INPUT_SIDE), Image.Resampling.BILINEAR)
    return np.asarray(scaled, dtype=np.float32) / np.float32(255)
