"""The torch networks of the board reader, which follow MCBR-RAG (Marom 2024)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from casewright_backgammon.board_image import LANDMARK_COUNT
from casewright_backgammon.board_slices import VIEW
from casewright_backgammon.position import CHECKERS
from casewright_mcbr.blocks_network import convolution

#: Width of a cell of a heat map, in pixels of the view.
CELL = 4
_COLUMNS, _ROWS = VIEW[0] // CELL, VIEW[1] // CELL
#: Number of classes of a slice: none, 1 to 15 light checkers, 1 to 15 dark checkers.
CLASS_COUNT = 1 + 2 * CHECKERS
#: Number of units of the checker network's dense layers, except the last.
HIDDEN_UNITS = 128


class LandmarkNetwork(nn.Module):
    """A network that maps a view's pixels to heat maps of landmarks and the logit of a whole board.

    A landmark is the mean of the cells' centres, weighted by the landmark's heat map (integral
    regression, Sun et al. 2018).
    """

    cell_centres: Tensor  # the centres of a heat map's cells, in pixels of the view (1280, 2)

    def __init__(self) -> None:
        super().__init__()
        self.near = nn.Sequential(
            *convolution(3, 16, 5, stride=2), *convolution(16, 32, 3, stride=2)
        )
        # The layers ``far`` and ``around`` see larger parts of the view than ``near``.
        self.far = nn.Sequential(
            *convolution(32, 48, 3, stride=2),
            *convolution(48, 64, 3),
            *convolution(64, 64, 3, dilation=2),
            *convolution(64, 64, 3, dilation=4),
        )
        self.around = nn.Linear(64, 64)
        self.up = nn.Conv2d(64, 32, 1)
        self.maps = nn.Sequential(*convolution(32, 32, 3), nn.Conv2d(32, LANDMARK_COUNT, 1))
        self.board = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 1))
        ys, xs = torch.meshgrid(
            torch.arange(_ROWS) * CELL + (CELL - 1) / 2,
            torch.arange(_COLUMNS) * CELL + (CELL - 1) / 2,
            indexing="ij",
        )
        self.register_buffer("cell_centres", torch.stack([xs, ys], dim=-1).reshape(-1, 2).float())

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of heat maps (n, 8, 1280) and of a board (n) for views (n, 3, 128, 160)."""
        near = self.near(views - 0.5)
        far = self.far(near)
        mean = far.mean((2, 3))
        far = torch.relu(far + self.around(mean)[:, :, None, None])
        up = nn.functional.interpolate(self.up(far), scale_factor=2.0, mode="nearest")
        maps = self.maps(near + up).flatten(2)
        summary = torch.cat([far.mean((2, 3)), far.amax((2, 3))], dim=1)
        return maps, self.board(summary).squeeze(1)

    def landmarks(self, maps: Tensor) -> Tensor:
        """Return landmarks (n, 8, 2) in pixels of the view, from the logits of heat maps."""
        landmarks: Tensor = torch.softmax(maps, dim=-1) @ self.cell_centres
        return landmarks


class LandmarkPositions(nn.Module):
    """The landmark network in its exported form: it returns landmarks and probabilities."""

    def __init__(self, network: LandmarkNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        """Return landmarks (n, 8, 2) in pixels of the view, and probabilities of a board (n)."""
        maps, board = self.network(views)
        return self.network.landmarks(maps), torch.sigmoid(board)


class CheckerNetwork(nn.Module):
    """A network that maps the pixels of slices to logits of the slices' classes.

    The last layers also receive a summary of all 26 slices, which shows the colours of checkers and
    of empty points.
    """

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *convolution(3, 24, 5, stride=2),
            *convolution(24, 32, 3),
            nn.MaxPool2d(2),
            *convolution(32, 64, 3),
            nn.MaxPool2d(2),
            *convolution(64, 96, 3),
        )
        self.dense = nn.Linear(96 * 12, HIDDEN_UNITS)
        self.whole = nn.Linear(2 * HIDDEN_UNITS, HIDDEN_UNITS)  # for the summary of all slices
        self.own = nn.Linear(HIDDEN_UNITS, HIDDEN_UNITS)  # for the slice itself
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(HIDDEN_UNITS, CLASS_COUNT)

    def forward(self, slices: Tensor) -> Tensor:
        """Return logits (n, 26, 31) for slices (n, 26, 3, 96, 24) of levels from 0 to 1."""
        board_count, slice_count = slices.shape[:2]
        maps = self.features((slices - 0.5).flatten(0, 1))
        # A stack is in the middle of its slice, so the columns of the map do not matter.
        rows = maps.amax(3).flatten(1)
        by_slice = torch.relu(self.dense(rows)).reshape(board_count, slice_count, HIDDEN_UNITS)
        summary = torch.cat([by_slice.mean(1), by_slice.amax(1)], dim=1)
        hidden = torch.relu(self.own(by_slice) + self.whole(summary).unsqueeze(1))
        logits: Tensor = self.out(self.drop(hidden))
        return logits
