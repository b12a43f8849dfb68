"""MCBR-RAG's experiments on backgammon (Marom 2024, section 5.2): boards, Table 3 and Table 4."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from casewright.bench.report import Report
from casewright.stores import Encoder, default_encoder
from casewright.stores.encoders.sources import named_encoder
from casewright.stores.progress import progress_bar
from casewright_backgammon.bench_answers import answer_rows, by_chat, by_network, reuse
from casewright_backgammon.bench_boards import reading_rows
from casewright_backgammon.bench_retrieval import (
    ALONE,
    COMBINED,
    ENCODING,
    FIGURES,
    LABELS,
    OF_POSITIONS,
    RANDOM,
    SHUFFLED,
    WITH_PLAY,
    WITHOUT,
    MeasuredSplit,
    comparison_rows,
    latent_name,
    representations,
)
from casewright_backgammon.decision import read_decisions
from casewright_backgammon.games import DECISIONS, Split, part_of, read_split, split_games
from casewright_backgammon.latent_training import EPOCHS, WEIGHTS

BOARDS, ANSWERS = "boards", "4"
#: The latent with the training of the shipped latent.
SHIPPED = latent_name(1, 0)
_NOTES = (
    "The asked games took no part in training, nor are they cases; nor is a position that a case "
    "has asked about. A case of the query's own game or position never counts.",
    "Table 3, labels: precision, the mean over 1 to 5 nearest cases; each value of a label weighs "
    "the same, so that chance has 1 / (number of values). The paper's labels are of a closed "
    f"collection; here {', '.join(OF_POSITIONS)} are of the position, the others of the engine's "
    "best play, which a query does not tell.",
    "lost: equity given up by the listed candidate that leads nearest to where the nearest case's "
    "best play led, near by the same representation; same roll: only cases of the query's roll; "
    "near by checkers: the same cases, near by how many checkers stand elsewhere. Ties count by "
    "their mean.",
    "The seven weights of value and decoder are the paper's, of losses that are first scaled to "
    "like size here. Its cases are lessons, labelled by their chapters.",
    "Table 4: references are the engine's analyses in words, written by the same templates as the "
    "network's own analysis: its words are alike by that alone, and the equity lost is the truth. "
    "A legal play that the engine does not list loses at least what the worst listed one does. "
    "retained: share of the analyses that Revise would let in as a case. Rows of the paper are its "
    "Table 4: chat models that are not here, other references and encoders; --chat asks one.",
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
    """Measure the reading of boards, retrieval, and answers."""
    split = _training_split(data) if choosing else read_split(data)
    # Refuse an unusable model before minutes of training.
    encoders: dict[str, Encoder] = {"packaged": default_encoder()}
    if encoder is not None:
        encoders[encoder] = named_encoder(encoder)
    asker = None
    if chat is not None:
        from casewright.planner import chat_model
        from casewright.planner.chat_call import chat_text

        asker = chat_text(chat_model(chat))
    started = time.perf_counter()
    measured = MeasuredSplit(split)
    with progress_bar("Training latents", len(WEIGHTS) + 1, show=None) as advance:
        ways = representations(split, epochs=epochs, advance=advance)
    trained = time.perf_counter() - started
    rows = comparison_rows(measured, ways)
    if not choosing:
        read = reading_rows([decision.position for decision in split.queries], count=boards)
        rows = [{"table": BOARDS, **row} for row in read] + rows
        way = next(way for way in ways if way.name == SHIPPED)
        assert way.network is not None
        answerers = [reuse(way.network), by_network(way.network)]
        if asker is not None and chat is not None:
            answerers.append(by_chat(chat, asker))
        rows += answer_rows(measured, way, answerers, encoders, answers)
    return Report(
        bench="backgammon",
        settings={
            "cases": len(split.cases),
            "queries": len(split.queries),
            "left out: positions that cases have": split.left_out,
            "epochs": epochs,
            "choosing": choosing,
        },
        figures={**_figures(rows), "training_seconds": trained},
        rows=rows,
        notes=_NOTES[:4] if choosing else _NOTES,
        draw=lambda axes: _draw(axes, rows),
        titles={
            BOARDS: "Boards read",
            FIGURES: f"Table {FIGURES}",
            COMBINED: f"Table {COMBINED}",
            ALONE: f"Table {ALONE}",
            WITH_PLAY: f"Table {WITH_PLAY}",
            WITHOUT: "Equity lost without cases",
            ANSWERS: "Table 4: answers",
        },
    )


def _training_split(data: Path) -> Split:
    """Return a split of the training games; a quarter of these games are queries."""
    whole = read_split(data)
    decisions = [
        decision for decision in read_decisions(data / DECISIONS) if part_of(decision.game) != 0
    ]
    return split_games(decisions, whole.pool, part=1)


def _figures(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    slugs = {ENCODING: "encoding", SHIPPED: "latent", SHUFFLED: "shuffled"}
    slugs[RANDOM] = "random_cases"
    figures: dict[str, float] = {}
    for row in rows:
        slug = slugs.get(row.get("compared by", ""))
        if row["table"] == COMBINED and slug:
            figures[f"labels_{slug}"] = row["mean"]
        if row["table"] == ALONE and slug:
            figures[f"lost_same_roll_{slug}"] = row["lost, same roll"]
    without = {row["chosen by"]: row["lost"] for row in rows if row["table"] == WITHOUT}
    figures["lost_random_candidate"] = without["a listed candidate at random"]
    figures["lost_by_people"] = without["the play that was made"]
    return figures


def _draw(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    lines = [row for row in rows if row["table"] == COMBINED]
    names = [row["compared by"] for row in lines]
    height = 0.8 / len(LABELS)
    for number, label in enumerate(LABELS):
        places = [line + number * height for line in range(len(names))]
        axes.barh(places, [row[label] for row in lines], height, label=label)
    axes.set_yticks([line + 0.4 for line in range(len(names))], names)
    axes.invert_yaxis()
    axes.set_xlabel("precision, mean over 1 to 5 cases")
    axes.set_xlim(0, 1.2)
    axes.legend(fontsize="x-small", loc="center right")
