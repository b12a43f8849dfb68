"""Tests of backgammon's bench on a part of the shipped decisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from casewright.serve.cli.commands import app
from casewright_backgammon import bench_retrieval as retrieval
from casewright_backgammon.bench_answers import bert_scores
from casewright_backgammon.bench_retrieval import (
    COMBINED,
    ENCODING,
    LABELS,
    MEAN_FIGURES,
    NO_CASES,
    POSITIONS_ONLY,
    RANDOM,
    SHUFFLED,
    WITH_PLAY,
    MeasuredSplit,
    Representation,
    loss_by_checkers,
    loss_by_cosine,
    nearest_cases,
)
from casewright_backgammon.case_base import shipped_decisions
from casewright_backgammon.encoding import encode
from casewright_backgammon.games import Split, part_of
from casewright_backgammon.latent_training import train_network
from tests.support.chat_server import chat_server


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backgammon")
    lines = []
    for decision in shipped_decisions()[:900]:
        names = ("win", "win_g", "win_bg", "lose_g", "lose_bg")
        value = dict(zip(names, decision.best.chances, strict=True))
        lines.append(json.dumps({**decision.to_dict(), "value": {**value, "class": 10}}))
    (folder / "decisions-dev.jsonl").write_text("\n".join(lines), encoding="utf-8")
    pool = [
        json.dumps({"position_id": record["position_id"], "value": record["value"]})
        for record in map(json.loads, lines[-20:])
    ]
    (folder / "wildbg_positions.jsonl").write_text("\n".join(pool), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def report(data: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch, chat_server("8/5 it is. Best play: 8/5") as server:
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("OPENAI_BASE_URL", server.url)

        def train_briefly(examples: Any, weighting: float, epochs: int) -> Any:
            return train_network(examples, weighting, epochs=2)

        patch.setattr(retrieval, "train_network", train_briefly)
        options = ["bench", "backgammon", "--data", str(data), "--answers", "6", "--boards", "3"]
        completed = CliRunner().invoke(
            app, [*options, "--chat", "openai:tiny", "--json"], catch_exceptions=False
        )
    document: dict[str, Any] = json.loads(completed.stdout)
    return document


def rows(report: dict[str, Any], table: str) -> list[dict[str, Any]]:
    return [row for row in report["rows"] if row["table"] == table]


def test_each_table_has_a_row_per_representation_and_control(
    report: dict[str, Any],
) -> None:
    for table in (COMBINED, POSITIONS_ONLY, WITH_PLAY):
        names = [row["compared by"] for row in rows(report, table)]
        assert len(names) == 10
        assert {ENCODING, SHUFFLED, RANDOM} <= set(names)
        assert sum(name.startswith("latent (") for name in names) == 7
        assert all({*LABELS} <= set(row) for row in rows(report, table))
    # Such a query contains the play that was made, so its rows have no loss.
    assert all("lost" not in row for row in rows(report, WITH_PLAY))


def test_retrieval_rows_contain_the_published_figures_of_the_same_weights(
    report: dict[str, Any],
) -> None:
    by_name = {row["compared by"]: row for row in rows(report, MEAN_FIGURES)}
    assert [name for name, row in by_name.items() if row["paper precision"] is None] == [
        SHUFFLED,
        RANDOM,
    ]
    assert by_name["latent (1, 0.01)"]["paper NDCG"] == 0.456
    mean_latents = {row["compared by"]: row for row in rows(report, COMBINED)}
    for name, row in by_name.items():
        assert row["precision"] == pytest.approx(mean_latents[name]["mean"])
        assert row["recall"] <= row["precision"] <= row["MRR"]
        assert row["recall"] <= row["F1"] <= row["precision"]


def test_loss_without_cases_is_the_loss_of_the_plays_in_the_data(report: dict[str, Any]) -> None:
    queries = [entry for entry in shipped_decisions()[:900] if part_of(entry.game) == 0]
    cases = [entry for entry in shipped_decisions()[:900] if part_of(entry.game) != 0]
    known = {entry.position for entry in cases}
    known |= {entry.after(n).flipped for entry in cases for n in range(len(entry.candidates))}
    queries = [entry for entry in queries if entry.position not in known]
    lost = {entry["chosen by"]: entry["lost"] for entry in rows(report, NO_CASES)}
    assert lost["the play that was made"] == pytest.approx(
        np.mean([entry.equity_loss(entry.made_or_best_rank) for entry in queries])
    )
    assert report["settings"]["queries"] == len(queries)


def test_answer_table_has_text_and_play_measures_for_each_context(report: dict[str, Any]) -> None:
    by_answerer = {(row["answered by"], row["context"]): row for row in rows(report, "4")}
    published = [name for name, _ in by_answerer if name.startswith("paper: ")]
    assert len(published) == 12
    assert by_answerer["paper: Llama-3.1-70B", "three cases"]["cosine, MPNet"] == 0.632
    assert len(by_answerer) - len(published) == 7
    reuse = by_answerer["reuse, no model", "three cases"]
    assert reuse["legal play"] == 1
    assert {"lost, at least", "BERTScore"} <= set(reuse)
    # The model's play is legal with few rolls.
    assert by_answerer["openai:tiny", "none"]["legal play"] < 1


def test_shares_of_boards_read_right_refused_and_wrong_sum_to_1(report: dict[str, Any]) -> None:
    board_rows = rows(report, "boards")
    assert len(board_rows) >= 2
    for row in board_rows:
        outcomes = ("right", "refused_right", "refused_wrong", "wrong")
        assert sum(row[name] for name in outcomes) == pytest.approx(1, abs=0.01)


def split_of(count: int) -> Split:
    return Split(shipped_decisions()[:count], shipped_decisions()[count : count + 40], [], 0)


def test_nearest_cases_have_the_highest_cosine_and_optionally_the_same_roll() -> None:
    split = split_of(300)
    measured, encoder = MeasuredSplit(split), Representation("encoding", encode)
    queries, cases = encoder.position_vectors(split.queries), encoder.position_vectors(split.cases)
    order = nearest_cases(measured, queries, cases, 4, same_roll=False)
    cosines = queries @ cases.T
    best = -np.sort(-cosines, axis=1)[:, :4]
    assert np.allclose(np.take_along_axis(cosines, order, axis=1), best, atol=1e-6)
    nearest = nearest_cases(measured, queries, cases, 1, same_roll=True)[:, 0]
    for query, index in zip(split.queries, nearest, strict=True):
        assert sorted(query.dice) == sorted(split.cases[index].dice)


def test_loss_is_zero_for_the_own_decision_and_the_mean_for_equal_cosines() -> None:
    own = shipped_decisions()[:50]
    measured, encoder = MeasuredSplit(Split(own, own, [], 0)), Representation("encoding", encode)
    order = np.arange(50)[:, None]
    assert loss_by_cosine(measured, encoder, order) == 0
    assert loss_by_checkers(measured, order) == 0
    # Among equally near plays, the loss is their mean and not the zero of the best play.
    constant = Representation("flat", lambda boards: np.ones((len(boards), 3), dtype=np.float32))
    mean = np.mean([np.mean([o.equity_loss(p) for p in range(len(o.candidates))]) for o in own])
    assert loss_by_cosine(measured, constant, order) == pytest.approx(mean)


def test_bert_score_is_one_for_the_same_words_and_less_for_others() -> None:
    identical, similar, other = bert_scores(
        ["The best play is 8/5 6/5.", "He should make his five point.", "Rain fell all night."],
        ["The best play is 8/5 6/5.", "Making the five point is right.", "Make the five point."],
    )
    assert identical == pytest.approx(1)
    assert 1 > similar > other


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--data", "nowhere"], "lacks decisions-dev.jsonl"),
        (["--data", "DATA", "--chat", "nobody"], "nobody"),
    ],
)
def test_backgammon_bench_refuses_invalid_options(
    data: Path, options: list[str], word: str
) -> None:
    arguments = [str(data) if option == "DATA" else option for option in options]
    completed = CliRunner().invoke(app, ["bench", "backgammon", *arguments])
    assert word in str(completed.exception) + completed.output
