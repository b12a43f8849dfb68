"""The chat planner with LangChain's OpenAI client, over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.planner import CasePlanner, ChatPlanner, PlanRequest, PlanResult, chat_model
from tests.planner.helpers import SHOP
from tests.support.chat_server import Answer, ChatServer, ReceivedRequest, chat_server, unused_url

REQUEST = PlanRequest("do you sell wool socks", SHOP)
#: The case planner's plan, and one that only the server sends.
CASE_PLAN, SENT_PLAN = 's1 = find(query="wool socks")', 's1 = find(query="socks")'
INVALID_PLAN = 's1 = fact(item_id="p1", query=question)'
VARIABLES = ("OPENAI_API_BASE", "OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the developer's settings of OpenAI, and bypass any proxy."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server(SENT_PLAN) as running:
        yield running


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def plan_with(planner: ChatPlanner, mode: str = "sync") -> PlanResult:
    result = planner.plan(REQUEST) if mode == "sync" else asyncio.run(planner.aplan(REQUEST))
    REQUEST.validate(result.plan)
    return result


def client(url: str, **settings: Any) -> Any:
    return chat_model("openai:tiny", base_url=url, **settings)


def test_chat_planner_returns_the_plan_and_token_counts_of_the_server(
    server: ChatServer, mode: str
) -> None:
    result = plan_with(ChatPlanner(client(server.url)), mode)
    assert (str(result.plan), result.planner, result.fallback) == (SENT_PLAN, "chat:tiny", "")
    assert (result.attempts, result.tokens) == (1, {"input": 100, "output": 7})
    (received,) = server.requests
    assert (received.body["model"], received.body["temperature"]) == ("tiny", 0)
    assert [message["role"] for message in received.body["messages"]] == ["system", "user"]
    assert received.body["messages"][1]["content"].endswith(f"Question: {REQUEST.question}\nPlan:")


def test_chat_planner_sends_an_invalid_plan_back_with_its_errors(mode: str) -> None:
    with chat_server(INVALID_PLAN, SENT_PLAN) as server:
        result = plan_with(ChatPlanner(client(server.url)), mode)
    assert (str(result.plan), result.attempts) == (SENT_PLAN, 2)
    assert result.tokens == {"input": 200, "output": 14}
    assert len(server.requests) == 2
    *_, answer, complaint = server.requests[1].body["messages"]
    assert (answer["role"], answer["content"]) == ("assistant", INVALID_PLAN)
    assert 'item_id may not be the text "p1"' in complaint["content"]


def refuse(status: int, reason: str) -> Answer:
    return lambda received: received.send(status, f'{{"error": {{"message": "{reason}"}}}}')


def cut_answer(received: ReceivedRequest) -> None:
    received.begin(200, length=1000)
    received.write('{"id":')
    received.hang_up()


def send_nonsense_stream(received: ReceivedRequest) -> None:
    received.send(200, "data: {no\n\ndata: [DONE]\n\n", "text/event-stream")


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (refuse(404, "The model tiny does not exist."), "The model tiny does not exist."),
        (refuse(401, "Incorrect API key"), "401 - Incorrect API key"),
        (refuse(429, "Slow down."), "Slow down."),
        (lambda received: received.send(500, "Internal Server Error", "text/plain"), "500"),
        (lambda received: received.hang_up(), "Server disconnected without sending a response"),
        (cut_answer, "received 6 bytes, expected 1000"),
        (send_nonsense_stream, "data: {no"),
        (lambda received: received.send(200, "<html>Welcome</html>", "text/html"), "Welcome"),
        (lambda received: received.send(200, "{no"), "JSONDecodeError"),
        (lambda received: received.send(200, "{}"), "'choices'"),
    ],
    ids=["404", "401", "429", "500", "hangs up", "cut", "stream", "page", "no JSON", "empty"],
)
def test_fallback_reason_names_the_failing_server_and_the_cause(
    server: ChatServer, shop_planner: CasePlanner, answer: Answer, cause: str
) -> None:
    server.answer = answer
    result = plan_with(ChatPlanner(client(server.url, max_retries=0), fallback=shop_planner))
    assert (str(result.plan), result.planner) == (CASE_PLAN, "case")
    assert result.fallback.startswith(f"chat:tiny: The model at {server.url} failed: ")
    assert cause in result.fallback


@pytest.mark.parametrize("answer", [None, ""], ids=["null", "empty"])
def test_chat_planner_treats_an_answer_without_text_as_an_invalid_plan(
    server: ChatServer, answer: str | None
) -> None:
    server.answer = lambda received: received.say(answer)
    result = plan_with(ChatPlanner(client(server.url)))
    assert "The model's plan was invalid: plan: The plan has no step." in result.fallback
    assert len(server.requests) == 2


def test_fallback_reason_names_an_unreachable_server_and_the_cause(mode: str) -> None:
    url = unused_url()
    result = plan_with(ChatPlanner(client(url, max_retries=0)), mode)
    assert f"The model at {url} failed: " in result.fallback
    assert "ConnectError: " in result.fallback


def stay_silent(received: ReceivedRequest) -> None:
    received.released.wait(30)


def send_blanks(received: ReceivedRequest) -> None:
    received.begin(200)
    while not received.released.wait(0.05):
        received.write(" ")


def send_busy(received: ReceivedRequest) -> None:
    received.send(503, "{}")


@pytest.mark.parametrize("answer", [stay_silent, send_blanks, send_busy])
def test_chat_planner_keeps_its_deadline_despite_slow_servers_and_client_retries(
    server: ChatServer, shop_planner: CasePlanner, answer: Answer, mode: str
) -> None:
    server.answer = answer
    # The client's retries of a busy server would take seconds.
    planner = ChatPlanner(client(server.url, max_retries=9), fallback=shop_planner, seconds=0.4)
    started = time.perf_counter()
    result = plan_with(planner, mode)
    assert time.perf_counter() - started < 4
    assert str(result.plan) == CASE_PLAN
    assert f"The model at {server.url} gave no plan within 0.4 s." in result.fallback


def test_chat_client_works_in_several_event_loops_in_turn(server: ChatServer) -> None:
    # Models of one address share the connections of langchain-openai's client, across loops too.
    for _ in range(3):
        result = plan_with(ChatPlanner(client(server.url)), "async")
        assert (str(result.plan), result.fallback) == (SENT_PLAN, "")


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_chat_model_with_a_server_address_needs_no_api_key(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, server.url)
    assert str(plan_with(ChatPlanner(chat_model("openai:tiny"))).plan) == SENT_PLAN
    monkeypatch.setenv("OPENAI_API_KEY", "mine")
    assert str(plan_with(ChatPlanner(chat_model("openai:tiny"))).plan) == SENT_PLAN
    assert str(plan_with(ChatPlanner(chat_model("openai:tiny", api_key="given"))).plan) == SENT_PLAN
    assert [received.key for received in server.requests] == ["none", "mine", "given"]


def test_chat_model_without_a_server_address_requires_an_api_key() -> None:
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        chat_model("openai:tiny")


@pytest.mark.parametrize("address", ["localhost:8000/v1", "http://", "somewhere"])
def test_invalid_server_address_is_reported_with_its_environment_variable(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(InputError, match="OPENAI_BASE_URL") as error:
        chat_model("openai:tiny")
    assert repr(address) in str(error.value)
    assert "http://localhost:8000/v1" in str(error.value)


def test_other_providers_do_not_read_the_openai_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "nonsense")
    with pytest.raises(ImportError, match="cohere"):
        chat_model("cohere:command-r")
