from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.serve.cli.commands import app
from casewright_legal import bench_retrieval as legal
from casewright_legal.bench_sets import find_sets
from casewright_legal.bench_weightings import (
    KS,
    WEIGHTINGS,
    RetrievalTrial,
    label_of,
    random_f1_at_k,
)
from tests.serve.helpers import run
from tests.support.encoders import HashingEncoder
from tests.support.multihop import TOWNS, multihop_folder, town_items, write_lines

LABELS = [label_of(weights) for weights in WEIGHTINGS]
SETS = ("hotpotqa", "musique")


class CuedEncoder(HashingEncoder):
    cue = "Cue: "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return multihop_folder(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    return legal.measure_legal(folder, HashingEncoder(512))


def rows_by_ranking(report: Report) -> dict[str, Any]:
    return {row["ranking"]: row for row in report.rows}


def test_every_set_and_their_mean_are_scored_by_the_six_weightings(report: Report) -> None:
    rows = rows_by_ranking(report)
    for part in ("", " (test half)"):
        for label in LABELS:
            scores = [rows[f"{name}{part}: {label}"] for name in (*SETS, "all sets")]
            for column in (*(f"k{k}" for k in KS), "mean"):
                first, second, mean = (row[column] for row in scores)
                assert mean == pytest.approx((first + second) / 2)
    assert report.settings["sets"]["musique"] == {
        "cases": 16,
        "questions": 8,
        "questions_left_out": 0,
    }


def test_questions_that_name_both_cases_have_the_best_possible_f1(report: Report) -> None:
    # Both parents are the first two of sixteen cases.
    for row in rows_by_ranking(report).values():
        if row["ranking"] in (f"hotpotqa: {label}" for label in LABELS):
            assert [row[f"k{k}"] for k in KS] == pytest.approx(
                [2 * min(k, 2) / (k + 2) for k in KS]
            )


def test_random_and_shuffled_controls_score_alike_and_below_the_best_weighting(
    report: Report,
) -> None:
    rows, figures = rows_by_ranking(report), report.figures
    for name in SETS:
        chance = rows[f"{name}: random order, expected"]
        assert [chance[f"k{k}"] for k in KS] == pytest.approx(list(random_f1_at_k(16)))
        # A question's own parents rank first, so another question's parents do not.
        shuffled = rows[f"{name}: labels shuffled"]
        assert shuffled["k1"] == 0
        assert shuffled["k19"] == pytest.approx(chance["k19"])
        assert abs(shuffled["mean"] - chance["mean"]) < 0.06
    assert figures["f1_labels_shuffled"] < figures["f1_papers_best_weighting"] / 1.5
    assert figures["ratio_papers_best_weighting_over_random_order"] > 1.5


def test_cosines_decrease_with_rank_and_deciles_enclose_their_mean(report: Report) -> None:
    rows = rows_by_ranking(report)
    mean, low, high = (
        [rows[f"hotpotqa: cosine of the k-th case{part}"][f"k{k}"] for k in KS]
        for part in ("", ", 10 %", ", 90 %")
    )
    assert mean == sorted(mean, reverse=True)
    assert mean[0] > mean[1]
    assert all(a <= b <= c for a, b, c in zip(low, mean, high, strict=True))


def test_best_weighting_is_scored_on_the_test_half_beside_the_papers(report: Report) -> None:
    rows, figures = rows_by_ranking(report), report.figures
    best = tuple(
        figures[f"best_here_weight_of_{name}"] for name in ("question", "support", "entities")
    )
    assert sum(best) == pytest.approx(1)
    row = rows[f"all sets (test half): best {label_of(best)}"]
    assert figures["f1_test_half_best_here"] == pytest.approx(row["mean"])
    paper = rows[f"all sets (test half): {LABELS[-1]}"]
    assert figures["f1_test_half_papers_best_weighting"] == pytest.approx(paper["mean"])
    assert figures["f1_test_half_difference"] == pytest.approx(row["mean"] - paper["mean"])
    assert figures["f1_test_half_difference_low_95"] <= figures["f1_test_half_difference"]


def test_store_ranks_cases_like_the_cosines_of_the_grid(report: Report) -> None:
    assert report.figures["share_of_rankings_alike_by_store_and_by_cosines"] == 1.0


def test_report_contains_the_papers_figures_of_three_encoders(report: Report) -> None:
    rows = rows_by_ranking(report)
    names = [name for name in rows if name.startswith("paper, ")]
    assert names == [
        f"paper, {encoder}: {weights}"
        for encoder in ("BERT", "LegalBERT", "AnglEBERT")
        for weights in LABELS
    ]
    # CBR-RAG names this as its best F1 with k = 3.
    best = rows["paper, AnglEBERT: 0.25 0.40 0.35"]
    assert best["k3"] == 0.3
    assert max(best[f"k{k}"] for k in KS) == 0.3


def test_cue_precedes_only_queries_to_supports_and_entities(
    folder: Path,
) -> None:
    encoder = CuedEncoder(64)
    (data_set,) = find_sets(folder, "musique", 4)
    with RetrievalTrial(data_set, encoder) as trial:
        trial.scores(WEIGHTINGS[-1])
    texts = [text for call in encoder.calls for text in call]
    question = data_set.questions[0].text
    assert texts.count(f"Cue: {question}") == 2
    assert texts.count(question) == 1
    assert not any(
        str(case.problem["support"]) in text
        for case in data_set.cases
        for text in texts
        if text.startswith("Cue: ")
    )


def test_store_ranks_cases_like_cosines_when_many_scores_are_equal(tmp_path: Path) -> None:
    items, number = town_items(), count()
    for item in items:
        item["context"] += [[f"Place {next(number)}", ["It is a place."]] for _ in range(30)]
    write_lines(tmp_path / "hotpotqa-dev.jsonl", items)
    (data_set,) = find_sets(tmp_path)
    # Few dimensions: many texts have one vector.
    with RetrievalTrial(data_set, HashingEncoder(4)) as trial:
        cosines = trial.cosines()
        assert cosines.shape == (3, len(TOWNS), len(data_set.cases))
        assert [trial.agreement(weights, cosines) for weights in WEIGHTINGS] == [1.0] * 6


def test_limit_reduces_the_questions_but_not_the_cases(folder: Path) -> None:
    limited = legal.measure_legal(folder, HashingEncoder(64), only="musique", limit=4)
    assert limited.settings["sets"] == {
        "musique": {"cases": 16, "questions": 4, "questions_left_out": 0}
    }
    assert not any("all sets" in row["ranking"] for row in limited.rows)


def test_plot_shows_each_weighting_and_the_papers_best_over_k(report: Report) -> None:
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert report.draw is not None
    report.draw(axes)
    *encoder_lines, paper = axes.get_lines()
    assert [line.get_label() for line in encoder_lines] == LABELS
    assert paper.get_label() == "paper, AnglEBERT: 0.25 0.40 0.35"
    row = rows_by_ranking(report)[f"all sets: {LABELS[0]}"]
    assert list(encoder_lines[0].get_ydata()) == [row[f"k{k}"] for k in KS]


def test_command_measures_and_draws_with_the_packaged_encoder(folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "legal.png"
    arguments = ["--data", str(folder), "--set", "hotpotqa", "--plot", str(picture), "--json"]
    completed = CliRunner().invoke(app, ["bench", "legal", *arguments], catch_exceptions=False)
    assert completed.exit_code == 0, completed.output
    document = json.loads(completed.stdout)
    assert document["bench"] == "legal"
    assert {"machine", "settings", "figures", "rows"} <= set(document)
    assert document["settings"]["encoder"].startswith("all-MiniLM-L6-v2")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("data", "message"),
    [("nowhere", "no such folder"), ("empty", "it holds no set"), ("broken", "line 1")],
)
def test_invalid_data_folder_is_a_one_line_error(tmp_path: Path, data: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    broken = tmp_path / "broken" / "musique-dev.jsonl"
    broken.parent.mkdir()
    broken.write_text("{not json}\n", encoding="utf-8")
    completed = run(tmp_path, "bench", "legal", "--data", tmp_path / data)
    assert completed.returncode == 2
    assert completed.stdout == ""
    assert message in completed.stderr
    assert len(completed.stderr.strip().splitlines()) == 1


def test_unknown_set_is_an_input_error_that_lists_the_known_sets(folder: Path) -> None:
    with pytest.raises(InputError, match=r"holds no set 'squad'\. There are: hotpotqa, musique"):
        find_sets(folder, "squad")
    with pytest.raises(InputError, match=r"There are: shipped.*hotpotqa, 2wikimultihop, musique"):
        find_sets(None, "squad")


def test_k_is_chosen_on_one_half_and_scored_on_the_other(report: Report, folder: Path) -> None:
    halves, scores = [], []
    for data in find_sets(folder, None, None):
        with RetrievalTrial(data, HashingEncoder(512)) as trial:
            halves.append(data.halves())
            scores.append(trial.scores(legal.PAPERS_BEST))
    development, test = (
        sum(s[pair[part]].mean(axis=0) for s, pair in zip(scores, halves, strict=True))
        / len(scores)
        for part in (0, 1)
    )
    best = int(development.argmax())
    assert report.figures["k_of_best_f1_development_half"] == KS[best]
    assert report.figures["f1_test_half_at_that_k"] == pytest.approx(test[best])
    assert report.figures["f1_test_half_at_papers_k_3"] == pytest.approx(test[1])
