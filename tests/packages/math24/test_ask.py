"""`casewright ask --image`: a card is answered, retained if right, and shown as a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from casewright_math24.cards import render_card
from tests.serve.helpers import new_home, one_line_error, result, run
from tests.support.chat_server import chat_server


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_home(tmp_path_factory.mktemp("cards") / "home")


@pytest.fixture(scope="module")
def card(home: Path) -> Path:
    file = home / "card.png"
    render_card((12, 1, 8, 10)).save(file)
    return file


def test_ask_command_reads_answers_and_checks_a_card(home: Path, card: Path) -> None:
    answer = result(run(home, "ask", "--domain", "math24", "--image", card, "--json"))
    assert answer["numbers"] == [12, 1, 8, 10]
    assert len(answer["cases"]) == 3
    assert answer["right"] is True
    assert answer["attempts"][-1]["expression"] == "(1 * 12) * (10 - 8)"
    assert answer["answered_by"] == "reuse"
    assert answer["retained"] is None


def test_ask_command_prints_reading_and_check_and_writes_a_page(
    home: Path, card: Path, tmp_path: Path
) -> None:
    page = tmp_path / "card.html"
    completed = run(home, "ask", "--domain", "math24", "--image", card, "--html", page)
    assert completed.returncode == 0
    first, *_, last = completed.stdout.strip().splitlines()
    assert first.startswith("Read: 12 1 8 10")
    assert "right: each number once, and 24" in last
    text = page.read_text(encoding="utf-8")
    assert text.count("data:image/png;base64,") == 4


def test_generator_option_selects_the_chat_model_that_answers(
    home: Path, card: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    replies = ("Final Answer: 12 + 12 = 24", "Final Answer: (10 - 8) * 12 * 1 = 24")
    with chat_server(*replies) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        options = ("--generator", "openai:tiny", "--json")
        answer = result(run(home, "ask", "--domain", "math24", "--image", card, *options))
        requests = [entry.body["messages"] for entry in server.requests]
    assert [entry["right"] for entry in answer["attempts"]] == [False, True]
    assert answer["answered_by"] == "openai:tiny"
    assert "must use 1, 8, 10, 12" in requests[1][-1]["content"]


def test_question_in_words_is_planned_and_answered(home: Path) -> None:
    answer = result(run(home, "ask", "--domain", "math24", "Make 24 of 12, 1, 8 and 10", "--json"))
    assert answer["plan"] == "s1 = make_24(query=question)"
    assert "(1 * 12) * (10 - 8) = 24" in answer["text"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "Give a question."),
        (["--domain", "math24"], "Give a question, or --image FILE"),
        (["--domain", "math24", "--image", "card.png", "and a question"], "without one"),
        (["--domain", "math24", "a question", "--retain"], "go with --image"),
        (["--domain", "shopping", "--image", "card.png"], "no option --image"),
        (["--domain", "math24", "--image", "nowhere.png"], "nowhere.png"),
        (["--domain", "math24", "--image", "words.txt"], "cannot be read as an image"),
        (["--domain", "math24", "--image", "cut.png", "--retain"], "damaged or cut off"),
        (["--domain", "math24", "--image", "blank.png", "--retain"], "does not look like a card"),
        (["--domain", "math24", "--image", "card.png", "--generator", "x"], "no generator 'x'"),
        (["--domain", "math24", "--image", "card.png", "--html", "no/where.html"], "written"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_invalid_card_or_option_is_a_one_line_error(
    home: Path, card: Path, arguments: list[str], word: str
) -> None:
    from PIL import Image

    (home / "words.txt").write_text("no image", encoding="utf-8")
    (home / "cut.png").write_bytes(card.read_bytes()[:800])
    Image.new("L", (180, 180), 255).save(home / "blank.png")
    assert word in one_line_error(run(home, "ask", *arguments))


def test_example_questions_are_answered_right(home: Path) -> None:
    domains = result(run(home, "domains", "--json"))
    (math24,) = [domain for domain in domains if domain["name"] == "math24"]
    for question in math24["questions"]:
        answer = result(run(home, "ask", "--domain", "math24", question, "--json"))
        assert "right: each number once, and 24" in answer["text"]
