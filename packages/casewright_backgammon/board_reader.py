"""Reader of boards: from a picture to the position, offline, in a fraction of a second.

As in MCBR-RAG (Marom 2024), a network finds the landmarks of the board, the board is cut into
slices of one point each, and another network counts the checkers in each slice. The reading is the
most likely possible position, unless an impossible one is much more likely. Uncertain and
impossible readings are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright_backgammon.board_check import Off, check_off, reading_doubt, reading_flaw
from casewright_backgammon.board_decoding import decode
from casewright_backgammon.board_layout import check_view, position_of_counts
from casewright_backgammon.board_slices import (
    VIEW,
    Box,
    Landmarks,
    board_box,
    rectify_board,
    slices_of,
    view_of,
    whole_box,
)
from casewright_backgammon.position import Position, position_text
from casewright_mcbr.layers import open_network
from casewright_mcbr.picture import ExpectedPicture, open_picture

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from PIL import Image

    #: The bytes or the path of an image file, or an open image.
    ImageSource = bytes | Path | Image.Image

#: The folder and the file names of the shipped networks.
WEIGHTS = Path(__file__).parent / "weights"
LANDMARKS_FILE, CHECKERS_FILE = "landmarks.onnx", "checkers.onnx"
#: Names of the thresholds in the metadata of the files; see ``BoardReader``.
LEAST_BOARD, LEAST_CONFIDENCE = "least_board", "least_confidence"
BOARD = ExpectedPicture("a board", "at most three times as wide as high", min_side=120, max_ratio=3)
#: Landmarks are found in a view of the whole picture, then in four closer views, one after another.
#: A closer view shows the board as located so far, and a margin: a share of the board's size.
VIEW_MARGINS = (0.09, 0.09, 0.06, 0.13)
#: Shifts of the slices, in pixels. Landmarks are inexact, so the probabilities are averaged over
#: the shifts.
SHIFTS = ((0, 0), (-2, 0), (2, 0), (0, -2), (0, 2))


@dataclass(frozen=True, slots=True)
class BoardReading:
    """The reading of a picture of a board."""

    position: Position  # the position from the side of the player on roll
    #: The reading's share of the probability of all possible readings, from 0 to 1.
    confidence: float
    counts: tuple[int, ...]  # counts of 26 slices; see board_layout.signed_counts
    board_probability: float  # the probability that the picture shows a whole board


class BoardReader:
    """Reads boards with the networks of a folder, by default the shipped networks. Thread-safe."""

    def __init__(self, folder: Path = WEIGHTS) -> None:
        self._folder = folder

    @property
    def least_board(self) -> float:
        """The least probability of a board; a picture with a lower probability is refused."""
        return self._landmark_network[1]

    @property
    def least_confidence(self) -> float:
        """The least confidence; a reading with a lower confidence is refused."""
        return self._checker_network[1]

    def read(
        self, image: ImageSource, own: str = "light", home: str = "right", off: Off | None = None
    ) -> BoardReading:
        """Return the reading of an image file's bytes or path, or of an open image.

        Args:
            own: The colour of the player on roll, who sits below: "light" or "dark".
            home: The side where this player bears off: "right" or "left".
            off: Numbers of checkers that this player and the other player have borne off. If
                ``None``, the reader prefers 0 for a side with checkers outside its home board.

        Raises:
            InputError: The image is missing, damaged, too small or too large, or does not show a
                whole board; the reading is impossible or too uncertain; a network's file is
                missing; ``own``, ``home`` or ``off`` is invalid.
        """
        reading = self.likeliest_readings(image, own, home, [off])[0]
        if refusal := self.refusal(reading, own, home, off):
            name = str(image) if isinstance(image, (str, Path)) else "The image"
            raise InputError(f"{name} {refusal}")
        return reading

    def likeliest_readings(
        self,
        image: ImageSource,
        own: str = "light",
        home: str = "right",
        offs: Sequence[Off | None] = (None,),
    ) -> list[BoardReading]:
        """Return the most likely reading for each of ``offs``, even if impossible; see ``read``."""
        check_view(own, home)
        for off in offs:
            check_off(off)
        picture = open_picture(image, BOARD).convert("RGB")
        landmarks, board_probability = self._find_landmarks(picture)
        probabilities = self._probabilities(picture, landmarks)
        readings = []
        for off in offs:
            counts, confidence = decode(probabilities, own, home, off)
            position = position_of_counts(counts, own, home)
            readings.append(BoardReading(position, confidence, counts, board_probability))
        return readings

    def refusal(
        self, reading: BoardReading, own: str = "light", home: str = "right", off: Off | None = None
    ) -> str:
        """Return why ``read`` refuses a reading: a sentence without subject; empty if accepted."""
        if reading.board_probability < self.least_board:
            return (
                "does not look like a whole backgammon board seen from above. "
                "Give a picture of one board, with a little around it."
            )
        if flaw := reading_flaw(reading.counts, own, home, off):
            return (
                f"was read as an impossible position: {flaw} "
                "Give a clearer picture of the board, or the position id."
            )
        if reading.confidence >= self.least_confidence:
            return ""
        text = position_text(reading.position).replace("\n", " ")
        refusal = f"was read with too little confidence, {reading.confidence:.2f}"
        if off is None and (doubt := reading_doubt(reading.counts, own, home)):
            return (
                f"{refusal}: {doubt} The reading: {text} "
                "Give the numbers of borne-off checkers, or give a clearer picture."
            )
        return f"{refusal}, as: {text} Give a clearer picture of the board, or the position id."

    def _find_landmarks(self, picture: Image.Image) -> tuple[Landmarks, float]:
        """Return a picture's landmarks, and the probability that a whole board is shown."""
        landmarks, board_probability = self._find_in_box(picture, whole_box(picture.size))
        found: list[Landmarks] = []  # the landmarks in each closer view
        for margin in VIEW_MARGINS:
            if not _are_plausible(landmarks):
                # There is no board: return the landmarks of a board that would fill the picture.
                shares = [(x, y) for y in (0.05, 0.95) for x in (0.05, 0.46, 0.54, 0.95)]
                return np.array(shares) * picture.size, 0.0
            landmarks, probability = self._find_in_box(picture, board_box(landmarks, margin))
            # Of the closer views, only the first counts for the probability.
            if not found:
                board_probability = min(board_probability, probability)
            found.append(landmarks)
        # The mean omits the first closer view, whose box depends on the view of the whole picture.
        return _straighten(np.mean(found[1:], axis=0)), board_probability

    def _find_in_box(self, picture: Image.Image, box: Box) -> tuple[Landmarks, float]:
        """Return the landmarks in a box, and the probability that the box shows a whole board."""
        view = view_of(picture, box).transpose(2, 0, 1).astype(np.float32) / np.float32(255)
        landmarks, probabilities = self._landmark_network[0].run(None, {"views": view[None]})
        scale = ((box[2] - box[0]) / VIEW[0], (box[3] - box[1]) / VIEW[1])
        return (landmarks[0].astype(np.float64) + 0.5) * scale + box[:2], float(probabilities[0])

    def _probabilities(self, picture: Image.Image, landmarks: Landmarks) -> NDArray[np.float32]:
        """Return the probabilities of the classes of each slice, array (26, 31); see ``decode``."""
        board = rectify_board(picture, landmarks)
        slices = np.stack([slices_of(board, shift) for shift in SHIFTS])
        (outputs,) = self._checker_network[0].run(None, {"slices": slices})
        mean: NDArray[np.float32] = outputs.mean(axis=0)
        return mean

    @cached_property
    def _landmark_network(self) -> tuple[InferenceSession, float]:
        """The landmark network, and its threshold."""
        session, metadata = open_network(self._folder / LANDMARKS_FILE, "backgammon")
        return session, float(metadata.get(LEAST_BOARD, 0.5))

    @cached_property
    def _checker_network(self) -> tuple[InferenceSession, float]:
        """The checker network, and its threshold."""
        session, metadata = open_network(self._folder / CHECKERS_FILE, "backgammon")
        return session, float(metadata.get(LEAST_CONFIDENCE, 0.5))


@cache
def shipped_reader() -> BoardReader:
    """Return the shipped reader, whose networks are loaded once per process."""
    return BoardReader()


def _are_plausible(landmarks: Landmarks) -> bool:
    """Return True if landmarks have the order and proportions of a board's landmarks."""
    upper, lower = landmarks[:4], landmarks[4:]
    width = landmarks[3, 0] - landmarks[0, 0]
    widths = np.stack([np.diff(upper[:, 0]), np.diff(lower[:, 0])])
    height = (lower[:, 1] - upper[:, 1]).min()
    halves, bars = widths[:, [0, 2]], widths[:, 1]
    return bool(
        width > 1 and halves.min() > 0.2 * width and bars.min() > 0 and height > 0.2 * width
    )


def _straighten(landmarks: Landmarks) -> Landmarks:
    """Return landmarks moved onto two straight lines: the field's upper edge and lower edge."""
    straight = landmarks.copy()
    for edge in (straight[:4], straight[4:]):
        slope, start = np.polyfit(edge[:, 0], edge[:, 1], 1)
        edge[:, 1] = start + slope * edge[:, 0]
    return straight
