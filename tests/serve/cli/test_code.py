"""`casewright ask --domain code`: its answers and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.domains.code.trees import source_tree
from tests.serve.helpers import Output, new_home, one_line_error, result, run

SPLIT = "Show me the full split method of class Splitter"
#: Arguments after the question, and a part of the error message.
INVALID: dict[str, tuple[list[str], str]] = {
    "no source, and nothing indexed": (["-d", "code"], "--source DIR"),
    "missing source folder": (["-d", "code", "--source", "none"], "No such file"),
    "source without source code": (["-d", "code", "--source", "docs"], "has no source code"),
    "source of another domain": (["-d", "documents", "--source", "."], "goes with --domain code"),
    "feedback of a domain that compares no texts": (
        ["-d", "math24", "--feedback", "offline"],
        "Leave --feedback out",
    ),
    "unknown judge": (["-d", "code", "--feedback", "gold"], "There is no judge 'gold'"),
    "store of source code": (["-d", "code", "--store", "x"], "--domain documents"),
}


@pytest.fixture(scope="module")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home without stores, with files that are no source tree."""
    home = new_home(tmp_path_factory.mktemp("bare") / "home")
    (home / "file.py").write_text("x = 1\n", encoding="utf-8")
    (home / "docs").mkdir()
    (home / "docs" / "a.md").write_text("# A\n", encoding="utf-8")
    return home


@pytest.fixture(scope="module")
def runs(empty_home: Path) -> dict[str, Output]:
    return {name: run(empty_home, "ask", SPLIT, *options) for name, (options, _) in INVALID.items()}


@pytest.mark.parametrize("name", INVALID)
def test_user_error_prints_one_line_and_creates_no_store(
    runs: dict[str, Output], empty_home: Path, name: str
) -> None:
    message = one_line_error(runs[name])
    assert INVALID[name][1] in message
    assert runs[name].stdout == ""
    assert not (empty_home / "data").exists()


@pytest.fixture(scope="module")
def home_and_tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a home and a source tree, which the first question about it indexes."""
    folder = tmp_path_factory.mktemp("asked")
    return new_home(folder / "home"), source_tree(folder / "demo")


def test_ask_shows_a_whole_method_and_later_needs_no_source_folder(
    home_and_tree: tuple[Path, Path],
) -> None:
    home, tree = home_and_tree
    completed = run(home, "ask", "--domain", "code", "--source", tree, SPLIT)
    assert completed.returncode == 0, completed.stderr
    assert completed.stderr == f"Indexing the source code in {tree}, once …\n"
    for word in ("alpha", "bravo", "charlie"):
        for number in range(14):
            assert f"{word}_{number} = {word}_{number + 1}(given, {number})" in completed.stdout
    answer = result(run(home, "ask", "-d", "code", SPLIT, "--json"))
    assert answer["plan"] == "s1 = code_search(query=question)"
    assert answer["generator"] == "extractive"
    assert len(answer["evidence"]) >= 3
    assert answer["citations"] == [item["id"] for item in answer["evidence"]]
    for item in answer["evidence"]:
        assert item["source"].startswith("demo/text/splitter.py, lines ")
        assert item["source"].endswith(" (Splitter.split)")
    domains = result(run(home, "domains", "--json"))
    assert {domain["name"]: domain["built"] for domain in domains}["code"] is True


def test_rounds_of_relevance_feedback_are_printed_and_reported_in_json(
    home_and_tree: tuple[Path, Path],
) -> None:
    home, tree = home_and_tree
    arguments = ("ask", "-d", "code", "--source", tree, "--feedback", "offline", SPLIT)
    completed = run(home, *arguments)
    assert completed.returncode == 0, completed.stderr
    assert "Rounds of s1\n1. by question: " in completed.stdout
    assert "Judge: offline." in completed.stdout
    # The rounds find everything that a single search finds.
    for word in ("alpha", "bravo", "charlie"):
        for number in range(14):
            assert f"{word}_{number} = {word}_{number + 1}(given, {number})" in completed.stdout
    *rounds, end = result(run(home, *arguments, "--json"))["steps"][0]["reports"]
    assert [report["round"] for report in rounds] == list(range(1, len(rounds) + 1))
    assert end["event"] == "feedback_ended"
