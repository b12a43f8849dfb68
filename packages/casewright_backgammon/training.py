"""Training of the shipped networks: the board reader's networks, and the position network."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from casewright.errors import InputError
from casewright_backgammon.board_training import train_board_reader
from casewright_backgammon.decision import Decision
from casewright_backgammon.games import Split, read_split
from casewright_backgammon.latent import NETWORK_FILE, PositionNetwork, equity
from casewright_backgammon.latent_training import EPOCHS, examples_of, train_network
from casewright_mcbr.training import write_figures

#: Weight of the value's loss in the training of the shipped position network. It was chosen from
#: seven pairs of weights, on training games only, with ``casewright bench backgammon --choosing``.
VALUE_WEIGHT = 1.0


def train_backgammon(
    folder: Path, data: Path, *, seed: int = 0, epochs: int = EPOCHS
) -> dict[str, float]:
    """Train all networks, write them with their figures to a folder, and return the figures.

    The position network is trained on four fifths of the games and measured on the other games. The
    board reader is trained on drawn boards of random positions.

    Args:
        data: The folder of the analysed games; see ``games.read_split``.
        epochs: Number of epochs of the position network's training.

    Returns:
        The figures of ``board_measures.measure`` and of ``latent_figures``.

    Raises:
        InputError: The folder cannot be written, or the data cannot be read.
    """
    split = read_split(data)
    if all(query.chances_before_roll is None for query in split.queries):
        raise InputError(f"No decision in {data} has a value. Give the analysed games.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}.") from error
    examples = examples_of(split.cases, split.pool)
    network = train_network(examples, VALUE_WEIGHT, seed=seed, epochs=epochs)
    network.save(folder / NETWORK_FILE.name)
    figures = train_board_reader(folder, seed=seed) | latent_figures(network, split)
    write_figures(folder, figures)
    return figures


def latent_figures(network: PositionNetwork, split: Split) -> dict[str, float]:
    """Return the errors of a network on a split's queries, in points.

    ``latent_equity_error`` is the mean difference from the engine's equity without a cube.
    ``latent_choice_lost`` is the mean of ``choice_loss``.
    """
    with_chances = [query for query in split.queries if query.chances_before_roll is not None]
    chances = np.array([query.chances_before_roll for query in with_chances], dtype=np.float32)
    engine_equities = equity(chances)
    errors = np.abs(network.equities([query.position for query in with_chances]) - engine_equities)
    losses = [choice_loss(network, query) for query in split.queries]
    return {
        "latent_equity_error": float(errors.mean()),
        "latent_choice_lost": float(np.mean(losses)),
    }


def choice_loss(network: PositionNetwork, decision: Decision) -> float:
    """Return the equity loss of the network's choice among a decision's candidates."""
    afters = [decision.after(rank) for rank in range(len(decision.candidates))]
    return decision.equity_loss(int(network.after_equities(afters).argmax()))
