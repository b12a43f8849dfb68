"""Answers are scored by a chat model's log-probabilities, with the client that users have."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import pytest

from casewright.errors import InputError, ScoringError
from casewright.finetune.demonstrations import Asked, ChatScorer, Demonstration, open_scorer
from casewright.planner import chat_model
from tests.support.chat_server import USAGE, Answer, Heard, chat_server, nobody_there


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what a developer may have set, and past any proxy."""
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def scorer(url: str, **settings: Any) -> ChatScorer:
    return ChatScorer(chat_model("openai:tiny", base_url=url, max_retries=0), "tiny", **settings)


def listed(heard: Heard) -> dict[str, str]:
    """Return the answers of the list by their letters."""
    return dict(re.findall(r"^([A-T])\. (.*)$", heard.body["messages"][-1]["content"], re.M))


def telling(logprobs: Mapping[str, float], bias: float = 0.0) -> Answer:
    """Return a server's way to answer: each text's letter has its number, and early ones a bias."""

    def answer(heard: Heard) -> None:
        assert heard.body["logprobs"] is True
        assert heard.body["top_logprobs"] == 20
        told = [
            {"token": letter, "logprob": logprobs[text] + bias * place, "bytes": None}
            for place, (letter, text) in enumerate(listed(heard).items())
            if text in logprobs
        ]
        token = {"token": "A", "logprob": -1.0, "bytes": None, "top_logprobs": told}
        message = {"role": "assistant", "content": "A"}
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "stop",
            "logprobs": {"content": [token]},
        }
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        heard.send(200, json.dumps({**body, "choices": [choice], "usage": USAGE}))

    return answer


def test_an_answer_has_its_letters_log_probability_whichever_its_place() -> None:
    told = {"north": -0.5, "south": -2.0, "west": -3.0}
    asked = Asked("where?", tuple(told), (Demonstration("when?", "late"),))
    with chat_server("") as server:
        # Later letters are held to be likelier, as by models that prefer a place.
        server.answer = telling(told, bias=0.25)
        ((place, found),) = scorer(server.url).score([asked])
        heard = list(server.heard)
    assert place == 0
    # Of three places, each answer's two are as far from the middle on either side.
    assert [one.logprob for one in found] == pytest.approx([n + 0.25 for n in told.values()])
    assert sorted(tuple(listed(one).values()) for one in heard) == sorted(
        [tuple(told), tuple(reversed(told))]
    )
    roles = [message["role"] for message in heard[0].body["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert heard[0].body["messages"][1]["content"] == "late"


def test_more_answers_than_a_list_holds_are_brought_to_one_scale() -> None:
    told = {f"place {number}": -float(number) for number in range(45)}
    # Each list's numbers are off by another constant, as probabilities that must sum to one are.
    calls: list[int] = []

    def answer(heard: Heard) -> None:
        shown = list(listed(heard).values())
        calls.append(len(shown))
        off = sum(len(text) for text in sorted(shown)) / 7
        telling({text: number - off for text, number in told.items()})(heard)

    with chat_server("") as server:
        server.answer = answer
        ((_, found),) = scorer(server.url).score([Asked("where?", tuple(told))])
    assert max(calls) <= 20
    apart = [one.logprob - found[0].logprob for one in found]
    assert apart == pytest.approx(list(told.values()))


def test_a_letter_that_is_not_told_is_at_most_as_likely_as_the_least() -> None:
    with chat_server("") as server:
        server.answer = telling({"north": -0.5, "south": -4.0})
        ((_, found),) = scorer(server.url).score([Asked("where?", ("north", "moon", "south"))])
    assert [one.logprob for one in found] == [-0.5, -4.0, -4.0]


def test_ways_to_write_a_letter_are_added_up() -> None:
    def answer(heard: Heard) -> None:
        tops = [("A", 0.3), (" A", 0.2), ("B", 0.4), ("Because", 0.1)]
        told = [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in tops]
        token = {"token": "B", "logprob": -1.0, "bytes": None, "top_logprobs": told}
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": "B"},
            "finish_reason": "stop",
            "logprobs": {"content": [token]},
        }
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        heard.send(200, json.dumps({**body, "choices": [choice], "usage": USAGE}))

    with chat_server("") as server:
        server.answer = answer
        ((_, found),) = scorer(server.url).score([Asked("x", ("first", "second"))])
    # A in one list, B in the other: the mean of log 0.5 and log 0.4, for both.
    assert [one.logprob for one in found] == pytest.approx([math.log(0.2) / 2] * 2)


def test_a_model_that_tells_no_probabilities_is_named_with_what_to_do() -> None:
    message = r"no log-probabilities.*local"
    with chat_server("A") as server, pytest.raises(ScoringError, match=message):
        list(scorer(server.url).score([Asked("x", ("a", "b"))]))


def test_a_server_that_is_gone_is_told_in_one_line_and_what_was_scored_is_kept() -> None:
    with pytest.raises(ScoringError, match=r"http://127\.0\.0\.1.*run it again") as told:
        list(scorer(nobody_there()).score([Asked("x", ("a", "b"))] * 3))
    assert "\n" not in str(told.value)


def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    with chat_server("") as server:
        server.answer = lambda heard: heard.released.wait(30) and None
        with pytest.raises(ScoringError, match="failed"):
            list(scorer(server.url, seconds=0.3).score([Asked("x", ("a", "b"))]))


def test_keys_tell_lists_apart_whose_letters_compete() -> None:
    one = scorer("http://127.0.0.1:1/v1")
    first, second = one.keys(Asked("x", ("a", "b"))), one.keys(Asked("x", ("a", "c")))
    assert not set(first) & set(second)
    assert len(set(first)) == 2


def test_a_chat_model_has_no_adapter() -> None:
    with pytest.raises(InputError, match="is a chat model"):
        open_scorer("openai:tiny", adapter="x")
