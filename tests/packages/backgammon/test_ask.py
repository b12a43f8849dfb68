"""`casewright ask --domain backgammon`: a board is read, its decision analysed and checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from casewright_backgammon.board_image import render_board
from casewright_backgammon.case_base import shipped_decisions
from casewright_backgammon.engine import find_engine
from casewright_backgammon.position import START
from tests.serve.helpers import new_home, one_line_error, result, run

ASK = ("ask", "--domain", "backgammon")
#: A decision in mid-game.
DECISION = shipped_decisions()[510]
ROLL = f"{DECISION.dice[0]}-{DECISION.dice[1]}"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = new_home(tmp_path_factory.mktemp("boards") / "home")
    # The first question builds the stores, which ``domains`` lists.
    run(folder, *ASK, "What is the best play with 3-1?")
    return folder


@pytest.fixture(scope="module")
def board(home: Path) -> Path:
    file = home / "board.png"
    render_board(DECISION.position).save(file)
    return file


@pytest.fixture(autouse=True)
def without_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the network judge, whether the engine is installed or not."""
    monkeypatch.setenv("CASEWRIGHT_GNUBG", "none")


def test_ask_command_reads_a_board_finds_cases_and_checks_the_advice(
    home: Path, board: Path
) -> None:
    answer = result(run(home, *ASK, "--image", board, "--roll", ROLL, "--json"))
    assert answer["position_id"] == DECISION.position.id
    assert len(answer["cases"]) == 3
    assert answer["answered_by"] == "reuse"
    assert "network that ships" in answer["judged_by"]
    assert answer["analysis"].endswith(f"Best play: {answer['candidates'][0]['move']}.")
    assert answer["retained"] is None


def test_ask_command_prints_reading_cases_and_check_and_writes_a_page(
    home: Path, board: Path, tmp_path: Path
) -> None:
    page = tmp_path / "board.html"
    move = DECISION.candidates[-1].play
    options = ("--roll", ROLL, "--move", move, "--html", page)
    completed = run(home, *ASK, "--image", board, *options)
    assert completed.returncode == 0, completed.stderr
    lines = completed.stdout.strip().splitlines()
    assert lines[0].startswith("Read: Player on roll")
    assert f"Play asked about: {move}." in lines[2]
    assert [line.split(",")[0] for line in lines].count("Case") == 3
    assert lines[-2].startswith("Check, by the network that ships")
    assert lines[-1].startswith("Analysis: ")
    assert move in lines[-1]
    assert page.read_text(encoding="utf-8").count("data:image/png;base64,") == 5


def test_mirrored_board_is_read_with_the_options_checkers_and_home(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mirrored.png"
    render_board(DECISION.position, own="dark", home="left").save(file)
    view = ("--checkers", "dark", "--home", "left")
    answer = result(run(home, *ASK, "--image", file, "--roll", ROLL, *view, "--json"))
    assert answer["position_id"] == DECISION.position.id


@pytest.mark.parametrize(
    "question",
    [
        f"What is your recommendation with 3-1 in {START.id}?",
        f"Position {START.id}, roll 3-1: is 8/5, 6/5 right?",
    ],
)
def test_question_with_position_id_and_roll_is_answered_in_several_wordings(
    home: Path, question: str
) -> None:
    answer = result(run(home, *ASK, question, "--json"))
    assert "8/5 6/5 is best." in answer["text"]


def test_question_with_position_roll_and_play_is_planned_and_answered(home: Path) -> None:
    question = f"In {START.id} I rolled 3-1. Is 24/23 13/10 right?"
    answer = result(run(home, *ASK, question, "--json"))
    assert answer["plan"] == "s1 = analyse_position(query=question)"
    assert "24/23 13/10" in answer["text"]
    assert "8/5 6/5 is best." in answer["text"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--image", "board.png"], "--roll 3-1"),
        (["--image", "board.png", "--roll", "7-1"], "is not a roll"),
        (["--image", "board.png", "--roll", ROLL, "--move", "24/1"], "not legal"),
        (["--image", "board.png", "--roll", ROLL, "--move", "over there"], "cannot be read"),
        (["--image", "board.png", "--roll", ROLL, "--checkers", "red"], "--checkers"),
        (["--image", "board.png", "--roll", ROLL, "--home", "up"], "--home"),
        (["--image", "board.png", "--roll", ROLL, "--off", "some"], "--off"),
        (["--image", "nowhere.png", "--roll", "3-1"], "nowhere.png"),
        (["--image", "words.txt", "--roll", "3-1"], "cannot be read as an image"),
        (["--image", "cut.png", "--roll", "3-1"], "damaged or cut off"),
        (["--image", "blank.png", "--roll", "3-1"], "board"),
        (["--image", "sixteen.png", "--roll", "3-1"], "16 checkers"),
        (["--roll", "3-1", "a question"], "go with --image"),
        (["What is the best play with 3-1?"], "position id"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_invalid_board_roll_or_play_is_a_one_line_error_and_retains_nothing(
    home: Path, board: Path, arguments: list[str], word: str
) -> None:
    from PIL import Image

    from casewright_backgammon.position import Position, side_of

    (home / "words.txt").write_text("no image", encoding="utf-8")
    (home / "cut.png").write_bytes(board.read_bytes()[:2000])
    Image.new("RGB", (640, 480), "white").save(home / "blank.png")
    # A fourth checker on the 8 point makes sixteen checkers.
    four = Position(side_of([(6, 5), (8, 4), (13, 4), (24, 2)]), START.other)
    sixteen, box = render_board(START), (207, 260, 253, 497)
    sixteen.paste(render_board(four).crop(box), box[:2])
    sixteen.save(home / "sixteen.png")
    domains = result(run(home, "domains", "--json"))
    in_words = len(arguments) == 1
    completed = run(home, *ASK, *arguments, *(() if in_words else ("--retain",)))
    if in_words:
        # A question is planned, and its step fails with the message.
        assert word in completed.stdout
    else:
        assert word in one_line_error(completed)
    assert result(run(home, "domains", "--json")) == domains


def test_environment_variable_replaces_the_cases_by_own_decisions(
    tmp_path: Path, board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "decisions.jsonl"
    rows = [entry for entry in shipped_decisions() if entry.dice == DECISION.dice][:5]
    file.write_text("".join(f"{json.dumps(entry.to_dict())}\n" for entry in rows), encoding="utf-8")
    monkeypatch.setenv("CASEWRIGHT_BACKGAMMON_CASES", str(file))
    empty_home = new_home(tmp_path / "home")
    answer = result(run(empty_home, *ASK, "--image", board, "--roll", ROLL, "--json"))
    assert {entry["position_id"] for entry in answer["cases"]} <= {
        entry.position.id for entry in rows
    }
    file.write_text("no decision\n", encoding="utf-8")
    completed = run(empty_home, *ASK, "--image", board, "--roll", ROLL)
    assert completed.returncode == 2
    assert "line 1" in completed.stderr
    file.unlink()
    assert "not a file" in one_line_error(run(empty_home, *ASK, "--image", board, "--roll", ROLL))


def test_ask_command_refuses_an_option_of_another_domain(home: Path, board: Path) -> None:
    completed = run(home, "ask", "--domain", "math24", "--image", board, "--roll", "3-1")
    assert "no option --roll" in one_line_error(completed)


@pytest.mark.skipif(find_engine() is None, reason="GNU Backgammon is not installed")
def test_analysis_by_the_engine_is_retained_as_a_case(
    home: Path, board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CASEWRIGHT_GNUBG")
    options = ("--image", board, "--roll", ROLL, "--retain", "--json")
    first = result(run(home, *ASK, *options))
    assert first["judged_by"].startswith("GNU Backgammon")
    assert first["candidates"][0]["move"] == DECISION.best.play
    assert first["retained"] in ("added", "updated", "near_duplicate")
    assert result(run(home, *ASK, *options))["retained"] == "unchanged"
