"""The bench of planning over HTTP: with `transformers serve`, and with a server that can plan."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from casewright.bench import chat as measure
from casewright.bench import harness
from casewright.bench.chat import RANDOM, ROUND_TRIPS, WARM_UP, Served, local_server, served
from casewright.bench.models import save_random_model
from casewright.domains import Domain, OpenDomain
from casewright.errors import CasewrightError, DependencyError, InputError
from casewright.planner import AnnotatedQuery, ChatPlanner, PlanRequest, chat_model, plan_store
from casewright.serve.cli.commands import app
from casewright.stores import CachedEncoder, Encoder
from tests.planner.helpers import SHOP, annotated
from tests.support.chat_server import USAGE, Heard, chat_server, nobody_there
from tests.support.encoders import HashingEncoder

#: The server starts in some seconds, and in more where other work is going on.
pytestmark = pytest.mark.timeout(300)
REQUEST = PlanRequest("do you sell wool socks", SHOP)
TEXTS = [f"{query.query}\n{query.plan}" for query in annotated()]
#: Measured with; each is answered in its own way by ``planning``.
ASKED = {
    "right": ("have you got tents", 's1 = find(query="tents")'),
    "mended": ("may I exchange a lamp", "s1 = desk(query=question)"),
    "wrong": ("good evening", "s1 = no_evidence()"),
    "failed": ("got any hammocks", 's1 = find(query="hammocks")'),
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past any proxy, and without a developer's key."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="module")
def random_server() -> Iterator[Served]:
    """``transformers serve`` with a random model; some ten seconds."""
    with served(None, None, TEXTS) as running:
        yield running


def open_toy(folder: Path, encoder: Encoder, anew: bool = False) -> OpenDomain:
    store = plan_store(annotated(), encoder)
    return OpenDomain(SHOP, store, {"plans": store})


def measuring() -> list[AnnotatedQuery]:
    return [
        AnnotatedQuery.read({"id": name, "query": query, "plan": plan, "class": name})
        for name, (query, plan) in ASKED.items()
    ]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A domain with four queries to measure with, in the place of every other."""
    domain = Domain("toy", "A toy.", (), open_toy, annotated, measuring)
    encoder = CachedEncoder(HashingEncoder(256), tmp_path_factory.mktemp("embeddings"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("casewright.domains.find_domain", lambda name: domain)
        patch.setattr(harness, "default_encoder", lambda: encoder)
        yield


def planning(heard: Heard) -> None:
    """Plan as the query wants it: at once, after a repair, never, or not at all."""
    first, *later = [m["content"] for m in heard.body["messages"] if m["role"] == "user"]
    names = [name for name, (query, _) in ASKED.items() if f"Question: {query}\n" in first]
    if names == ["failed"]:
        heard.send(400, '{"error": {"message": "no hammocks"}}')
    elif names == ["wrong"] or (
        names == ["mended"] and not any("cannot be run" in x for x in later)
    ):
        heard.say("s1 = sell()")
    else:
        heard.say(ASKED[names[0]][1] if names else "Hi")


@dataclass(frozen=True)
class Run:
    """A run of the command with a server that can plan.

    Attributes:
        report: What it printed.
        picture: What it drew.
        heard: What the server was asked.
        url: The server's.
    """

    report: dict[str, Any]
    picture: Path
    heard: list[Heard]
    url: str


@pytest.fixture(scope="module")
def measured(toy: None, tmp_path_factory: pytest.TempPathFactory) -> Run:
    picture = tmp_path_factory.mktemp("plots") / "chat.png"
    with chat_server() as server:
        server.answer = planning
        typed = ["--url", server.url, "--model", "tiny", "--queries", "4", "--tokens", "50"]
        completed = CliRunner().invoke(
            app, ["bench", "chat", *typed, "--plot", str(picture), "--json"], catch_exceptions=False
        )
    assert completed.exit_code == 0, completed.output
    return Run(json.loads(completed.stdout), picture, server.heard, server.url)


@pytest.mark.parametrize("way", ["sync", "async"])
def test_transformers_serve_answers_the_chat_planner(random_server: Served, way: str) -> None:
    planner = ChatPlanner(random_server.client(8))
    result = planner.plan(REQUEST) if way == "sync" else asyncio.run(planner.aplan(REQUEST))
    REQUEST.validate(result.plan)
    assert f"chat:{RANDOM}: The model's plan was invalid: " in result.fallback
    # Two answers of the model and the fallback; the second prompt holds the first answer as well.
    assert result.attempts == 3
    assert result.tokens["input"] > 2 * len(REQUEST.question)
    assert 0 < result.tokens["output"] <= 16


def test_transformers_serve_knows_no_other_model(random_server: Served) -> None:
    other = chat_model("openai:gpt", base_url=random_server.url, max_retries=0)
    result = ChatPlanner(other).plan(REQUEST)
    assert f"The model at {random_server.url} failed: " in result.fallback
    assert "Server is pinned to" in result.fallback


def test_without_a_server_a_random_model_is_measured_and_told(
    random_server: Served, toy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def running(url: str | None, model: str | None, texts: Any) -> Iterator[Served]:
        assert (url, model) == (None, None)
        yield random_server

    monkeypatch.setattr(measure, "served", running)
    monkeypatch.setattr(measure, "RANDOM_TOKENS", 6)
    report = measure.measure_chat("toy", 1)
    chat, case = report.rows
    assert (chat["planner"], chat["plans"], chat["calls"]) == ("chat", 1, 2)
    assert (chat["fallback"], chat["no_answer"], chat["tools_own"]) == (1, 0, 0)
    # Both planners' plans are the case planner's.
    assert chat["tools"] == case["tools"] == case["tools_own"]
    assert chat["tokens_in"] > 500
    assert 0 < chat["tokens_out"] <= 2 * 6
    parameters = random_server.parameters
    assert parameters is not None
    assert report.settings["parameters"] == parameters > 100_000
    assert (
        f"A random model of {parameters:,} parameters answered: it cannot plan." in report.notes[0]
    )


def test_plans_are_counted_by_what_came_of_them(measured: Run) -> None:
    chat, case = measured.report["rows"]
    assert (chat["planner"], chat["plans"], chat["calls"]) == ("chat", 4, (1 + 2 + 2 + 1) / 4)
    answered = (1 + 2 + 2 + 0) / 4
    assert chat["tokens_in"] == pytest.approx(answered * USAGE["prompt_tokens"])
    assert chat["tokens_out"] == pytest.approx(answered * USAGE["completion_tokens"], abs=0.06)
    shares = ("valid_at_first", "valid_repaired", "fallback", "no_answer", "tools_own")
    assert [chat[name] for name in shares] == [0.25, 0.25, 0.5, 0.25, 0.5]
    assert (case["planner"], *[case[name] for name in shares[:4]]) == ("case", 1, 0, 0, 0)
    assert (case["calls"], case["tokens_in"], case["tokens_out"]) == (0, 0, 0)
    assert case["tools_own"] == case["tools"] <= chat["tools"]
    assert 0 < chat["ms_p50"] <= chat["ms_p95"]
    assert 0 < measured.report["figures"]["chat_ms_outside_calls_p50"] < chat["ms_p95"]


def test_why_calls_were_not_answered_is_told_with_how_often(measured: Run) -> None:
    assert measured.report["settings"]["server"] == measured.url
    (reason,) = measured.report["notes"][1:]
    assert reason.startswith(f"1 × chat:tiny: The model at {measured.url} failed: ")
    assert reason.endswith("no hammocks")


def test_round_trips_are_of_one_token_and_plans_as_long_as_asked_for(measured: Run) -> None:
    figures = measured.report["figures"]
    assert 0 < figures["one_token_ms_p50"] <= figures["one_token_ms_p95"]
    limits = [heard.body["max_completion_tokens"] for heard in measured.heard]
    trips = WARM_UP + ROUND_TRIPS
    assert (limits[:trips], set(limits[trips:])) == ([1] * trips, {50})


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ({"url": "http://127.0.0.1:1/v1"}, "--url and --model go together"),
        ({"model": "tiny"}, "--url and --model go together"),
        ({"url": "127.0.0.1", "model": "tiny"}, "not a URL"),
        ({"queries": 5}, "has 4 test queries"),
    ],
    ids=["no model", "no URL", "bad URL", "too many queries"],
)
def test_what_cannot_be_measured_is_refused(
    toy: None, typed: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        measure.measure_chat("toy", **{"queries": 1, **typed})


def test_a_server_that_does_not_answer_is_refused_before_anything_is_planned(toy: None) -> None:
    url = nobody_there()
    with pytest.raises(InputError, match=f"The model at {url} failed") as error:
        measure.measure_chat("toy", 1, url=url, model="tiny")
    assert "Connection refused" in str(error.value)
    assert "Check --url and --model." in str(error.value)


def test_a_random_model_is_the_same_every_time(tmp_path: Path) -> None:
    sizes = [save_random_model(tmp_path / name, TEXTS) for name in "ab"]
    assert sizes[0] == sizes[1] > 100_000
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in "ab"]
    assert weights[0] == weights[1]


def test_a_server_that_ends_at_once_shows_its_log(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(measure, "SERVER", "import no_such_module")
    with (
        pytest.raises(CasewrightError, match="ended with code 1 before it was up"),
        local_server(tmp_path),
    ):
        pass
    assert "No module named 'no_such_module'" in capfd.readouterr().err


def test_a_server_that_is_not_up_in_time_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Seen(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(harness.subprocess, "Popen", Seen)
    with (
        pytest.raises(CasewrightError, match=r"not up within 0\.2 s"),
        local_server(tmp_path, seconds=0.2),
    ):
        pass
    assert [process.poll() is not None for process in started] == [True]


def test_a_server_ends_with_whoever_started_it() -> None:
    command = [sys.executable, "-c", measure.SERVER, "serve", "nothing", "--port", "1"]
    reading, writing = os.pipe()
    with subprocess.Popen(command, stdin=reading, stderr=subprocess.DEVNULL) as process:
        os.close(reading)
        # What the death of a parent does to its pipes.
        os.close(writing)
        assert process.wait(60) == 0


def test_a_server_without_its_packages_names_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(measure, "SERVER_PACKAGES", ("fastapi", "no_such_package"))
    with (
        pytest.raises(DependencyError, match=r"needs no_such_package\. Run: pip install"),
        local_server(tmp_path),
    ):
        pass
