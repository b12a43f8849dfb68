"""Reading the four numbers off an image of a Math-24 card, offline, in a few milliseconds."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright_math24.card_image import card_input
from casewright.errors import InputError
from casewright.stores.encoders.onnx_session import inference_session

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from PIL import Image

#: The network that ships.
WEIGHTS = Path(__file__).parent / "weights" / "cards.onnx"
#: Images that run through the network together.
BATCH = 64
#: Name, in the model file, of the confidence below which an image is taken for no card.
THRESHOLD = "least_confidence"


@dataclass(frozen=True, slots=True)
class CardReading:
    """What a card says.

    Attributes:
        numbers: Upper left, upper right, lower left, lower right; each from 1 to 13.
        confidence: The probability of the least certain of the four, from 0 to 1.
    """

    numbers: tuple[int, int, int, int]
    confidence: float


class CardReader:
    """Reads cards with a trained network; loaded when it is first used, safe between threads.

    Args:
        weights: The network's file; ``None`` for the one that ships.
    """

    def __init__(self, weights: Path | None = None) -> None:
        self._file = weights or WEIGHTS
        self._loaded: tuple[InferenceSession, float] | None = None
        self._lock = threading.Lock()

    @property
    def threshold(self) -> float:
        """The confidence below which an image is taken for no card."""
        return self._load()[1]

    def read(self, image: bytes | Path | Image.Image) -> CardReading:
        """Read one card.

        Args:
            image: The bytes of an image file, the path of one, or an image that is open.

        Raises:
            InputError: The file is not there, or is no image, or a damaged, too small or too large
                one; the image shows no card; the network's file is missing.
        """
        reading = _reading(self.probabilities([image])[0])
        if reading.confidence < self.threshold:
            name = image if isinstance(image, (str, Path)) else "The image"
            raise InputError(
                f"{name} does not look like a card of four numbers from 1 to 13 in a 2×2 grid. "
                "Give an upright image of one card that fills the image."
            )
        return reading

    def read_many(self, images: Iterable[bytes | Path | Image.Image]) -> list[CardReading | None]:
        """Read several cards, ``None`` for an image that shows no card.

        Raises:
            InputError: One of them is no image that can be read; the network's file is missing.
        """
        threshold = self.threshold
        made = (_reading(one) for one in self.probabilities(images))
        return [one if one.confidence >= threshold else None for one in made]

    def probabilities(self, images: Iterable[bytes | Path | Image.Image]) -> NDArray[np.float32]:
        """Return how likely each number from 1 to 13 is at each place, array (n, 4, 13)."""
        session = self._load()[0]
        inputs = map(card_input, images)
        found = [np.empty((0, 4, 13), dtype=np.float32)]
        # One batch at a time: many images would not fit into memory together.
        while some := list(islice(inputs, BATCH)):
            found.append(session.run(None, {"images": np.stack(some)})[0])
        return np.concatenate(found)

    def _load(self) -> tuple[InferenceSession, float]:
        with self._lock:
            if self._loaded is None:
                if not self._file.is_file():
                    raise InputError(
                        f"The card reader's network {self._file} is not there. "
                        "Train it: casewright finetune math24"
                    )
                session = inference_session(self._file, threads=1)
                told = session.get_modelmeta().custom_metadata_map
                self._loaded = (session, float(told.get(THRESHOLD, 0.5)))
            return self._loaded


@cache
def shipped_reader() -> CardReader:
    """Return the reader that ships; its network is loaded once a process."""
    return CardReader()


def _reading(probabilities: NDArray[np.float32]) -> CardReading:
    first, second, third, fourth = (int(at) + 1 for at in probabilities.argmax(axis=1))
    return CardReading((first, second, third, fourth), float(probabilities.max(axis=1).min()))
