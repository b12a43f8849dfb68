"""Training of the networks that ship: the readers of boards, and the latent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from casewright_backgammon.board_training import train_board_reader
from casewright_backgammon.decision import Decision
from casewright_backgammon.games import Split, read_split
from casewright_backgammon.latent import FILE, PositionNetwork, equity
from casewright_backgammon.latent_training import EPOCHS, examples_of, train_network
from casewright.errors import InputError

#: Beside the weights: what their training printed.
FIGURES = "figures.json"
#: How far a training may be from these on another machine, whose sums round otherwise.
TOLERANCE = 0.02
#: Share of the value in the loss of the latent that ships, chosen among the seven by
#: ``casewright bench backgammon --choosing``, which looks at training games alone.
WEIGHTING = 1.0


def train_backgammon(
    folder: Path,
    data: Path,
    *,
    seed: int = 0,
    epochs: int = EPOCHS,
    progress: bool | None = None,
) -> dict[str, float]:
    """Train all networks, and write them with their figures.

    The latent learns from four fifths of the games; what it does on the others is told. The readers
    of boards learn from boards that are drawn here, of positions of no game in the data.

    Args:
        folder: Where they go.
        data: The analysed games; see ``games.read_split``.
        seed: Of all trainings.
        epochs: Of the latent's.
        progress: Whether a bar is shown; see ``progress_bar``.

    Returns:
        ``latent_equity_error`` and ``latent_choice_lost``, in points, on games that were not
        learned; the others are shares, see ``board_measures.measure``.

    Raises:
        InputError: The folder cannot be written, or the data not read.
    """
    split = read_split(data)
    if all(one.value is None for one in split.queries):
        raise InputError(f"No decision in {data} has a value. Give the analysed games.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}.") from error
    network = train_network(
        examples_of(split.cases, split.pool), WEIGHTING, seed=seed, epochs=epochs
    )
    network.save(folder / FILE.name)
    boards = train_board_reader(folder, seed=seed, progress=progress)
    figures = {**boards, **latent_figures(network, split)}
    (folder / FIGURES).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return figures


def latent_figures(network: PositionNetwork, split: Split) -> dict[str, float]:
    """Return what a network is worth on a split's queries, in points.

    Its mean error against the engine's equity without a cube, and what is lost where it chooses
    among the engine's candidates.
    """
    queries = split.queries
    valued = [one for one in queries if one.value is not None]
    known = equity(np.array([one.value for one in valued], dtype=np.float32))
    errors = np.abs(network.equities([one.position for one in valued]) - known)
    return {
        "latent_equity_error": float(errors.mean()),
        "latent_choice_lost": float(np.mean([choice_lost(network, one) for one in queries])),
    }


def choice_lost(network: PositionNetwork, one: Decision) -> float:
    """Return what the network's choice among a decision's candidates loses."""
    afters = [one.after(place) for place in range(len(one.candidates))]
    return one.lost(int(network.after_equities(afters).argmax()))
