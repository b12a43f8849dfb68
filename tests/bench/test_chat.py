"""Tests of the chat bench with a real server of the small base and with a scripted server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from casewright.bench import chat as measure
from casewright.bench import harness
from casewright.bench.chat import (
    MAX_STREAMED_TOKENS,
    ROUND_TRIP_COUNT,
    STREAM_COUNT,
    WARM_UP_COUNT,
    ServedModel,
    local_server,
    served,
)
from casewright.domains import Domain, OpenDomain
from casewright.errors import CasewrightError, DependencyError, InputError
from casewright.graph import ChatGenerator, GenerationRequest
from casewright.graph.feedback import ChatJudge
from casewright.planner import AnnotatedQuery, ChatPlanner, PlanRequest, chat_model, plan_store
from casewright.serve.cli.commands import app
from casewright.stores import CachedEncoder, Encoder
from tests.graph.helpers import evidence
from tests.graph.test_feedback_chat_judge import request as judge_request
from tests.planner.helpers import SHOP, make_queries
from tests.support.chat_server import USAGE, ReceivedRequest, chat_server, unused_url
from tests.support.encoders import HashingEncoder

#: The server takes seconds to start, and longer on a busy machine.
pytestmark = pytest.mark.timeout(300)
REQUEST = PlanRequest("do you sell wool socks", SHOP)
#: Measuring queries, by the outcome that ``answer_plan_request`` gives each.
OUTCOMES = {
    "right": ("have you got tents", 's1 = find(query="tents")'),
    "mended": ("may I exchange a lamp", "s1 = desk(query=question)"),
    "wrong": ("good evening", "s1 = no_evidence()"),
    "failed": ("got any hammocks", 's1 = find(query="hammocks")'),
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bypass any proxy and unset the API key of a developer."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="module")
def base_server() -> Iterator[ServedModel]:
    """Yield the small base in ``transformers serve``, which starts in ten seconds."""
    with served(None, None) as server:
        yield server


def open_toy(folder: Path, encoder: Encoder, anew: bool = False) -> OpenDomain:
    store = plan_store(make_queries(), encoder)
    return OpenDomain(SHOP, store, {"plans": store})


def measuring_queries() -> list[AnnotatedQuery]:
    return [
        AnnotatedQuery.read({"id": name, "query": query, "plan": plan, "class": name})
        for name, (query, plan) in OUTCOMES.items()
    ]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Replace every domain with a toy that has four measuring queries."""
    domain = Domain("toy", "A toy.", (), open_toy, make_queries, measuring_queries)
    encoder = CachedEncoder(HashingEncoder(256), tmp_path_factory.mktemp("embeddings"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("casewright.domains.find_domain", lambda name: domain)
        patch.setattr(harness, "default_encoder", lambda: encoder)
        yield


def answer_plan_request(request: ReceivedRequest) -> None:
    """Answer with a right plan, at once or after a repair; an invalid plan; or an error."""
    first, *later_messages = [m["content"] for m in request.body["messages"] if m["role"] == "user"]
    names = [name for name, (query, _) in OUTCOMES.items() if f"Question: {query}\n" in first]
    if names == ["failed"]:
        request.send(400, '{"error": {"message": "no hammocks"}}')
    elif names == ["wrong"] or (
        names == ["mended"] and not any("cannot be run" in text for text in later_messages)
    ):
        request.say("s1 = sell()")
    else:
        request.say(OUTCOMES[names[0]][1] if names else "Hi")


@dataclass(frozen=True)
class Run:
    """A run of the command with a server that can plan.

    Attributes:
        report: The printed report.
        picture: The file of its plot.
        requests: The requests to the server.
        url: The address of the server.
    """

    report: dict[str, Any]
    picture: Path
    requests: list[ReceivedRequest]
    url: str


@pytest.fixture(scope="module")
def bench_run(toy: None, tmp_path_factory: pytest.TempPathFactory) -> Run:
    picture = tmp_path_factory.mktemp("plots") / "chat.png"
    with chat_server() as server:
        server.answer = answer_plan_request
        args = ["--url", server.url, "--model", "tiny", "--queries", "4", "--tokens", "50"]
        completed = CliRunner().invoke(
            app, ["bench", "chat", *args, "--plot", str(picture), "--json"], catch_exceptions=False
        )
    assert completed.exit_code == 0, completed.output
    return Run(json.loads(completed.stdout), picture, server.requests, server.url)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_transformers_serve_answers_the_chat_planner(base_server: ServedModel, mode: str) -> None:
    # No plan fits into three tokens.
    planner = ChatPlanner(base_server.client(3))
    result = planner.plan(REQUEST) if mode == "sync" else asyncio.run(planner.aplan(REQUEST))
    REQUEST.validate(result.plan)
    assert f"chat:{base_server.name}: The model's plan was invalid: " in result.fallback
    # Two answers and the fallback. The second prompt includes the first answer.
    assert result.attempts == 3
    assert result.tokens["input"] > 2 * len(REQUEST.question)
    assert 0 < result.tokens["output"] <= 6


def test_transformers_serve_refuses_another_model(base_server: ServedModel) -> None:
    other = chat_model("openai:gpt", base_url=base_server.url, max_retries=0)
    result = ChatPlanner(other).plan(REQUEST)
    assert f"The model at {base_server.url} failed: " in result.fallback
    assert "Server is pinned to" in result.fallback


def test_streamed_answer_ends_at_the_token_limit_and_equals_the_invoked_one(
    base_server: ServedModel,
) -> None:
    chunks = list(base_server.client(12).stream("Count from 1 to 100."))
    assert len([chunk for chunk in chunks if chunk.text]) > 5
    assert any(chunk.response_metadata.get("finish_reason") == "length" for chunk in chunks)
    answer = base_server.client(12).invoke("Count from 1 to 100.")
    assert answer.usage_metadata["output_tokens"] == 12
    assert answer.text == "".join(chunk.text for chunk in chunks)


def test_small_base_writes_an_answer_and_judges_candidates(
    base_server: ServedModel,
) -> None:
    items = [evidence(1, "The kettle has a warranty of two years.")]
    question = "How long is the warranty of the kettle?"
    generator = ChatGenerator(base_server.client(24))
    generation = generator.generate(GenerationRequest(question, items))
    assert (generation.generator, generation.tokens["output"] <= 24) == (generator.name, True)
    assert "warranty" in generation.text
    verdicts = ChatJudge(base_server.client(40)).judge(judge_request("a red kettle", "a blue door"))
    assert not verdicts.failed
    assert 0 < verdicts.tokens["output"] <= 40


def test_call_is_retried_when_the_server_is_busy(base_server: ServedModel) -> None:
    def busy_once(received: ReceivedRequest) -> None:
        if len(front.requests) == 1:
            received.send(503, '{"error": {"message": "busy"}}')
            return
        request = urllib.request.Request(
            f"{base_server.url}/chat/completions",
            json.dumps(received.body).encode(),
            {"Content-Type": "application/json"},
        )
        received.send(200, urllib.request.urlopen(request).read().decode())

    with chat_server() as front:
        front.answer = busy_once
        answer = ServedModel(front.url, base_server.name).client(4).invoke("Hello")
    assert (len(front.requests), answer.usage_metadata["output_tokens"]) == (2, 4)


def test_chat_planner_does_not_wait_for_an_answer_after_its_time_limit(
    base_server: ServedModel,
) -> None:
    started = time.monotonic()
    result = ChatPlanner(base_server.client(64), seconds=0.2).plan(REQUEST)
    assert time.monotonic() - started < 5
    assert "gave no plan within 0.2 s" in result.fallback


def test_chat_bench_without_url_measures_the_small_base_in_every_role(
    base_server: ServedModel, toy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def fake_served(url: str | None, model: str | None) -> Iterator[ServedModel]:
        assert (url, model) == (None, None)
        yield base_server

    monkeypatch.setattr(measure, "served", fake_served)
    monkeypatch.setattr(measure, "SMOLLM2_MAX_TOKENS", 6)
    report = measure.measure_chat("toy", 1, seconds=120)
    chat, case, generator, judge = report.rows
    assert (chat["planner"], chat["plans"], chat["calls"]) == ("chat", 1, 2)
    assert (chat["fallback"], chat["no_answer"], chat["tools_own"]) == (1, 0, 0)
    # The fallback of the chat planner is the case planner.
    assert chat["tools"] == case["tools"] == case["tools_own"]
    assert chat["tokens_in"] > 500
    assert 0 < chat["tokens_out"] <= 2 * 6
    for row in (generator, judge):
        assert (row["calls"], row["no_answer"], row["cut"], row["tokens_out"]) == (1, 0, 1, 6)
    assert report.figures["streamed_first_token_ms_p50"] > 0


def test_chat_bench_counts_plans_by_their_outcome(bench_run: Run) -> None:
    chat, case, generator, judge = bench_run.report["rows"]
    assert (chat["planner"], chat["plans"], chat["calls"]) == ("chat", 4, (1 + 2 + 2 + 1) / 4)
    answered = (1 + 2 + 2 + 0) / 4
    assert chat["tokens_in"] == pytest.approx(answered * USAGE["prompt_tokens"])
    assert chat["tokens_out"] == pytest.approx(answered * USAGE["completion_tokens"], abs=0.06)
    shares = ("valid_at_first", "valid_repaired", "fallback", "no_answer", "tools_own")
    assert [chat[name] for name in shares] == [0.25, 0.25, 0.5, 0.25, 0.5]
    assert (case["planner"], *[case[name] for name in shares[:4]]) == ("case", 1, 0, 0, 0)
    assert (case["calls"], case["tokens_in"], case["tokens_out"]) == (0, 0, 0)
    assert case["tools_own"] == case["tools"] <= chat["tools"]
    # The server answers "Hi", without a citation or a verdict.
    for row in (generator, judge):
        assert (row["calls"], row["usable"], row["cut"]) == (4, 0, 0)
    assert 0 < chat["ms_p50"] <= chat["ms_p95"]
    assert 0 < bench_run.report["figures"]["chat_ms_outside_calls_p50"] < chat["ms_p95"]


def test_chat_bench_notes_the_reasons_of_failed_calls_with_their_counts(bench_run: Run) -> None:
    assert bench_run.report["settings"]["server"] == bench_run.url
    (reason,) = bench_run.report["notes"][1:]
    assert reason.startswith(f"1 × chat:tiny: The model at {bench_run.url} failed: ")
    assert reason.endswith("no hammocks")


def test_round_trip_calls_have_one_token_and_plan_calls_the_token_limit(bench_run: Run) -> None:
    figures = bench_run.report["figures"]
    assert 0 < figures["one_token_ms_p50"] <= figures["one_token_ms_p95"]
    limits = [request.body["max_completion_tokens"] for request in bench_run.requests]
    trips = WARM_UP_COUNT + ROUND_TRIP_COUNT
    assert limits[: trips + STREAM_COUNT] == [1] * trips + [MAX_STREAMED_TOKENS] * STREAM_COUNT
    assert set(limits[trips + STREAM_COUNT :]) == {50}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"url": "http://127.0.0.1:1/v1"}, "--url and --model go together"),
        ({"model": "tiny"}, "--url and --model go together"),
        ({"url": "127.0.0.1", "model": "tiny"}, "not a URL"),
        ({"query_count": 5}, "has 4 test queries"),
    ],
    ids=["no model", "no URL", "bad URL", "too many queries"],
)
def test_chat_bench_refuses_invalid_options(
    toy: None, options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        measure.measure_chat("toy", **{"query_count": 1, **options})


def test_chat_bench_refuses_an_unreachable_server_before_planning(toy: None) -> None:
    url = unused_url()
    with pytest.raises(InputError, match=f"The model at {url} failed") as error:
        measure.measure_chat("toy", 1, url=url, model="tiny")
    assert "Connection refused" in str(error.value)
    assert "Check --url and --model." in str(error.value)


def test_local_server_that_ends_at_once_is_an_error_with_its_log(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(measure, "SERVER", "import no_such_module")
    with (
        pytest.raises(CasewrightError, match="ended with code 1 before it was up"),
        local_server(tmp_path),
    ):
        pass
    assert "No module named 'no_such_module'" in capfd.readouterr().err


def test_local_server_that_does_not_start_in_time_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class RecordedPopen(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(harness.subprocess, "Popen", RecordedPopen)
    with (
        pytest.raises(CasewrightError, match=r"not up within 0\.2 s"),
        local_server(tmp_path, seconds=0.2),
    ):
        pass
    assert [process.poll() is not None for process in started] == [True]


def test_local_server_ends_when_its_parent_process_ends() -> None:
    command = [sys.executable, "-c", measure.SERVER, "serve", "nothing", "--port", "1"]
    reading, writing = os.pipe()
    with subprocess.Popen(command, stdin=reading, stderr=subprocess.DEVNULL) as process:
        os.close(reading)
        # The death of a parent closes its pipes.
        os.close(writing)
        assert process.wait(60) == 0


def test_local_server_error_names_missing_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(measure, "SERVER_PACKAGES", ("fastapi", "no_such_package"))
    with (
        pytest.raises(DependencyError, match=r"needs no_such_package\. Run: pip install"),
        local_server(tmp_path),
    ):
        pass
