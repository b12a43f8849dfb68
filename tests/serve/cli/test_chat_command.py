"""`casewright chat`, and `ask --history`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from casewright.errors import InputError
from tests.serve.helpers import REFUNDS, Output, one_line_error, result, run

KEYBOARDS = "Do you have mechanical keyboards?"
WARRANTY = "and its warranty?"


def chat(home: Path, stdin: str | bytes, *arguments: str) -> Output:
    """Run ``casewright chat`` with this text on stdin."""
    raw = stdin if isinstance(stdin, bytes) else stdin.encode()
    stream = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8")
    with patch.object(sys, "stdin", stream):
        return run(home, "chat", *arguments)


def answers(completed: Output) -> list[dict[str, Any]]:
    assert completed.returncode == 0, (completed.stdout, completed.stderr)
    return [json.loads(line) for line in completed.stdout.splitlines()]


def test_follow_up_question_is_planned_with_the_earlier_turn(home: Path) -> None:
    first, second = answers(chat(home, f"{KEYBOARDS}\n{WARRANTY}\n", "--json"))
    assert first["plan"] == 's1 = prod_search(query="mechanical keyboards")'
    assert "Keystone K87" in second["plan"]
    assert [step["status"] for step in second["steps"]] == ["done", "done"]


def test_chat_prints_answers_without_a_prompt_when_stdin_is_a_pipe(home: Path) -> None:
    completed = chat(home, f"{REFUNDS}\n")
    assert completed.returncode == 0
    assert "[E1]" in completed.stdout
    assert ">" not in completed.stdout


@pytest.mark.parametrize("stdin", ["", "\n", f"\n{REFUNDS}\n"])
def test_end_of_input_or_an_empty_line_ends_chat(home: Path, stdin: str) -> None:
    completed = chat(home, stdin)
    assert (completed.returncode, completed.stdout) == (0, "")


def test_chat_prints_errors_and_answers_the_next_questions(home: Path) -> None:
    stdin = b"a\x00b\n\xff\n/context {\n" + f"{KEYBOARDS}\n{WARRANTY}\n".encode()
    completed = chat(home, stdin, "--json")
    assert len(answers(completed)) == 2
    assert completed.stderr.count("error: ") == 3
    assert "Traceback" not in completed.stderr


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_chat_prints_no_control_or_bidirectional_characters_of_answers_and_errors(
    home: Path, options: tuple[str, ...]
) -> None:
    text = "\x1b[2Jgone \u202eback \u2028next"
    outcomes = [{"answer": {"text": text}}, InputError(f"No {text}.")]
    with patch("casewright.serve.session.dialogue.Dialogue.ask", side_effect=outcomes):
        completed = chat(home, f"{REFUNDS}\n{WARRANTY}\n", *options)
    for stream in (completed.stdout, completed.stderr):
        assert "[2Jgone" in stream
        assert not {"\x1b", "\u202e"} & set(stream)
    if options:
        assert [answer["text"] for answer in answers(completed)] == [text]


def test_chat_command_context_changes_the_context_of_later_questions(home: Path) -> None:
    command = '/context {"product_id": "P028", "page": "product"}'
    stdin = f"{KEYBOARDS}\n{command}\nis it loud?\n/context\n"
    assert "context.product_id" in answers(chat(home, stdin, "--json"))[1]["plan"]


def test_ask_takes_earlier_turns_from_a_file(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "turns.json"
    first = result(run(home, "ask", KEYBOARDS, "--json"))
    file.write_text(json.dumps([{"question": KEYBOARDS, "answer": first["text"]}]))
    answer = result(run(home, "ask", WARRANTY, "--history", file, "--json"))
    assert "Keystone K87" in answer["plan"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"question": "a"}', '[{"question": "a"}]'])
def test_history_file_without_turns_is_refused(home: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "turns.json"
    file.write_text(text)
    assert "istory" in one_line_error(run(home, "ask", WARRANTY, "--history", file))


def test_missing_history_file_is_refused(tmp_path: Path, home: Path) -> None:
    message = one_line_error(run(home, "chat", "--history", tmp_path / "none.json"))
    assert "cannot be read" in message
