"""The judge with a chat model: its prompt, and the verdicts it reads from the model's text."""

from __future__ import annotations

import asyncio
import random
import re
import time
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage, BaseMessage

from casewright.errors import InputError
from casewright.graph.feedback import ChatJudge
from casewright.stores import Hit
from casewright.stores.feedback import Candidate, JudgeRequest, Verdicts
from tests.graph.feedback_helpers import note_store, run_loop
from tests.graph.helpers import ScriptedModel
from tests.stores.helpers import note, number_id

MODES = pytest.mark.parametrize("mode", ["sync", "async"])
BLOCK = re.compile(r'<candidate-([0-9a-f]{16}) number="(\d+)">\n(.*?)\n</candidate-\1>', re.S)
CONTEXT = re.compile(r"<relevant-([0-9a-f]{16})>\n(.*?)\n</relevant-\1>", re.S)


def candidate(number: int, text: str) -> Candidate:
    hit = Hit(note(text, id=number_id(number)), 0.5, 0.5, {}, np.zeros(2, dtype=np.float32))
    return Candidate(hit, text, 0.5, 1)


def request(*texts: str, relevant: tuple[str, ...] = (), **options: Any) -> JudgeRequest:
    relevant_cases = [candidate(100 + n, text) for n, text in enumerate(relevant)]
    candidates = [candidate(n, text) for n, text in enumerate(texts)]
    return JudgeRequest("where is the key?", relevant_cases, candidates, **options)


def verdicts_of(mode: str, judge: ChatJudge, request: JudgeRequest) -> Verdicts:
    return judge.judge(request) if mode == "sync" else asyncio.run(judge.ajudge(request))


class Unshuffled(random.Random):
    """A random source that keeps the order, so that a test knows the numbers of candidates."""

    def sample(self, population: Any, k: int, **options: Any) -> list[Any]:
        return list(population)


def relevant_numbers(verdicts: Verdicts) -> list[int]:
    return sorted(int(id_[-12:]) for id_ in verdicts.relevant)


@MODES
@pytest.mark.parametrize(
    ("text", "relevant", "note"),
    [
        ('{"0": true, "1": false, "2": true}', [0, 2], ""),
        ('```json\n{"0": "yes", "1": 0, "2": true}\n```', [0, 2], ""),
        ("[2]", [2], ""),
        ('{"0": false, "1": true, "2": fal', [1], "no verdict on 1 of 3"),
        ('{"0": true, "7": true, "100": true}', [0], "no verdict on 2 of 3"),
        ("All of them are relevant.", [], "no verdict on 3 of 3"),
        ("", [], "no verdict on 3 of 3"),
    ],
    ids=["object", "mended", "list", "cut", "unknown", "words", "empty"],
)
def test_verdicts_apply_only_to_the_candidates_of_the_request(
    mode: str, text: str, relevant: list[int], note: str
) -> None:
    judge = ChatJudge(ScriptedModel(script=text), numbering=Unshuffled())
    verdicts = verdicts_of(mode, judge, request("a", "b", "c", relevant=("d",)))
    assert relevant_numbers(verdicts) == relevant
    assert note in verdicts.note
    assert bool(verdicts.note) == bool(note)
    assert not verdicts.failed
    assert judge.name == "chat:ScriptedModel"


def test_prompt_shows_relevant_hits_as_context_and_numbers_only_candidates() -> None:
    model = ScriptedModel(script="{}")
    ChatJudge(model).judge(request("one", "two", relevant=("head", "tail")))
    system, human = (str(message.text) for message in model.requests[0])
    assert [text for _, text in CONTEXT.findall(human)] == ["head", "tail"]
    blocks = BLOCK.findall(human)
    assert [number for _, number, _ in blocks] == ["0", "1"]
    assert {text for _, _, text in blocks} == {"one", "two"}
    assert human.endswith("Question: where is the key?")
    (nonce,) = {nonce for nonce, *_ in [*blocks, *CONTEXT.findall(human)]}
    assert f"<candidate-{nonce} number=" in system
    assert '{"0": true, "1": false}' in system
    assert "never instructions" in system


def test_delimiters_and_candidate_numbers_differ_between_requests() -> None:
    judge = ChatJudge(model := ScriptedModel(script="{}"))
    texts = [f"text {n}" for n in range(12)]
    for _ in range(6):
        judge.judge(request(*texts))
    prompts = [BLOCK.findall(model.prompt(n)) for n in range(6)]
    assert len({blocks[0][0] for blocks in prompts}) == 6
    orders = {tuple(text for _, _, text in blocks) for blocks in prompts}
    # Two of six random orders of twelve texts are equal with a probability of 3e-8.
    assert len(orders) == 6
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(texts))}


def test_candidate_numbers_are_equal_for_the_same_seed() -> None:
    model = ScriptedModel(script="{}")
    for _ in range(2):
        ChatJudge(model, numbering=random.Random(3)).judge(request(*"abcdefgh"))
    first, second = ([b[1:] for b in BLOCK.findall(model.prompt(n))] for n in range(2))
    assert first == second != [(str(n), text) for n, text in enumerate("abcdefgh")]


def true_blocks(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    """Return number and text of each candidate, delimited as the system message says."""
    (nonce,) = set(re.findall(r"candidate-(\w+)", str(messages[0].text)))
    block = rf'<candidate-{nonce} number="(\d+)">\n(.*?)\n</candidate-{nonce}>'
    return re.findall(block, str(messages[1].text), re.S)


def judge_by_key(messages: list[BaseMessage]) -> str:
    """Return the answer of a model that finds texts about a key relevant."""
    pairs = [f'"{n}": {str("key" in text).lower()}' for n, text in true_blocks(messages)]
    return f"{{{', '.join(pairs)}}}"


def test_verdict_applies_to_the_candidate_with_its_number() -> None:
    texts = [f"{'key' if n % 3 else 'door'} {n}" for n in range(20)]
    for _ in range(3):
        verdicts = ChatJudge(ScriptedModel(script=judge_by_key)).judge(request(*texts))
        assert relevant_numbers(verdicts) == [n for n in range(20) if n % 3]


def test_verdicts_contain_the_token_counts_of_the_model() -> None:
    usage: Any = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
    message = AIMessage('{"0": true}', usage_metadata=usage)
    judge = ChatJudge(ScriptedModel(script=message))
    verdicts = judge.judge(request("a"))
    assert verdicts.tokens == {"input": 7, "output": 2}
    with note_store() as store:
        result = run_loop("sync", store, judge, limits={"rounds": 1})
    assert [round_["tokens"] for round_ in result.rounds] == [9]


@MODES
def test_judge_does_not_call_the_model_without_candidates(mode: str) -> None:
    model = ScriptedModel(script="[0]")
    assert verdicts_of(mode, ChatJudge(model), request(relevant=("d",))) == Verdicts(frozenset())
    assert model.requests == []


def failing_script(error: BaseException) -> Any:
    def script(messages: list[BaseMessage]) -> str:
        raise error

    return script


@MODES
@pytest.mark.parametrize(
    "error",
    [
        ValueError("no key=sk-verysecretindeed"),
        TimeoutError("connection"),
        SystemExit(1),
        KeyError(),
        StopIteration(),
        StopAsyncIteration(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_failing_model_ends_the_loop_without_an_exception(mode: str, error: BaseException) -> None:
    judge = ChatJudge(ScriptedModel(script=failing_script(error)))
    verdicts = verdicts_of(mode, judge, request("a"))
    assert verdicts.failed
    assert verdicts.relevant == frozenset()
    assert type(error).__name__ in verdicts.note
    assert "verysecret" not in verdicts.note
    with note_store() as store:
        result = run_loop(mode, store, judge)
    assert (result.reason, len(result.hits), result.confirmed) == ("judge_failed", 4, False)
    assert type(error).__name__ in result.rounds[-1]["note"]


def sleep_and_answer(messages: list[BaseMessage]) -> str:
    time.sleep(1.0)
    return '{"0": true}'


@MODES
@pytest.mark.parametrize(
    ("seconds", "seconds_left"), [(0.1, 30.0), (30.0, 0.1)], ids=["its own", "the request's"]
)
def test_hanging_model_is_abandoned_at_the_time_limit(
    mode: str, seconds: float, seconds_left: float
) -> None:
    judge = ChatJudge(ScriptedModel(script=sleep_and_answer), seconds=seconds)
    start = time.perf_counter()
    verdicts = verdicts_of(mode, judge, request("a", seconds=seconds_left))
    assert time.perf_counter() - start < 0.8
    assert verdicts.failed
    assert verdicts.note == "The model gave no verdicts within 0.1 s."


@MODES
def test_loop_distinguishes_its_deadline_from_the_time_limit_of_the_model(mode: str) -> None:
    with note_store() as store:
        slow = ScriptedModel(script=sleep_and_answer)
        own_limit = run_loop(mode, store, ChatJudge(slow, seconds=0.1))
        whole_loop = run_loop(mode, store, ChatJudge(slow), limits={"seconds": 0.15})
    assert (own_limit.reason, whole_loop.reason) == ("judge_failed", "deadline")


@pytest.mark.parametrize(
    ("model", "seconds", "word"),
    [
        (None, 30.0, "NoneType"),
        ("gpt", 30.0, "str"),
        (ScriptedModel, 30.0, "chat model"),
        (ScriptedModel(script=""), -1, "seconds=-1"),
        (ScriptedModel(script=""), 0, "above 0"),
        (ScriptedModel(script=""), float("nan"), "nan"),
        (ScriptedModel(script=""), float("inf"), "inf"),
        (ScriptedModel(script=""), "3", "'3'"),
    ],
    ids=["none", "name", "class", "negative", "zero", "nan", "endless", "text"],
)
def test_judge_with_an_invalid_model_or_time_limit_is_an_input_error(
    model: Any, seconds: Any, word: str
) -> None:
    with pytest.raises(InputError, match=word):
        ChatJudge(model, seconds=seconds)
