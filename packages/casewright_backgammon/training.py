"""Training of the shipped networks: those of the board reader, and the position network."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from casewright.errors import InputError
from casewright_backgammon.board_training import train_board_reader
from casewright_backgammon.decision import Decision
from casewright_backgammon.games import Split, read_split
from casewright_backgammon.latent import FILE, PositionNetwork, equity
from casewright_backgammon.latent_training import EPOCHS, examples_of, train_network
from casewright_mcbr.training import write_figures

#: Weight of the value's loss in the training of the shipped position network. It was chosen among
#: seven, on training games only, by ``casewright bench backgammon --choosing``.
WEIGHTING = 1.0


def train_backgammon(
    folder: Path, data: Path, *, seed: int = 0, epochs: int = EPOCHS, progress: bool | None = None
) -> dict[str, float]:
    """Train all networks, write them with their figures to a folder, and return the figures.

    The position network is trained on four fifths of the games and measured on the others. The
    board reader is trained on drawn boards with other positions.

    Args:
        data: The analysed games; see ``games.read_split``.
        epochs: Number of epochs of the position network's training.
        progress: See ``progress_bar``.

    Returns:
        ``latent_equity_error`` and ``latent_choice_lost``, in points, on held-out games; the others
        are shares, see ``board_measures.measure``.

    Raises:
        InputError: The folder cannot be written, or the data cannot be read.
    """
    split = read_split(data)
    if all(query.value is None for query in split.queries):
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
    write_figures(folder, figures)
    return figures


def latent_figures(network: PositionNetwork, split: Split) -> dict[str, float]:
    """Return the errors of a network on a split's queries, in points.

    The errors are the mean difference from the engine's equity without a cube, and the mean equity
    loss of the network's choice among the engine's candidates.
    """
    queries = split.queries
    valued = [query for query in queries if query.value is not None]
    engine = equity(np.array([query.value for query in valued], dtype=np.float32))
    errors = np.abs(network.equities([query.position for query in valued]) - engine)
    return {
        "latent_equity_error": float(errors.mean()),
        "latent_choice_lost": float(np.mean([choice_loss(network, query) for query in queries])),
    }


def choice_loss(network: PositionNetwork, decision: Decision) -> float:
    """Return the equity loss of the network's choice among a decision's candidates."""
    afters = [decision.after(rank) for rank in range(len(decision.candidates))]
    return decision.equity_loss(int(network.after_equities(afters).argmax()))
