"""Tests of the choice of tests that ``make check`` runs."""

from __future__ import annotations

from tests.support.changed import affected


def test_changed_test_file_is_run_and_a_changed_page_runs_no_test() -> None:
    assert affected(["tests/layout/test_changed.py", "docs/index.md"]) == [
        "tests/layout/test_changed.py"
    ]


def test_tests_that_import_a_changed_module_or_have_its_name_are_run() -> None:
    assert "tests/stores/test_mmr.py" in affected(["stores/select.py"])
    assert affected(["tests/support/changed.py"]) == ["tests/layout/test_changed.py"]


def test_tests_named_after_folder_and_file_are_run() -> None:
    test_files = affected(["planner/language_model/load.py"])
    assert "tests/planner/test_language_model_load.py" in test_files


def test_all_tests_of_the_folder_are_run_when_none_matches_the_changed_file() -> None:
    test_files = affected(["graph/execute.py"])
    assert "tests/graph/test_schedule.py" in test_files
    assert {file.split("/")[1] for file in test_files} == {"graph"}
    test_files = affected(["serve/session/budget.py"])
    assert {file.rpartition("/")[0] for file in test_files} == {"tests/serve/session"}
