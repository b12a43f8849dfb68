"""MCBR-RAG's backgammon experiments (Marom 2024, section 5.2): board reading, Tables 3 and 4."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.report import Report
from casewright.stores import Encoder, default_encoder
from casewright.stores.encoders.sources import named_encoder
from casewright.stores.progress import progress_bar
from casewright_backgammon import bench_retrieval as retrieval
from casewright_backgammon.bench_answers import (
    answer_rows,
    chat_answerer,
    network_answerer,
    reuse_answerer,
)
from casewright_backgammon.bench_boards import reading_rows
from casewright_backgammon.decision import read_decisions
from casewright_backgammon.games import DECISIONS, part_of, read_split, split_games
from casewright_backgammon.latent_training import EPOCHS, WEIGHTS

#: Names of the tables of board reading and of answers.
BOARDS, ANSWERS = "boards", "4"
#: Name of the latent whose network is trained with the same two loss weights as the shipped one.
SHIPPED = retrieval.latent_name(value_weight=1, decoder_weight=0)
_NOTES = (
    "The games of the queries took no part in training and are not cases, and no case has the "
    "position of a query.",
    "Table 3, labels: precision, the mean over 1 to 5 nearest cases. Each value of a label has the "
    "same weight, so that random cases score 1 / (number of values). The paper's labels are from a "
    f"closed collection; here {', '.join(retrieval.POSITION_LABELS)} are labels of the position, "
    "the others of the engine's best play, which a query does not contain.",
    "lost: equity loss of the candidate whose resulting position is most similar to that of the "
    "nearest case's best play, by the same representation; same roll: only cases with the query's "
    "roll; near by checkers: as same roll, but positions are compared by the number of checkers "
    "that stand elsewhere. Candidates that are equally similar count with their mean.",
    "The seven weights of value and decoder are the paper's; here the two losses are first scaled "
    "to similar size. The paper's cases are lessons, labelled by their chapters.",
)
_ANSWERS_NOTE = (
    "Table 4: the references are texts of the engine's analyses, by the same templates as the "
    "network's own analysis, whose words are therefore similar; compare the equity losses instead. "
    "The loss of a legal play that the engine does not list is at least that of the worst listed "
    "play. retained: share of the analyses that Revise would accept as a case. The paper's rows "
    "are its Table 4, with other references and encoders, and chat models that this bench does not "
    "include; --chat measures a chat model of yours."
)


def measure_backgammon(
    data: Path,
    *,
    chat: str | None = None,
    answers: int = 200,
    boards: int = 500,
    encoder: str | None = None,
    choosing: bool = False,
    epochs: int = EPOCHS,
) -> Report:
    """Measure retrieval, the reading of ``boards`` boards, and the answers to ``answers`` queries.

    With ``choosing``, measure only retrieval. The queries are then from a quarter of the training
    games, as in the choice of the shipped network.
    """
    split = read_split(data)
    if choosing:
        training = [d for d in read_decisions(data / DECISIONS) if part_of(d.game) != 0]
        split = split_games(training, split.pool, part=1)
    # The models are loaded before the training, which takes minutes, so that errors show early.
    encoders: dict[str, Encoder] = {"packaged": default_encoder()}
    if encoder is not None:
        encoders[encoder] = named_encoder(encoder)
    chat_answerers = []
    if chat is not None:
        from casewright.planner import chat_model
        from casewright.planner.chat_call import chat_text

        chat_answerers = [chat_answerer(chat, chat_text(chat_model(chat)))]
    started = time.perf_counter()
    measured_split = retrieval.MeasuredSplit(split)
    with progress_bar("Training networks", len(WEIGHTS) + 1) as advance:
        representations = retrieval.representations(split, epochs=epochs, advance=advance)
    training_seconds = time.perf_counter() - started
    rows = retrieval.comparison_rows(measured_split, representations)
    if not choosing:
        board_rows = reading_rows([decision.position for decision in split.queries], boards)
        rows = [{"table": BOARDS, **row} for row in board_rows] + rows
        shipped = next(item for item in representations if item.name == SHIPPED)
        network = shipped.network
        assert network is not None
        answerers = [reuse_answerer(network), network_answerer(network), *chat_answerers]
        rows += answer_rows(measured_split, shipped, answerers, encoders, answers)
    return Report(
        bench="backgammon",
        settings={
            "cases": len(split.cases),
            "queries": len(split.queries),
            "left out: positions that cases have": split.omitted_count,
            "epochs": epochs,
            "choosing": choosing,
        },
        figures={**_figures(rows), "training_seconds": training_seconds},
        rows=rows,
        notes=_NOTES if choosing else (*_NOTES, _ANSWERS_NOTE),
        draw=lambda axes: _draw(axes, rows),
        titles={
            BOARDS: "Boards read",
            **{name: f"Table {name}" for name in retrieval.TABLES},
            retrieval.NO_CASES: "Equity lost without cases",
            ANSWERS: "Table 4: answers",
        },
    )


def _figures(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    suffixes = {retrieval.ENCODING: "encoding", SHIPPED: "latent"}
    suffixes |= {retrieval.SHUFFLED: "shuffled", retrieval.RANDOM: "random_cases"}
    figures: dict[str, float] = {}
    for row in rows:
        suffix = suffixes.get(row.get("compared by", ""))
        if row["table"] == retrieval.COMBINED and suffix:
            figures[f"labels_{suffix}"] = row["mean"]
        if row["table"] == retrieval.POSITIONS_ONLY and suffix:
            figures[f"lost_same_roll_{suffix}"] = row["lost, same roll"]
    losses = {row["chosen by"]: row["lost"] for row in rows if row["table"] == retrieval.NO_CASES}
    figures["lost_random_candidate"] = losses["a listed candidate at random"]
    figures["lost_by_people"] = losses["the play that was made"]
    return figures


def _draw(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    """Draw the precisions of ``retrieval.COMBINED``, a group of bars for each representation."""
    shown = [row for row in rows if row["table"] == retrieval.COMBINED]
    starts = np.arange(len(shown))
    height = 0.8 / len(retrieval.LABELS)
    for number, label in enumerate(retrieval.LABELS):
        axes.barh(starts + number * height, [row[label] for row in shown], height, label=label)
    axes.set_yticks(starts + 0.4, [row["compared by"] for row in shown])
    axes.invert_yaxis()
    axes.set_xlabel("precision, mean over 1 to 5 cases")
    axes.set_xlim(0, 1.2)
    axes.legend(fontsize="x-small", loc="center right")
