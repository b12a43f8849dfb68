"""Tests of Math-24's bench in the paper's protocol, on other puzzles."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from casewright.errors import InputError
from casewright.planner import chat_model
from casewright.serve.cli.commands import app
from casewright_math24 import bench as represent
from casewright_math24.bench import (
    FIGURE_NAMES,
    Puzzles,
    chat_answerer,
    read_puzzles,
    retrieval_figures,
)
from casewright_math24.decomposition import classes, decomposable_problems
from casewright_math24.latent_training import train_contrastive_network, train_paper_network
from tests.support.chat_server import chat_server, unused_url


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("math24")
    problems = decomposable_problems()[::3]
    lines = [{"problem": p, "classes": sorted(classes(p))} for p in problems]
    cases = "\n".join(map(json.dumps, lines))
    (folder / "cases_466.jsonl").write_text(cases, encoding="utf-8")
    splits = {"splits": [problems[run::8] for run in range(3)]}
    (folder / "test_splits_10x30.json").write_text(json.dumps(splits), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def report(data: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        brief = (
            partial(train_contrastive_network, steps=80),
            partial(train_paper_network, epochs=40),
        )
        patch.setattr(represent, "train_contrastive_network", brief[0])
        patch.setattr(represent, "train_paper_network", brief[1])
        options = ["bench", "math24", "--data", str(data), "--runs", "2", "--json"]
        completed = CliRunner().invoke(app, options, catch_exceptions=False)
    document: dict[str, Any] = json.loads(completed.stdout)
    return document


def find_row(report: dict[str, Any], name: str, label: str, k: int | None = None) -> dict[str, Any]:
    (match,) = [
        entry
        for entry in report["rows"]
        if entry["table"] == "1"
        and (entry["cases by"], entry["relevant"], entry["k"]) == (name, label, k)
    ]
    return dict(match)


def test_retrieval_figures_equal_those_calculated_by_hand() -> None:
    # Three cases and one test; the nearest case is another class, the others are right.
    puzzles = Puzzles(
        problems=[(1, 1, 1, 11)] * 6,
        classes=[frozenset({(12, 0, 3)})] * 2 + [frozenset({(8, 0, 3)})] + [frozenset()] * 3,
        splits={0: [0]},
    )
    vectors = np.eye(6, dtype=np.float32)
    vectors[0] = [1, 0.8, 0.9, 0.1, 0.1, 0.1]
    figures = retrieval_figures(puzzles, lambda *_: vectors, [0])
    precision, recall, f1, ndcg, mrr = figures["SCD"][1]
    assert (precision, recall, mrr) == (0.5, 1.0, 0.5)
    assert f1 == pytest.approx(2 / 3)
    gain = 1 / np.log2(3)
    assert ndcg == pytest.approx(gain / (1 + gain))
    assert figures["SCD"][0].tolist() == [0.0] * 5


def test_report_has_rows_per_representation_and_k_with_the_papers_figures(
    report: dict[str, Any],
) -> None:
    for name, published in ((represent.FEATURES, 0.454), (represent.PAPER, 0.642)):
        mean = find_row(report, name, "SCD")
        assert mean["paper precision"] == published
        rows = [find_row(report, name, "SCD", k) for k in range(1, 6)]
        for figure in FIGURE_NAMES:
            assert mean[figure] == pytest.approx(np.mean([entry[figure] for entry in rows]))
    assert find_row(report, represent.SOLVER, "SCD")["precision"] > 0.8
    learned = find_row(report, represent.CONTRASTIVE, "SCD")["precision"]
    assert learned > find_row(report, represent.SHUFFLED, "SCD")["precision"] + 0.1
    assert learned > find_row(report, represent.RANDOM, "SCD")["precision"] + 0.1


def test_reuse_accuracy_is_reported_with_and_without_a_second_attempt(
    report: dict[str, Any],
) -> None:
    rows = [entry for entry in report["rows"] if entry.get("answered by") == "reuse, no model"]
    shares = {(entry["context"], entry["attempts"]): entry["accuracy"] for entry in rows}
    assert set(shares) == {(k, n) for k in ("none", "general", "top") for n in (1, 2)}
    assert shares["none", 1] == 0
    assert shares["top", 2] >= shares["top", 1] > shares["general", 1]
    top = next(entry for entry in rows if entry["context"] == "top")
    assert top["faithfulness"] > top["negative rejection"]
    figures = report["figures"]
    assert figures["revise_gain"] == pytest.approx(shares["top", 2] - shares["top", 1])


def test_report_contains_controls_without_cases_beside_reuse(
    report: dict[str, Any], data: Path
) -> None:
    shares = {
        (entry["answered by"], entry["context"], entry["attempts"]): entry["accuracy"]
        for entry in report["rows"]
        if entry["table"] == "2"
    }
    puzzles = read_puzzles(data)
    for larger in (24, 12, 8, 6):
        runs = [
            [
                any(entry[0] == larger for entry in puzzles.classes[test])
                for test in puzzles.splits[run]
            ]
            for run in range(2)
        ]
        expected = np.mean([np.mean(run) for run in runs])
        assert shares[f"control: always factor {larger}", "general", 1] == pytest.approx(expected)
    assert (
        shares["control: factor 6, then 12", "general", 2]
        >= (shares["control: always factor 6", "general", 1])
    )
    top = shares["reuse, no model", "top", 1]
    assert shares["control: a random case's plans", "top", 1] < top
    assert shares["reuse, the case's own pair alone", "top", 1] <= top


def test_nested_settings_are_chosen_without_a_test_puzzle(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    puzzles, trainings = read_puzzles(data), []

    def train(problems: Any, labels: Any, **options: Any) -> Any:
        trainings.append(set(problems))
        return train_contrastive_network(problems, labels, steps=5, seed=options["seed"])

    monkeypatch.setattr(represent, "train_contrastive_network", train)
    representations = represent.representations(puzzles, nested=True)
    retrieval_figures(puzzles, representations[represent.NESTED], [0, 1])
    rounds = len(represent.GRID) + 1
    assert len(trainings) == 2 * rounds
    for run in (0, 1):
        tests = {puzzles.problems[index] for index in puzzles.splits[run]}
        *inner, last = trainings[run * rounds : (run + 1) * rounds]
        assert not tests & last
        assert all(puzzle_set < last for puzzle_set in inner)
        assert len({frozenset(puzzle_set) for puzzle_set in inner}) == 1


def test_training_of_a_run_contains_no_test_puzzle(data: Path) -> None:
    puzzles = read_puzzles(data)
    for run, split in puzzles.splits.items():
        assert not set(puzzles.training(run)) & set(split)
    cases: list[list[int]] = []
    retrieval_figures(
        puzzles,
        lambda indices, labels, run: (
            cases.append(list(indices)),
            np.ones((len(puzzles.problems), 2), dtype=np.float32),
        )[1],
        [0, 1],
    )
    assert [set(entry) & set(puzzles.splits[n]) for n, entry in enumerate(cases)] == [set(), set()]


def test_a_folder_without_the_puzzles_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cases_466.jsonl").write_text('{"problem": [1, 2]}', encoding="utf-8")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="does not hold the puzzles"):
            read_puzzles(folder)


def test_chat_answerer_sends_hints_and_a_correction_and_reports_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    right, wrong = "Final Answer: (8 - 2) * (7 - 3) = 24", "Final Answer: 8 * 3 = 24"
    with chat_server(wrong, wrong, right) as server:
        answer = chat_answerer(chat_model("openai:tiny", base_url=server.url, api_key="none"))
        assert not answer((2, 3, 7, 8), "none", [], 1)
        assert answer((2, 3, 7, 8), "top", [(6, 0, 3)], 2)
        requests = [entry.body["messages"] for entry in server.requests]
    assert "hint" not in requests[0][-1]["content"]
    assert "Make 6 of 2 and 8" in requests[1][-1]["content"]
    assert "must use 2, 3, 7, 8" in requests[2][-1]["content"]
    with pytest.raises(InputError, match="failed"):
        chat_answerer(
            chat_model("openai:tiny", base_url=unused_url(), api_key="none", max_retries=0)
        )((2, 3, 7, 8), "none", [], 1)
