"""Reading a position off a picture of a board, offline, in a fraction of a second.

After MCBR-RAG (Marom 2024): one network finds the landmarks of the board, the two halves are cut
into slices of one point each, the upper ones turned, and another network counts their checkers.
The most likely position that all of this can be is taken, and what can be none is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.board_check import Off, checked_off, reading_doubt, reading_flaw
from casewright_backgammon.board_decoding import decoded
from casewright_backgammon.board_layout import checked_view, position_of_counts
from casewright_backgammon.board_slices import (
    VIEW,
    Box,
    Corners,
    board_box,
    slices_of,
    straight_board,
    view_of,
    whole_box,
)
from casewright_backgammon.position import Position, in_words
from casewright_mcbr.picture import Wanted, opened_picture
from casewright.errors import InputError
from casewright.stores.encoders.onnx_session import inference_session

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from PIL import Image

#: The networks that ship, and their files.
WEIGHTS = Path(__file__).parent / "weights"
LANDMARKS_FILE, CHECKERS_FILE = "landmarks.onnx", "checkers.onnx"
#: Names, in the model files, of the least probability of a board and of the least confidence.
LEAST_BOARD, LEAST_CONFIDENCE = "least_board", "least_confidence"
BOARD = Wanted("a board", "at most three times as wide as high", least=120, oblong=3)
#: What is seen around a board, as a share of it, by the looks that follow the first one.
LOOKS = (0.09, 0.09, 0.06, 0.13)
#: Shifts in pixels of a straight board by which it is cut into slices, over and over.
SHIFTS = ((0, 0), (-2, 0), (2, 0), (0, -2), (0, 2))


@dataclass(frozen=True, slots=True)
class BoardReading:
    """What a picture of a board says.

    Attributes:
        position: From the side of the player on roll; one that can arise if ``read`` returned it.
        confidence: The probability of the whole reading among those that add up, from 0 to 1.
        counts: Checkers of 26 slices: the lower row and the upper row from left to right, the
            lower and the upper half of the bar; light ones as numbers above 0, dark ones below.
        board: The probability that the picture shows a whole board.
    """

    position: Position
    confidence: float
    counts: tuple[int, ...]
    board: float


@dataclass(frozen=True, slots=True)
class _Networks:
    landmarks: InferenceSession
    checkers: InferenceSession
    least_board: float
    least_confidence: float


class BoardReader:
    """Reads boards with trained networks; loaded when first used, safe between threads.

    Args:
        folder: Where the networks' files are; ``None`` for those that ship.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or WEIGHTS
        self._loaded: _Networks | None = None
        self._lock = threading.Lock()

    @property
    def least_board(self) -> float:
        """The probability of a board below which a picture is taken for none."""
        return self._load().least_board

    @property
    def least_confidence(self) -> float:
        """The confidence below which a reading is refused."""
        return self._load().least_confidence

    def read(
        self,
        image: bytes | Path | Image.Image,
        own: str = "light",
        home: str = "right",
        off: Off | None = None,
    ) -> BoardReading:
        """Read one board; the player on roll sits below.

        Args:
            image: The bytes of an image file, the path of one, or an image that is open.
            own: The colour of the player on roll, "light" or "dark".
            home: Where he bears off, "right" or "left".
            off: How many checkers he and the other have borne off, where that is known. Without
                it a side is but seldom taken to lack some while one stands outside its home board.

        Raises:
            InputError: The file is not there, or is no image, or a damaged, too small or too large
                one; the image shows no whole board; what was read cannot be a position, or is too
                uncertain; a network's file is missing; ``own``, ``home`` or ``off`` is wrong.
        """
        reading = self.look(image, own, home, off)
        name = str(image) if isinstance(image, (str, Path)) else "The image"
        if why := self.refusal(reading, own, home, off):
            raise InputError(f"{name} {why}")
        return reading

    def look(
        self,
        image: bytes | Path | Image.Image,
        own: str = "light",
        home: str = "right",
        off: Off | None = None,
    ) -> BoardReading:
        """Return what a picture most likely shows, whether that can be or not; see ``read``."""
        return self.looks(image, own, home, [off])[0]

    def looks(
        self,
        image: bytes | Path | Image.Image,
        own: str,
        home: str,
        offs: Sequence[Off | None],
    ) -> list[BoardReading]:
        """Return what a picture most likely shows for each presumption of what is borne off."""
        checked_view(own, home)
        for off in offs:
            checked_off(off)
        picture = opened_picture(image, BOARD).convert("RGB")
        corners, board = self.find(picture)
        likely = self.probabilities(picture, corners)
        found = []
        for off in offs:
            counts, sure = decoded(likely, own, home, off)
            found.append(BoardReading(position_of_counts(counts, own, home), sure, counts, board))
        return found

    def refusal(
        self,
        reading: BoardReading,
        own: str = "light",
        home: str = "right",
        off: Off | None = None,
    ) -> str:
        """Return why a reading is refused, as the rest of a sentence; empty where it is not."""
        checked_view(own, home)
        checked_off(off)
        if reading.board < self.least_board:
            return (
                "does not look like a whole backgammon board seen from above. "
                "Give a picture of one board, with a little around it."
            )
        if why := reading_flaw(reading.counts, own, home, off):
            return (
                f"was read as a position that cannot be: {why} "
                "Give a clearer picture of the board, or the position id."
            )
        if reading.confidence >= self.least_confidence:
            return ""
        read = in_words(reading.position).replace("\n", " ")
        doubt = "" if off is not None else reading_doubt(reading.counts, own, home)
        if doubt:
            return (
                f"was read with too little confidence, {reading.confidence:.2f}: {doubt} "
                f"What was read: {read} "
                "Say how many have been borne off, or give a clearer picture."
            )
        return (
            f"was read with too little confidence, {reading.confidence:.2f}, as: {read} "
            "Give a clearer picture of the board, or the position id."
        )

    def find(self, picture: Image.Image) -> tuple[Corners, float]:
        """Find a board in a picture of mode "RGB".

        Returns:
            Its landmarks in pixels (8, 2), see ``board_image.draw_board``, and the probability
            that there is one.
        """
        corners, board = self._seen(picture, whole_box(picture.size))
        found = []
        for look, share in enumerate(LOOKS):
            if not _upright(corners):
                return _somewhere(picture), 0.0
            corners, there = self._seen(picture, board_box(corners, share))
            if look == 0:
                board = min(board, there)
            else:
                # The first look at the board itself is still directed by one at all the picture.
                found.append(corners)
        return _straightened(np.mean(found, axis=0)), board

    def _seen(self, picture: Image.Image, box: Box) -> tuple[Corners, float]:
        """Return the landmarks in a part of a picture, and how likely that shows a board."""
        view = view_of(picture, box).transpose(2, 0, 1).astype(np.float32) / np.float32(255)
        places, board = self._load().landmarks.run(None, {"views": view[None]})
        scale = ((box[2] - box[0]) / VIEW[0], (box[3] - box[1]) / VIEW[1])
        return (places[0].astype(np.float64) + 0.5) * scale + box[:2], float(board[0])

    def probabilities(self, picture: Image.Image, corners: Corners) -> NDArray[np.float32]:
        """Return how likely each slice shows none, 1 to 15 light, 1 to 15 dark checkers.

        Args:
            picture: Of mode "RGB".
            corners: Where the board is in it.

        Returns:
            Array (26, 31).
        """
        board = straight_board(picture, corners)
        slices = np.stack([slices_of(board, shift) for shift in SHIFTS])
        # Landmarks are found but roughly, and a reading should not hang on it.
        found: NDArray[np.float32] = self._load().checkers.run(None, {"slices": slices})[0]
        mean: NDArray[np.float32] = found.mean(axis=0)
        return mean

    def _load(self) -> _Networks:
        with self._lock:
            if self._loaded is None:
                landmarks, board = _session(self._folder / LANDMARKS_FILE)
                checkers, sure = _session(self._folder / CHECKERS_FILE)
                self._loaded = _Networks(
                    landmarks,
                    checkers,
                    float(board.get(LEAST_BOARD, 0.5)),
                    float(sure.get(LEAST_CONFIDENCE, 0.5)),
                )
            return self._loaded


@cache
def shipped_reader() -> BoardReader:
    """Return the reader that ships; its networks are loaded once a process."""
    return BoardReader()


def _session(file: Path) -> tuple[InferenceSession, Mapping[str, str]]:
    if not file.is_file():
        raise InputError(
            f"The board reader's network {file} is not there. "
            "Train it: casewright finetune backgammon"
        )
    session = inference_session(file, threads=1)
    return session, session.get_modelmeta().custom_metadata_map


def _upright(corners: Corners) -> bool:
    """Tell whether landmarks stand as those of a board do: left to right, above and below."""
    upper, lower = corners[:4], corners[4:]
    wide = corners[3, 0] - corners[0, 0]
    across = np.stack([np.diff(upper[:, 0]), np.diff(lower[:, 0])])
    high = (lower[:, 1] - upper[:, 1]).min()
    halves, bars = across[:, [0, 2]], across[:, 1]
    return bool(wide > 1 and halves.min() > 0.2 * wide and bars.min() > 0 and high > 0.2 * wide)


def _straightened(corners: Corners) -> Corners:
    """Bring the four landmarks of the upper edge on a line, and those of the lower one."""
    made = corners.copy()
    for row in (slice(0, 4), slice(4, 8)):
        xs, ys = made[row, 0], made[row, 1]
        slope, start = np.polyfit(xs, ys, 1)
        made[row, 1] = start + slope * xs
    return made


def _somewhere(picture: Image.Image) -> Corners:
    """Return landmarks that fill a picture, where none are found."""
    shares = np.array([(x, y) for y in (0.05, 0.95) for x in (0.05, 0.46, 0.54, 0.95)])
    return shares * picture.size
