"""Evolution by a chat model: what it writes is verified, and its work is kept."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from pydantic import Field

from casewright.errors import InputError
from casewright.finetune.instructions import ChatEvolver, Instruction
from casewright.finetune.instructions.chat_evolver import rewrite_prompt
from casewright.finetune.instructions.constraint import TEXT_KINDS


class Model(SimpleChatModel):
    """A chat model whose answers a test decides."""

    answer: Callable[[str], str]
    heard: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "test"

    def _call(self, messages: list[BaseMessage], *arguments: Any, **settings: Any) -> str:
        text = str(messages[-1].content)
        self.heard.append(text)
        return self.answer(text)


def rewritten(text: str, kind: str | None = "at_most_words", **parameters: Any) -> str:
    constraint = {"kind": kind, "parameters": parameters} if kind else None
    return "Here: " + json.dumps({"instruction": text, "constraint": constraint})


def model(rewrite: str, answer: str = "An oak in June.") -> Model:
    """Return a model that rewrites to this, and answers anything else with that."""
    return Model(answer=lambda text: rewrite if text.startswith("Rewrite") else answer)


def asked(count: int) -> Sequence[Instruction]:
    return [Instruction(f"x:{n}", f"x:{n}", f"Name tree {n}.", "oak") for n in range(count)]


HARDER = rewritten("Name a tree and its month, in 5 words at most.", n=5)


def test_evolved_instruction_has_the_models_answer_and_a_verified_constraint() -> None:
    chat = model(HARDER)
    result = ChatEvolver(chat).evolve(asked(1), 1)
    (one,) = result.evolved
    assert one.prompt == "Name a tree and its month, in 5 words at most."
    assert (one.answer, one.original) == ("An oak in June.", "Name tree 0.")
    assert one.satisfied()
    assert [(c.kind, c.parameters) for c in one.constraints] == [("at_most_words", {"n": 5})]
    assert one.to_example().task == "instruction:evolved"
    assert chat.heard[1] == one.prompt


def test_every_kind_is_offered() -> None:
    prompt = rewrite_prompt("Name a tree.")
    assert all(f"- {kind} " in prompt for kind in TEXT_KINDS)


@pytest.mark.parametrize(
    ("rewrite", "answer", "reason"),
    [
        (rewritten("NAME tree 0", n=5), "oak", "the same as the original"),
        ("Name two trees.", "oak", "no instruction was returned"),
        ('{"instruction": 3}', "oak", "no instruction was returned"),
        (rewritten("Name a tree of 1880.", n=9), "Sorry, I cannot.", "the answer is an apology"),
        (rewritten("Name a tree of 1880.", n=1), "An oak.", "the answer breaks its constraint"),
        (
            rewritten("Name a tree of 1880.", None),
            "An oak.",
            "a constraint that cannot be verified",
        ),
        (rewritten("Name a tree of 1880.", "rhymes"), "An oak.", "a constraint that cannot be"),
        (rewritten("Name a tree of 1880.", n=9), " ", "an empty answer"),
    ],
)
def test_what_is_eliminated_is_counted_by_reason(rewrite: str, answer: str, reason: str) -> None:
    result = ChatEvolver(model(rewrite, answer)).evolve(asked(1), 1)
    assert not result.evolved
    ((said, times),) = result.refused.items()
    assert said.startswith(reason)
    assert times == 1


def test_unchecked_constraint_is_kept_on_request_and_a_broken_one_never() -> None:
    unchecked = model(rewritten("Name a tree that rhymes.", "rhymes"))
    assert len(ChatEvolver(unchecked, keep_unchecked=True).evolve(asked(1), 1).evolved) == 1
    broken = model(rewritten("Name a tree in a word.", n=1))
    assert not ChatEvolver(broken, keep_unchecked=True).evolve(asked(1), 1).evolved


def test_an_answer_that_no_file_can_hold_is_left_out_and_not_asked_for_again(
    tmp_path: Path,
) -> None:
    cache = tmp_path / "chat.jsonl"
    for calls in (2, 0):
        chat = model(HARDER, "An oak, \ud800.")
        result = ChatEvolver(chat, cache=cache).evolve(asked(1), 1)
        assert (result.evolved, len(chat.heard)) == ([], calls)
        assert result.refused == {"control characters, or no Unicode": 1}


def test_second_run_asks_only_for_what_the_first_did_not_do(tmp_path: Path) -> None:
    cache = tmp_path / "new" / "chat.jsonl"
    first = ChatEvolver(model(HARDER), cache=cache, calls=5).evolve(asked(6), 6)
    assert (len(first.evolved), first.stopped) == (2, "all calls are made")
    # Killed in the middle of a line.
    cache.write_text(cache.read_text() + '{"key": "a', encoding="utf-8")
    chat = model(HARDER)
    second = ChatEvolver(chat, cache=cache).evolve(asked(6), 6)
    assert len(second.evolved) == 6
    assert len(chat.heard) == 2 * 4
    assert second.evolved[:2] == first.evolved
    third = ChatEvolver(quiet := model(HARDER), cache=cache).evolve(asked(6), 6)
    assert third.evolved == second.evolved
    assert not quiet.heard


def test_file_that_is_no_cache_is_refused(tmp_path: Path) -> None:
    cache = tmp_path / "chat.jsonl"
    cache.write_text('{"prompt": "a"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"chat\.jsonl, line 1: no outcome"):
        ChatEvolver(model(HARDER), cache=cache)
    assert cache.read_text() == '{"prompt": "a"}\n'


def test_model_that_fails_is_asked_three_times_in_a_row() -> None:
    def fail(text: str) -> str:
        raise ConnectionError("no route")

    result = ChatEvolver(chat := Model(answer=fail)).evolve(asked(9), 9)
    assert "no route" in result.stopped
    assert result.refused == {"the model failed": 3}
    assert len(chat.heard) == 3


def test_model_that_hangs_ends_the_evolution_within_its_time() -> None:
    released = threading.Event()
    hanging = Model(answer=lambda text: str(released.wait(60)))
    started = time.monotonic()
    result = ChatEvolver(hanging, seconds=0.4).evolve(asked(9), 9)
    assert time.monotonic() - started < 5
    released.set()
    assert not result.evolved
    assert result.stopped == "the time for all calls is over"


def test_instruction_with_braces_is_asked_for_as_it_is() -> None:
    assert rewrite_prompt("Print {x} and {{y}}.").endswith("Print {x} and {{y}}.")
