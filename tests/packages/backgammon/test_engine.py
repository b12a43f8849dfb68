"""The engine's plays are legal and its figures agree; a bad program is an error, never a hang."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from casewright.errors import DependencyError, InputError, ToolError
from casewright_backgammon import engine as module
from casewright_backgammon.case_base import (
    generate_decisions,
    shipped_decisions,
    write_case_base,
)
from casewright_backgammon.decision import read_decisions
from casewright_backgammon.engine import GnuBackgammon, find_engine
from casewright_backgammon.judge import EngineJudge
from casewright_backgammon.moves import legal_plays
from casewright_backgammon.play_text import legal_play, parse_play
from casewright_backgammon.position import START, Position, position_of_id, side_of

ENGINE = find_engine()
installed = pytest.mark.skipif(ENGINE is None, reason="GNU Backgammon (gnubg) is not installed")


def write_program(folder: Path, lines: str) -> Path:
    """Write a program that stands for the engine."""
    file = folder / "gnubg"
    file.write_text(f"#!/bin/sh\n{lines}\n")
    file.chmod(0o755)
    return file


@installed
def test_engine_finds_the_known_best_plays_of_opening_rolls() -> None:
    analyses = GnuBackgammon().analyse([(START, (3, 1)), (START, (1, 6)), (START, (4, 2))], plies=0)
    assert [plays[0].play for plays in analyses] == ["8/5 6/5", "13/7 8/7", "8/4 6/4"]
    for plays in analyses:
        assert [candidate.equity for candidate in plays] == sorted(
            (p.equity for p in plays), reverse=True
        )
        assert len(plays) == 5


@installed
def test_engine_lists_legal_plays_up_to_the_given_number() -> None:
    rolls = [(5, 1), (2, 2), (6, 6)]
    for dice, plays in zip(
        rolls, GnuBackgammon().analyse([(START, dice) for dice in rolls], 0, 3), strict=True
    ):
        legal = {play.after for play in legal_plays(START, dice)}
        assert len(plays) == 3
        assert {parse_play(START, candidate.play)[0] for candidate in plays} <= legal


@installed
def test_engine_analyses_a_forced_play_no_play_and_the_last_play() -> None:
    blocked = Position(side_of([(25, 1), (6, 5)]), side_of([(n, 2) for n in range(1, 7)]))
    forced = Position(side_of([(12, 1)]), side_of([(22, 2)]))
    last = Position(side_of([(1, 2)]), side_of([(3, 15)]))
    no_play, one_play, win = GnuBackgammon().analyse(
        [(blocked, (3, 1)), (forced, (5, 4)), (last, (6, 5))], 0
    )
    assert [candidate.play for candidate in no_play] == ["cannot move"]
    assert [candidate.play for candidate in one_play] == ["12/7"]
    assert (win[0].play, win[0].equity, win[0].chances) == ("1/off(2)", 2.0, (1, 1, 0, 0, 0))


@installed
def test_equity_of_a_single_play_equals_that_in_the_list() -> None:
    engine = GnuBackgammon()
    for candidate in engine.analyse([(START, (4, 3))], plies=1)[0][::4]:
        single = engine.analyse_play(START, (4, 3), candidate.play, plies=1)
        assert single.equity == pytest.approx(candidate.equity, abs=0.0002)
        assert single.chances == pytest.approx(candidate.chances, abs=0.0002)
    with pytest.raises(InputError, match="not legal"):
        engine.analyse_play(START, (4, 3), "24/18")


@installed
def test_engine_gives_the_player_on_roll_an_advantage_at_the_start() -> None:
    (values,) = GnuBackgammon().values([START], plies=1)
    assert values.chances[0] == pytest.approx(0.527, abs=0.01)
    assert 0 < values.equity < 0.2


@installed
def test_engine_writes_nothing_to_the_home_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert GnuBackgammon().values([START], plies=0)
    assert not list(tmp_path.iterdir())


@installed
def test_generated_decisions_are_equal_for_the_same_seed_and_after_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casewright_backgammon.case_base.PLIES", 0)
    decisions = generate_decisions(GnuBackgammon(), 40, seed=5)
    assert decisions == generate_decisions(GnuBackgammon(), 40, seed=5)
    assert decisions != generate_decisions(GnuBackgammon(), 40, seed=6)
    assert len({(decision.position, tuple(sorted(decision.dice))) for decision in decisions}) == 40
    write_case_base(tmp_path / "new" / "cases.jsonl", decisions)
    assert read_decisions(tmp_path / "new" / "cases.jsonl") == decisions


def test_shipped_decisions_have_legal_plays_and_differ() -> None:
    decisions = shipped_decisions()
    assert len(decisions) == 2000
    assert (
        len({(decision.position, tuple(sorted(decision.dice))) for decision in decisions}) == 2000
    )
    for decision in decisions[::40]:
        legal = {play.after for play in legal_plays(decision.position, decision.dice)}
        assert {decision.after(rank) for rank in range(len(decision.candidates))} <= legal
        assert len(decision.candidates) > 1
        assert decision.equity_loss(len(decision.candidates) - 1) > 0
    mean = sum(decision.equity_loss(decision.made_rank) for decision in decisions) / len(decisions)
    assert 0.01 < mean < 0.04


def test_missing_engine_is_an_error_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "find_engine", lambda: None)
    with pytest.raises(DependencyError, match="apt install gnubg"):
        GnuBackgammon()


def test_engine_path_without_a_program_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot be run"):
        GnuBackgammon(tmp_path / "none").values([START])


def test_crash_of_the_engine_is_an_error_with_its_last_output(tmp_path: Path) -> None:
    engine = GnuBackgammon(write_program(tmp_path, "echo 'no weights'; exit 3"))
    with pytest.raises(ToolError, match="code 3: no weights"):
        engine.values([START])


def test_unreadable_engine_output_is_an_error_that_shows_it(tmp_path: Path) -> None:
    engine = GnuBackgammon(write_program(tmp_path, "echo 'who is there?'"))
    with pytest.raises(ToolError, match="who is there"):
        engine.analyse([(START, (3, 1))])
    with pytest.raises(ToolError, match="who is there"):
        engine.values([START])


@pytest.mark.parametrize("play", ["8/4 6/5", "7/4", "hello"])
def test_illegal_play_in_engine_output_is_an_error(tmp_path: Path, play: str) -> None:
    lines = (
        f"cat <<'END'\nThe dice have been set to 3 and 1.\n"
        f"    1. Cubeful 2-ply    {play}      Eq.: +0.100\n"
        "       0.5000 0.1000 0.0100 - 0.5000 0.1000 0.0100\nEND"
    )
    with pytest.raises(ToolError, match="names the play"):
        GnuBackgammon(write_program(tmp_path, lines)).analyse([(START, (3, 1))])


def test_hanging_engine_is_ended_with_its_child_processes(tmp_path: Path) -> None:
    marker = tmp_path / "ticking"
    lines = f"(sleep 2; touch {marker}) &\nsleep 60"
    start = time.monotonic()
    with pytest.raises(ToolError, match="took longer than"):
        GnuBackgammon(write_program(tmp_path, lines), limit=0.3).values([START])
    assert time.monotonic() - start < 2
    time.sleep(max(0.0, start + 2.6 - time.monotonic()))
    assert not marker.exists()


@pytest.mark.parametrize("plies", [-1, 5])
def test_invalid_number_of_plies_is_refused(tmp_path: Path, plies: int) -> None:
    with pytest.raises(InputError, match="plies"):
        GnuBackgammon(tmp_path).values([START], plies=plies)


def test_lines_of_the_shipped_decisions_are_json_with_the_expected_fields() -> None:
    from casewright_backgammon.case_base import CASE_FILE

    lines = CASE_FILE.read_text("utf-8").splitlines()
    assert {tuple(json.loads(line)) for line in lines} == {
        ("game", "position_id", "dice", "played", "candidates")
    }
    assert CASE_FILE.stat().st_size < 1_200_000


@installed
def test_engine_judge_lists_each_play_once() -> None:
    position = position_of_id("4HPiASSwZ/ABMA")
    dice = (3, 3)
    played = legal_play(position, dice, "13/10(2) 6/3*(2)")
    decision = EngineJudge(GnuBackgammon()).analyse(position, dice, played, ())
    later_positions = [decision.after(rank) for rank in range(len(decision.candidates))]
    assert len(set(later_positions)) == len(later_positions)
    assert decision.candidates[decision.made_or_best_rank].play == played.text
