"""`casewright ask --domain code`, as people run it, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.domains.code.trees import source_tree
from tests.serve.helpers import Done, new_home, one_line_error, result, run

SPLIT = "Show me the full split method of class Splitter"
#: What follows the question, and what the error must say.
UNUSABLE: dict[str, tuple[list[str], str]] = {
    "no source, and nothing indexed": (["-d", "code"], "--source DIR"),
    "source that is not there": (["-d", "code", "--source", "none"], "No such file"),
    "source without source code": (["-d", "code", "--source", "docs"], "has no source code"),
    "source of another domain": (["-d", "documents", "--source", "."], "goes with --domain code"),
    "feedback of a domain that compares no texts": (
        ["-d", "math24", "--feedback", "offline"],
        "Leave --feedback out",
    ),
    "a judge that is none": (["-d", "code", "--feedback", "gold"], "There is no judge 'gold'"),
    "store of source code": (["-d", "code", "--store", "x"], "--domain documents"),
}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home without stores, with what is no source tree in it."""
    home = new_home(tmp_path_factory.mktemp("bare") / "home")
    (home / "file.py").write_text("x = 1\n", encoding="utf-8")
    (home / "docs").mkdir()
    (home / "docs" / "a.md").write_text("# A\n", encoding="utf-8")
    return home


@pytest.fixture(scope="module")
def runs(bare: Path) -> dict[str, Done]:
    return {name: run(bare, "ask", SPLIT, *given) for name, (given, _) in UNUSABLE.items()}


@pytest.mark.parametrize("name", UNUSABLE)
def test_user_error_prints_one_line_and_creates_no_store(
    runs: dict[str, Done], bare: Path, name: str
) -> None:
    line = one_line_error(runs[name])
    assert UNUSABLE[name][1] in line
    assert runs[name].stdout == ""
    assert not (bare / "data").exists()


@pytest.fixture(scope="module")
def home_and_tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A home, and a source tree that the first test which asks about it indexes."""
    place = tmp_path_factory.mktemp("asked")
    return new_home(place / "home"), source_tree(place / "demo")


def test_ask_shows_a_whole_method_and_later_needs_no_source_folder(
    home_and_tree: tuple[Path, Path],
) -> None:
    home, tree = home_and_tree
    done = run(home, "ask", "--domain", "code", "--source", tree, SPLIT)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"Indexing the source code in {tree}, once …\n"
    for word in ("alpha", "bravo", "charlie"):
        for number in range(14):
            assert f"{word}_{number} = {word}_{number + 1}(given, {number})" in done.stdout
    answer = result(run(home, "ask", "-d", "code", SPLIT, "--json"))
    assert answer["plan"] == "s1 = code_search(query=question)"
    assert answer["generator"] == "extractive"
    assert len(answer["evidence"]) >= 3
    assert answer["citations"] == [item["id"] for item in answer["evidence"]]
    for item in answer["evidence"]:
        assert item["source"].startswith("demo/text/splitter.py, lines ")
        assert item["source"].endswith(" (Splitter.split)")
    built = {one["name"]: one["built"] for one in result(run(home, "domains", "--json"))}
    assert built["code"] is True


def test_rounds_of_relevance_feedback_are_printed_and_reported_in_json(
    home_and_tree: tuple[Path, Path],
) -> None:
    home, tree = home_and_tree
    asked = ("ask", "-d", "code", "--source", tree, "--feedback", "offline", SPLIT)
    done = run(home, *asked)
    assert done.returncode == 0, done.stderr
    assert "Rounds of s1\n1. by question: " in done.stdout
    assert "Judge: offline." in done.stdout
    # All that a single search finds is there.
    for word in ("alpha", "bravo", "charlie"):
        for number in range(14):
            assert f"{word}_{number} = {word}_{number + 1}(given, {number})" in done.stdout
    *rounds, ended = result(run(home, *asked, "--json"))["steps"][0]["reports"]
    assert [one["round"] for one in rounds] == list(range(1, len(rounds) + 1))
    assert ended["event"] == "feedback_ended"
