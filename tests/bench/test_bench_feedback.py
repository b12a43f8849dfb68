"""Tests of the feedback bench, on invented towns and an invented package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from casewright.bench.feedback.measure import LIMITS, measure_feedback
from casewright.bench.feedback.runs import GoldJudge, ShuffledJudge, SymbolFilter, post_loop
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.judge_sets.code import code_set
from casewright.finetune.judge_sets.sets import FeedbackSet
from casewright.graph.feedback import FeedbackResult, build_feedback
from casewright.serve.cli.bench.report import show
from casewright.stores import CaseStore
from casewright.stores.feedback import RocchioStrategy
from tests.support.encoders import HashingEncoder
from tests.support.mill import mill_corpus
from tests.support.multihop import multihop_folder


@pytest.fixture(scope="module")
def messages() -> list[str]:
    """Return the list that receives the stderr text of the run."""
    return []


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, messages: list[str]) -> Report:
    folder = multihop_folder(tmp_path_factory.mktemp("towns"))
    with redirect_stderr(StringIO()) as stderr:
        feedback_report = measure_feedback(folder, HashingEncoder(), only="hotpotqa")
    messages.append(stderr.getvalue())
    return feedback_report


def test_feedback_bench_writes_its_progress_to_stderr_without_a_terminal(
    report: Report, messages: list[str]
) -> None:
    reading, encoding, asking = messages[0].splitlines()
    assert reading.startswith("Reading")
    assert re.fullmatch(r"Encoding \d+ cases of hotpotqa\.", encoding)
    assert re.fullmatch(r"Asking \d+ questions of hotpotqa, .*", asking)


def find_row(report: Report, strategy: str, judge: str) -> Mapping[str, Any]:
    (matching_row,) = [
        row
        for row in report.rows
        if row["table"] == "all" and (row["strategy"], row["judge"]) == (strategy, judge)
    ]
    return matching_row


@pytest.mark.parametrize("strategy", ["text", "sentences", "rocchio"])
def test_label_judge_keeps_every_relevant_hit_in_the_answer(report: Report, strategy: str) -> None:
    label_row = find_row(report, strategy, "labels")
    assert label_row["answer"] == label_row["found"]
    assert label_row["precision"] == 1
    assert label_row["single answer"] == label_row["single"]


def test_report_has_control_rows_for_the_default_strategy(report: Report) -> None:
    for judge in ("labels shuffled", "first two, unread"):
        assert find_row(report, "sentences", judge)["judged"] > 0


def test_report_row_of_each_set_contains_the_gain_of_every_judge(report: Report) -> None:
    (set_row,) = [row for row in report.rows if row["table"] == "sets"]
    for judge in ("labels", "offline", "labels shuffled", "first two, unread"):
        assert set_row[judge] == find_row(report, "sentences", judge)["gain"]
    set_settings = report.settings["sets"]["hotpotqa"]
    assert set_row["questions"] == set_settings["questions_test"]
    assert set_row["the judge's training questions"] == set_settings["questions_training"]


def test_post_loop_judges_repeated_hits_again(report: Report) -> None:
    post_row = find_row(report, "the post's loop, 10 a round", "labels")
    assert post_row["judged"] > find_row(report, "text", "labels")["judged"]


def test_names_of_figures_contain_set_strategy_and_judge(report: Report) -> None:
    figures = report.to_json()["figures"]
    assert "gain_points_hotpotqa_sentences_offline" in figures
    assert "single_recall_at_10_hotpotqa" in figures
    assert "judged_ratio_to_post_of_10_hotpotqa_text_labels" in figures


def test_feedback_report_is_drawn_as_a_plot(report: Report, tmp_path: Path) -> None:
    show(report, as_json=True, plot=tmp_path / "recall.png")
    assert (tmp_path / "recall.png").stat().st_size > 10_000


def test_a_folder_without_sets_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no set"):
        measure_feedback(tmp_path, HashingEncoder(), only="hotpotqa")


@pytest.fixture(scope="module")
def mill(tmp_path_factory: pytest.TempPathFactory) -> FeedbackSet:
    """Return the set whose questions name a function of an invented package."""
    with mill_corpus(tmp_path_factory.mktemp("site")) as corpus:
        return code_set(corpus)


@pytest.fixture(scope="module")
def mill_store(mill: FeedbackSet) -> CaseStore:
    return mill.store(HashingEncoder())


def test_shuffled_label_judge_marks_as_many_but_other_candidates(
    mill: FeedbackSet, mill_store: CaseStore
) -> None:
    marked_counts: dict[str, list[int]] = {"gold": [], "shuffled": []}
    equal_results = 0
    for question in mill.questions:
        for name, judge in (("gold", GoldJudge(question)), ("shuffled", ShuffledJudge(question))):
            loop = build_feedback(mill_store, judge, RocchioStrategy(), limits=LIMITS)
            result = FeedbackResult.from_state(loop.invoke({"question": question.text}))
            marked_counts[name].append(result.rounds[0]["relevant"])
            if name == "shuffled":
                hits = {hit["id"] for hit in result.hits if hit["confirmed"]}
                equal_results += hits == question.relevant
    assert marked_counts["gold"] == marked_counts["shuffled"]
    assert equal_results < len(mill.questions)


def test_post_loop_ends_when_no_new_hit_is_relevant(
    mill: FeedbackSet, mill_store: CaseStore
) -> None:
    labelled = mill.questions[0]
    question = mill_store.question(labelled.text)
    assert question is not None
    run = post_loop(question, labelled, 4)
    marked_counts = [len(state.marked) for state in run.states]
    assert run.judgements == 4 * len(run.states)
    assert marked_counts == sorted(marked_counts)
    assert len(marked_counts) == 1 or marked_counts[-1] == marked_counts[-2]


def test_symbol_filter_finds_every_function_named_in_the_question(mill: FeedbackSet) -> None:
    finder = SymbolFilter(mill.cases)
    for question in mill.questions:
        assert set(finder.find(question.text)) == question.relevant


def test_symbol_filter_prefers_symbols_whose_whole_name_is_mentioned(
    mill: FeedbackSet,
) -> None:
    finder = SymbolFilter(mill.cases)
    symbols = {case.id: case.metadata.get("symbol") for case in mill.cases}
    assert {symbols[case_id] for case_id in finder.find("the stop of Wheel")} == {"Wheel.stop"}
    case_ids = finder.find("all of grind_all")
    assert len(case_ids) == 2 * len(finder.find("all of grind_all in invented_mill/sluice.py"))
    assert finder.find("how does water flow over stones?") == finder.find("flow")
    assert finder.find("nothing of this is named") == []
