"""Tests of RAGSys's study on questions in TruthfulQA's format, with a tiny Mistral."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from casewright.errors import InputError
from casewright.serve.cli.commands import app
from casewright_studies.truthfulqa import RETRIEVERS, cases_of, read_truthfulqa
from tests.support.tiny_mistral import save_tiny

TOWNS = ("Kiel", "Bonn", "Ulm", "Trier", "Jena", "Essen", "Worms", "Aachen", "Lingen", "Emden")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("truthfulqa")
    rows = []
    for number, town in enumerate(TOWNS):
        right = [f"{town} has {number + 2} inns.", f"There are {number + 2} inns in {town}."]
        wrong = [f"{town} has none.", "Nobody knows.", "A million."]
        rows.append(
            {
                "question": f"How many inns are in {town}?",
                # The best answer is not the first of the right ones.
                "mc1_targets": {right[1]: 1, **dict.fromkeys(wrong, 0)},
                "mc2_targets": {**dict.fromkeys(right, 1), **dict.fromkeys(wrong, 0)},
            }
        )
    (folder / "v1").mkdir()
    (folder / "v1" / "mc_task.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("models") / "tiny", initializer_range=0.3)


def run_study(data: Path, model: Path, work: Path, *extra: str | Path) -> dict[str, Any]:
    options = ["bench", "truthfulqa", "--data", data, "--model", model, "--work", work, "-k", "3"]
    completed = CliRunner().invoke(app, [*map(str, options), *map(str, extra), "--json"])
    assert completed.exit_code == 0, completed.output
    report: dict[str, Any] = json.loads(completed.stdout)
    return report


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def report(data: Path, model: Path, work: Path) -> dict[str, Any]:
    return run_study(data, model, work)


def find_row(report: dict[str, Any], name: str) -> dict[str, Any]:
    (match,) = [line for line in report["rows"] if line["retriever"] == name]
    return dict(match)


def test_best_answer_comes_first_and_each_right_answer_is_a_case(data: Path) -> None:
    questions = read_truthfulqa(data)
    assert questions[0].right == ("There are 2 inns in Kiel.", "Kiel has 2 inns.")
    cases = cases_of(questions)
    assert len(cases) == 20
    assert [case for case in cases if questions[3].may_see(case)] == [
        case for case in cases if case.metadata["group"] != 3
    ]


def test_report_has_a_row_with_all_measures_per_retriever_and_control(
    report: dict[str, Any],
) -> None:
    names = [line["retriever"] for line in report["rows"]]
    assert [name for name in names if name in RETRIEVERS] == list(RETRIEVERS[1:])
    assert "fixed primer: no file was given" in names
    lines = [line for line in report["rows"] if line["questions"]]
    for line in lines:
        assert (line["questions"], line["triples"]) == (10, 60)
        assert {"mass (TruthfulQA's MC2)", "MC1"} <= set(line)
        assert line["DPO, triples"] < 0
    control = find_row(report, "no demonstrations")
    assert control["margin"] == 0
    assert control["DPO, triples"] == pytest.approx(-0.6931, abs=1e-4)
    shuffled = find_row(report, "relevance, diversity, bias: labels shuffled")
    assert abs(shuffled["margin"]) < 0.5 * max(abs(line["margin"]) for line in lines) + 0.1
    assert (
        find_row(report, "relevance, diversity")["cosine of pairs"]
        < (find_row(report, "relevance")["cosine of pairs"])
    )


def test_notes_contain_the_rankings_and_a_warning_about_small_models(
    report: dict[str, Any],
) -> None:
    by_mass = [line for line in report["notes"] if line.startswith("By mass")]
    rows = [line for line in report["rows"] if line["retriever"] in RETRIEVERS]
    rows.sort(key=lambda line: -line["mass (TruthfulQA's MC2)"])
    assert by_mass[0].endswith(": " + " > ".join(line["retriever"] for line in rows) + ".")
    assert any("A small model knows few answers" in line for line in report["notes"])


def test_second_run_scores_no_answer_and_gives_the_same_rows(
    data: Path, model: Path, work: Path, report: dict[str, Any]
) -> None:
    second = run_study(data, model, work)
    assert report["figures"]["study_answers_scored_in_this_run"] > 0
    assert second["figures"]["study_answers_scored_in_this_run"] == 0
    assert second["rows"] == report["rows"]


def test_report_contains_the_published_figures(
    report: dict[str, Any],
) -> None:
    published = [line for line in report["rows"] if line["retriever"].startswith("published, ")]
    assert len(published) == 2 * len(RETRIEVERS)
    best = find_row(report, "published, Llama-3-8B-chat: relevance, diversity")
    assert (best["DPO, triples"], best["MC1"]) == (-16.14, 0.5520)
    assert (best["MC2 (TruthfulQA's MC3)"], best["mass (TruthfulQA's MC2)"]) == (0.4173, 0.7009)
    # The paper has no margins.
    assert {line["margin"] for line in published} == {None}


def test_reversed_bias_gives_another_margin_than_the_bias(report: dict[str, Any]) -> None:
    biased, reversed_bias = (
        find_row(report, name)["margin"]
        for name in ("relevance, diversity, bias", "relevance, diversity, reversed bias")
    )
    assert biased != reversed_bias
    shares = report["settings"]["retrievers"]["relevance, diversity, reversed bias"]
    assert shares == {"lambda_d": 0.75, "lambda_b": 1.05}


def test_cases_are_less_similar_when_relevance_has_less_weight(report: dict[str, Any]) -> None:
    names = [f"relevance, diversity, λ_d {d}" for d in (0, 0.25, 0.5)]
    curve = [find_row(report, name)["cosine of pairs"] for name in (*names, "relevance")]
    assert curve == sorted(curve)
    assert curve[0] < curve[-1]


def test_lower_limit_reuses_the_scores_of_the_first_questions(
    data: Path, model: Path, work: Path, report: dict[str, Any]
) -> None:
    limited = run_study(data, model, work, "--limit", "4")
    assert find_row(limited, "relevance")["questions"] == 4
    assert limited["figures"]["study_answers_scored_in_this_run"] == 0


def test_primer_option_adds_a_row(data: Path, model: Path, tmp_path: Path) -> None:
    primer = tmp_path / "primer.jsonl"
    primer.write_text(
        '{"question": "What is water?", "answer": "Wet."}\n{"question": "Why?", "answer": "So."}',
        encoding="utf-8",
    )
    report = run_study(data, model, tmp_path, "--primer", primer, "--limit", "4")
    assert find_row(report, "fixed primer")["questions"] == 4
    assert find_row(report, "fixed primer")["margin"] != 0


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--data", "nowhere"], "holds no mc_task.json"),
        (["--data", "broken"], "is not TruthfulQA's file"),
        (["--model", "openai:tiny"], "is a chat model"),
        (["--primer", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_study_refuses_invalid_options(
    data: Path,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    word: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken").mkdir()
    Path("broken/mc_task.json").write_text('[{"question": 1}]', encoding="utf-8")
    arguments = ["bench", "truthfulqa", "--data", str(data), "--model", str(model), *options]
    completed = CliRunner().invoke(app, arguments)
    assert isinstance(completed.exception, InputError)
    assert word in str(completed.exception)
