"""Table 3 of MCBR-RAG: relevance of the nearest cases, and equity loss if their plays are reused.

Queries and cases are compared as vectors (representations): the encoding, the latents of seven
trainings, and controls. A case is relevant to a query if both have the same value of a label, such
as the phase of the game. The paper's labels are from a collection that is not public.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.bench.harness import mean
from casewright.stores.progress import progress_bar
from casewright_backgammon.decision import Decision
from casewright_backgammon.encoding import encode
from casewright_backgammon.games import Split
from casewright_backgammon.latent import PositionNetwork, mean_latents
from casewright_backgammon.latent_training import EPOCHS, WEIGHTS, examples_of, train_network
from casewright_backgammon.play_features import PlayFeatures, phase, play_features
from casewright_backgammon.position import Position
from casewright_backgammon.training import choice_loss
from casewright_mcbr.layers import LATENT_SIZE, Floats, unit_rows
from casewright_mcbr.ranking import FIGURE_NAMES, KS, ranking_figures

#: Names of representations; ``latent_name`` returns the others.
ENCODING = "encoding"
SHUFFLED = "control: latent (1, 0), worth shuffled"
RANDOM = "control: random numbers"
#: Names of the tables. The names say which positions' vectors represent a query and a case.
COMBINED = "3: a query is its position, a case the mean of before and after its best play"
POSITIONS_ONLY = "3: a query is its position, a case its position"
WITH_PLAY = "3: a query is the mean of before and after the play that was made, a case as well"
NO_CASES = "without cases"
MEAN_FIGURES = "3: mean over the labels, with the paper's figures"
TABLES = (MEAN_FIGURES, COMBINED, POSITIONS_ONLY, WITH_PLAY)
#: Number of nearest cases; each figure is averaged over the first 1, 2, … of these cases.
NEAREST_COUNT = KS[-1]
#: The paper's Table 3 (its labels are chapters), with figures in the order of ``FIGURE_NAMES``.
TABLE_3 = {
    ENCODING: (0.353, 0.025, 0.044, 0.366, 0.466),
    "latent (0, 1)": (0.366, 0.026, 0.046, 0.380, 0.479),
    "latent (1, 0)": (0.444, 0.035, 0.061, 0.455, 0.537),
    "latent (1, 1)": (0.409, 0.030, 0.053, 0.422, 0.518),
    "latent (1, 0.1)": (0.409, 0.031, 0.055, 0.423, 0.518),
    "latent (1, 0.01)": (0.444, 0.034, 0.060, 0.456, 0.542),
    "latent (1, 0.001)": (0.431, 0.034, 0.060, 0.440, 0.527),
    "latent (1, 0.0001)": (0.442, 0.035, 0.061, 0.454, 0.543),
}
#: Number of queries whose similarities to all cases are in memory at once.
_BLOCK_SIZE = 256
#: Two candidates are equally near if their distances differ by at most this.
_TIE_TOLERANCE = 1e-6
#: Leads in pips that separate the five values of the label "race lead".
_LEAD_BOUNDS = (-30, -10, 10, 30)
#: GNU Backgammon's class number of a race; lower numbers are bear-off databases.
_RACE_CLASS = 8

#: Indices of cases.
Indices = NDArray[np.intp]
#: Returns the vectors of n positions, array (n, units), not scaled to length 1.
Embed = Callable[[Sequence[Position]], Floats]


def _engine_class(decision: Decision, _: PlayFeatures) -> Hashable:
    number = decision.engine_class
    return "bear-off" if number is not None and number < _RACE_CLASS else number


def _lead(decision: Decision, _: PlayFeatures) -> Hashable:
    own, other = decision.position.pips
    return int(np.searchsorted(_LEAD_BOUNDS, other - own))


#: Functions from a decision and the effects of its best play to a label's value, by label name.
LABELS: dict[str, Callable[[Decision, PlayFeatures], Hashable]] = {
    "engine's class": _engine_class,
    "phase": lambda decision, _: phase(decision.position),
    "race lead": _lead,
    "hits": lambda _, play: play.hits > 0,
    "makes a point": lambda _, play: bool(play.points_made),
    "anchor": lambda _, play: (bool(play.anchors_made), bool(play.anchors_broken)),
    "back checkers leave": lambda _, play: play.left_back > 0,
    "blots left": lambda _, play: min(len(play.blots), 3),
}
#: Labels of positions. The other labels are of the engine's best plays, which queries lack.
POSITION_LABELS = ("engine's class", "phase", "race lead")


def labels_of(decisions: Sequence[Decision]) -> dict[str, NDArray[np.str_]]:
    """Return each label's values for n decisions, arrays (n), by the label's name."""
    features = [play_features(decision.position, decision.after(0)) for decision in decisions]
    return {
        name: np.array(list(map(str, map(value_of, decisions, features))))
        for name, value_of in LABELS.items()
    }


def latent_name(value_weight: float, decoder_weight: float) -> str:
    """Return a latent's name in the tables, from the weights of the training's two losses."""
    return f"latent ({value_weight:g}, {decoder_weight:g})"


@dataclass(frozen=True, slots=True)
class Representation:
    """A representation of decisions as vectors; the methods return vectors of length 1."""

    name: str  # the name in the tables
    embed: Embed
    network: PositionNetwork | None = None  # computes latents; None for other vectors

    def case_vectors(self, decisions: Sequence[Decision]) -> Floats:
        """Return the means of the vectors of the positions before and after the best plays."""
        return self._means(decisions, [decision.after(0) for decision in decisions])

    def position_vectors(self, decisions: Sequence[Decision]) -> Floats:
        """Return the vectors of the decisions' positions, without plays."""
        return unit_rows(self.embed([decision.position for decision in decisions]))

    def play_vectors(self, decisions: Sequence[Decision]) -> Floats:
        """Return the same means as ``case_vectors``, but for the plays that were made."""
        return self._means(decisions, [d.after(d.made_or_best_rank) for d in decisions])

    def after_vectors(self, positions: Sequence[Position]) -> Floats:
        """Return the vectors of positions after a play, from the side of the next player."""
        return unit_rows(self.embed([position.flipped for position in positions]))

    def _means(self, decisions: Sequence[Decision], afters: Sequence[Position]) -> Floats:
        before = self.embed([decision.position for decision in decisions])
        return unit_rows(mean_latents(before, self.embed(afters)))


def representations(
    split: Split, *, epochs: int = EPOCHS, advance: Callable[[int], None] = lambda _: None
) -> list[Representation]:
    """Return all representations, with networks trained on the split's cases and pool."""
    examples = examples_of(split.cases, split.pool)
    trainings = [(latent_name(v, d), examples, v / (v + d)) for v, d in WEIGHTS]
    trainings.append((SHUFFLED, examples.shuffled(0), 1.0))
    result = [Representation(ENCODING, encode)]
    for name, training_examples, value_weight in trainings:
        network = train_network(training_examples, value_weight, epochs=epochs)
        result.append(Representation(name, network.latents, network))
        advance(1)
    rng = np.random.default_rng(0)

    def random_vectors(positions: Sequence[Position]) -> Floats:
        return rng.standard_normal((len(positions), LATENT_SIZE)).astype(np.float32)

    return [*result, Representation(RANDOM, random_vectors)]


@dataclass(frozen=True)
class MeasuredSplit:
    """A split with data for all representations: labels, rolls, and positions after candidates."""

    split: Split

    @cached_property
    def labels(self) -> tuple[Mapping[str, NDArray[np.str_]], Mapping[str, NDArray[np.str_]]]:
        """The labels of the queries and of the cases; see ``labels_of``."""
        return labels_of(self.split.queries), labels_of(self.split.cases)

    @cached_property
    def rolls(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rolls of the queries and of the cases: two-digit numbers, the smaller die first."""

        def numbers(decisions: Sequence[Decision]) -> NDArray[np.int64]:
            return np.array([10 * min(item.dice) + max(item.dice) for item in decisions])

        return numbers(self.split.queries), numbers(self.split.cases)

    @cached_property
    def afters(self) -> list[list[Position]]:
        """The positions after the candidates of each query."""
        queries = self.split.queries
        return [[query.after(rank) for rank in range(len(query.candidates))] for query in queries]


def nearest_cases(
    data: MeasuredSplit, queries: Floats, cases: Floats, count: int, *, same_roll: bool
) -> Indices:
    """Return the indices (queries, count) of each query's nearest cases by cosine, nearest first.

    Args:
        queries: Vectors of the queries, of length 1, array (queries, units).
        cases: Vectors of the cases, of length 1, array (cases, units).
        same_roll: Consider only cases with the query's roll.
    """
    query_rolls, case_rolls = data.rolls
    blocks = []
    for start in range(0, len(queries), _BLOCK_SIZE):
        cosines = queries[start : start + _BLOCK_SIZE] @ cases.T
        if same_roll:
            cosines[query_rolls[start : start + _BLOCK_SIZE, None] != case_rolls] = -np.inf
        top = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(cosines, top, axis=1), axis=1, kind="stable")
        blocks.append(np.take_along_axis(top, order, axis=1))
    return np.concatenate(blocks)


def comparison_rows(
    data: MeasuredSplit, compared: Sequence[Representation]
) -> list[dict[str, Any]]:
    """Return the rows of the tables ``TABLES`` and ``NO_CASES``."""
    rows: list[dict[str, Any]] = []
    split = data.split
    with progress_bar("Retrieving", len(compared)) as advance:
        for representation in compared:
            queries = representation.position_vectors(split.queries)
            cases = representation.case_vectors(split.cases)
            rows.append(_figures_row(data, representation, queries, cases))
            rows.append(_row(data, representation, COMBINED, queries, cases))
            positions = representation.position_vectors(split.cases)
            rows.append(_row(data, representation, POSITIONS_ONLY, queries, positions))
            # Equity losses would mean little: these queries contain a play that is often the best.
            plays = representation.play_vectors(split.queries)
            rows.append(_row(data, representation, WITH_PLAY, plays, cases, has_losses=False))
            advance(1)
    return rows + _rows_without_cases(split.queries, compared)


def _figures_row(
    data: MeasuredSplit, representation: Representation, queries: Floats, cases: Floats
) -> dict[str, Any]:
    """Return a representation's figures, averaged over the labels, beside the paper's figures."""
    nearest = nearest_cases(data, queries, cases, NEAREST_COUNT, same_roll=False)
    figures = np.mean(list(figures_by_label(data, nearest).values()), axis=0)
    published = TABLE_3.get(representation.name, (None,) * len(FIGURE_NAMES))
    return {
        "table": MEAN_FIGURES,
        "compared by": representation.name,
        **dict(zip(FIGURE_NAMES, map(float, figures), strict=True)),
        **{f"paper {name}": value for name, value in zip(FIGURE_NAMES, published, strict=True)},
    }


def _row(
    data: MeasuredSplit,
    representation: Representation,
    table: str,
    queries: Floats,
    cases: Floats,
    *,
    has_losses: bool = True,
) -> dict[str, Any]:
    """Return a representation's precision for each label and, if ``has_losses``, equity losses."""
    nearest = nearest_cases(data, queries, cases, NEAREST_COUNT, same_roll=False)
    figures = figures_by_label(data, nearest)
    row: dict[str, Any] = {"table": table, "compared by": representation.name}
    row |= {label: float(precision) for label, (precision, *_) in figures.items()}
    row["mean"] = mean([row[label] for label in figures])
    if has_losses:
        nearest_same_roll = nearest_cases(data, queries, cases, 1, same_roll=True)
        row["lost"] = loss_by_cosine(data, representation, nearest)
        row["lost, same roll"] = loss_by_cosine(data, representation, nearest_same_roll)
        row["near by checkers"] = loss_by_checkers(data, nearest_same_roll)
    return row


def _rows_without_cases(
    queries: Sequence[Decision], compared: Sequence[Representation]
) -> list[dict[str, Any]]:
    random_losses = [
        mean([query.equity_loss(rank) for rank in range(len(query.candidates))])
        for query in queries
    ]
    made_losses = [query.equity_loss(query.made_or_best_rank) for query in queries]
    losses = {
        "a listed candidate at random": mean(random_losses),
        "the play that was made": mean(made_losses),
    }
    for representation in compared:
        if (network := representation.network) is not None:
            name = f"the network's choice: {representation.name}"
            losses[name] = mean([choice_loss(network, query) for query in queries])
    return [{"table": NO_CASES, "chosen by": name, "lost": loss} for name, loss in losses.items()]


def figures_by_label(data: MeasuredSplit, nearest: Indices) -> dict[str, NDArray[np.float64]]:
    """Return the figures of ``FIGURE_NAMES`` by label, for the queries' ``nearest`` cases.

    Each value of a label has the same weight, even if it is rare, so the precision of random cases
    is 1 / (number of values).
    """
    figures = {}
    query_labels, all_case_labels = data.labels
    for name, labels in query_labels.items():
        case_labels = all_case_labels[name]
        frequencies = Counter(case_labels.tolist())
        relevant_counts = np.array([frequencies[value] for value in labels.tolist()])
        is_relevant = case_labels[nearest] == labels[:, None]
        by_query = ranking_figures(is_relevant, relevant_counts).mean(axis=0)
        by_value = [by_query[:, labels == value].mean(axis=1) for value in np.unique(labels)]
        figures[name] = np.mean(by_value, axis=0)
    return figures


def loss_by_cosine(data: MeasuredSplit, representation: Representation, nearest: Indices) -> float:
    """Return the queries' mean equity loss if the best play of the nearest case is reused.

    The player makes the candidate that is most similar to that play. The similarity is the
    representation's cosine of the positions after the two plays.
    """
    vectors = representation.after_vectors(list(chain.from_iterable(data.afters)))
    vectors_by_query = np.split(vectors, np.cumsum([len(afters) for afters in data.afters])[:-1])
    case_afters = [data.split.cases[case].after(0) for case in nearest[:, 0]]
    targets = representation.after_vectors(case_afters)
    triples = zip(data.split.queries, vectors_by_query, targets, strict=True)
    return mean([_nearest_loss(query, -(rows @ target)) for query, rows, target in triples])


def loss_by_checkers(data: MeasuredSplit, nearest: Indices) -> float:
    """Return the same loss as ``loss_by_cosine``, with another measure of the similarity of plays.

    Plays are similar if the positions after them have similar numbers of checkers on each point.
    """
    losses = []
    triples = zip(data.split.queries, data.afters, nearest[:, 0], strict=True)
    for query, afters, case in triples:
        target = _count_vector(data.split.cases[case].after(0))
        counts = np.stack([_count_vector(after) for after in afters])
        losses.append(_nearest_loss(query, np.abs(counts - target).sum(axis=1)))
    return mean(losses)


def _nearest_loss(query: Decision, distances: NDArray[np.float64] | Floats) -> float:
    """Return the equity loss of the nearest candidate, or the mean of equally near candidates.

    Candidates are ordered by equity, so the first of equally near candidates would be the best.
    """
    nearest_ranks = np.flatnonzero(distances <= distances.min() + _TIE_TOLERANCE)
    return mean([query.equity_loss(int(rank)) for rank in nearest_ranks])


def _count_vector(position: Position) -> NDArray[np.float64]:
    return np.array([*position.own, *position.other], dtype=np.float64)
