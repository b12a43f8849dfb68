"""Comparison of a chat model's plans, over HTTP, with the case planner's: time, accuracy, costs."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import ProxyHandler, build_opener
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from casewright.bench.harness import finish, mean, p50, p95, read_tested_domain, running, timings
from casewright.bench.models import save_random_model
from casewright.bench.report import Report
from casewright.errors import DependencyError, InputError
from casewright.finetune.evaluation import judge
from casewright.planner import AnnotatedQuery, ChatPlanner, Planner, chat_model, plan_store
from casewright.planner.chat_call import ask, failure
from casewright.planner.named import CASE_PLANNER, make_planner
from casewright.tools import Toolbox

#: The random model's name, and its limit of generated tokens: the length of a long plan.
RANDOM, RANDOM_TOKENS = "random-mistral", 64
#: The numbers of timed completions of one token, and of untimed ones before: the first are slow.
ROUND_TRIPS, WARM_UP = 20, 2
#: The packages that `transformers serve` needs in addition to transformers.
SERVER_PACKAGES = ("fastapi", "openai", "uvicorn")
#: The server's code. It exits when its standard input closes, so it does not outlive its parent.
SERVER = """\
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
from transformers.cli.transformers import main
main()
"""
COLUMNS = (
    "calls and tokens are means per plan; the server counts the tokens. valid_at_first, "
    "valid_repaired: shares of plans that the chat model wrote. fallback: share of plans by the "
    "case planner; no_answer: those after a call that failed or timed out. tools_own: share of all "
    "plans that the chat model wrote with the right tools; tools: share with the fallbacks. "
    "one_token_ms is a whole round trip with the same client; chat_ms_outside_calls is a plan's "
    "time outside of its calls: plan cases, prompt, checks, fallback."
)


@dataclass(slots=True)
class Call:
    """Times of a chat model's call by ``time.perf_counter``; a call that timed out has no end."""

    started: float
    ended: float | None = None
    answered: bool = False


class CallLog(BaseCallbackHandler):
    """A LangChain callback that records a model's calls in order."""

    def __init__(self) -> None:
        self.calls: dict[UUID, Call] = {}

    def on_chat_model_start(self, *arguments: Any, run_id: UUID, **options: Any) -> None:
        """See LangChain."""
        self.calls[run_id] = Call(time.perf_counter())

    def on_llm_end(self, response: Any, *, run_id: UUID, **options: Any) -> None:
        """See LangChain."""
        call = self.calls[run_id]
        call.ended, call.answered = time.perf_counter(), True

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **options: Any) -> None:
        """See LangChain."""
        self.calls[run_id].ended = time.perf_counter()


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of a query.

    Attributes:
        fallback: The reason why the fallback planned; empty for the planner's own plan.
        unanswered: True if the last call failed or timed out.
        right: True if the tools are those of the gold plan.
    """

    milliseconds: float
    calls: int
    call_ms: float
    tokens: Mapping[str, int]
    fallback: str
    unanswered: bool
    right: bool


@dataclass(frozen=True, slots=True)
class Served:
    """A model behind an OpenAI-compatible API; ``parameters`` are the random model's."""

    url: str
    name: str
    parameters: int | None = None

    def client(self, tokens: int | None, **settings: Any) -> BaseChatModel:
        """Return a LangChain client; ``tokens`` limits an answer."""
        limit = {} if tokens is None else {"max_tokens": tokens}
        return chat_model(f"openai:{self.name}", base_url=self.url, **limit, **settings)

    def round_trips(self, seconds: float) -> list[float]:
        """Return the milliseconds of completions of one token.

        Raises:
            InputError: The server does not answer within ``seconds``.
        """
        client = self.client(1)
        call = partial(ask, client, [HumanMessage("Hello")], seconds)
        try:
            return timings(call, WARM_UP + ROUND_TRIPS)[WARM_UP:]
        except Exception as error:  # a server may fail in any way
            raise InputError(f"{failure(client, error)}. Check --url and --model.") from error


@contextmanager
def served(url: str | None, model: str | None, texts: Iterable[str]) -> Iterator[Served]:
    """Yield the model at a URL; without a URL, a random model with a tokenizer of the texts.

    Raises:
        InputError: Only one of ``url`` and ``model`` is given.
        CasewrightError: The local server cannot be started, or fails.
    """
    if (url is None) != (model is None):
        raise InputError("--url and --model go together: a server's address, and its model's name.")
    if url is not None and model is not None:
        yield Served(url, model)
        return
    with TemporaryDirectory(prefix="casewright-model-") as parent:
        folder = Path(parent) / RANDOM
        parameters = save_random_model(folder, texts)
        with local_server(folder) as address:
            yield Served(address, RANDOM, parameters)


@contextmanager
def local_server(folder: Path, *, seconds: float = 120.0) -> Iterator[str]:
    """Run `transformers serve` for a model's folder, and yield the URL of its API.

    Raises:
        DependencyError: A package of ``SERVER_PACKAGES`` is not installed.
        CasewrightError: The server does not start in time, or ends early.
    """
    if missing := [name for name in SERVER_PACKAGES if find_spec(name) is None]:
        raise DependencyError(
            f"A local server needs {', '.join(missing)}. Run: pip install 'casewright[bench]'"
        )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-c", SERVER, "serve", folder.name]
    command += ["--host", "127.0.0.1", "--port", port, "--device", "cpu"]
    # Requests to this machine must not go through the environment's proxy.
    opener = build_opener(ProxyHandler({}))

    def address(log: str) -> str | None:
        with suppress(OSError, HTTPException):
            opener.open(f"http://127.0.0.1:{port}/health", timeout=1).close()
            return f"http://127.0.0.1:{port}/v1"
        return None

    with TemporaryDirectory(prefix="casewright-caches-") as caches:
        # The server downloads nothing, and its caches are in a temporary folder.
        settings = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1", "HF_HOME": caches}
        options: dict[str, Any] = {"cwd": folder.parent, "env": {**os.environ, **settings}}
        with running(command, address, seconds=seconds, **options) as (url, _):
            yield url


def measure_chat(
    domain_name: str,
    queries: int,
    *,
    url: str | None = None,
    model: str | None = None,
    tokens: int | None = None,
    seconds: float = 30.0,
) -> Report:
    """Plan for the same queries with a chat model over HTTP and with the case planner.

    Without a URL, a local server runs a small model with random weights, which cannot plan: the
    report then measures transport and control flow, not quality.
    """
    tested = read_tested_domain(domain_name)
    known, measuring = tested.domain.queries(), tested.measuring(queries)
    sample = [measuring[number * len(measuring) // queries] for number in range(queries)]
    limit = RANDOM_TOKENS if tokens is None and url is None else tokens
    log = CallLog()
    with served(url, model, (f"{query.query}\n{query.plan}" for query in known)) as server:
        chat, trips = server.client(limit, callbacks=[log]), server.round_trips(seconds)
        with plan_store(known, tested.uncached) as cases:
            case_planner = make_planner(CASE_PLANNER, cases, tested.domain.open_reader())
            planner = ChatPlanner(chat, fallback=case_planner, plan_cases=cases, seconds=seconds)
            planned = {
                name: _plan_all(candidate, sample, tested.toolbox, log)
                for name, candidate in (("chat", planner), ("case", case_planner))
            }
    reasons = Counter(p.fallback for p in planned["chat"] if p.fallback and p.unanswered)
    notes = [COLUMNS, *(f"{count} × {why}" for why, count in reasons.most_common(3))]
    if server.parameters is not None:
        notes.insert(
            0,
            f"A random model of {server.parameters:,} parameters answered: it cannot plan. The "
            "figures measure transport and control flow: requests, answers, repair and fallback.",
        )
    return Report(
        bench="chat",
        settings={
            "domain": tested.domain.name,
            "server": url or "transformers serve, on this machine",
            "model": server.name,
            "parameters": server.parameters,
            "tokens": limit,
            "seconds": seconds,
        },
        figures={
            "queries": float(len(sample)),
            "one_token_ms_p50": p50(trips),
            "one_token_ms_p95": p95(trips),
            "chat_ms_outside_calls_p50": p50([p.milliseconds - p.call_ms for p in planned["chat"]]),
        },
        rows=[{"planner": name, **_row(plans)} for name, plans in planned.items()],
        notes=notes,
        draw=lambda axes: _draw(axes, planned, trips),
    )


def _plan_all(
    planner: Planner, queries: Sequence[AnnotatedQuery], toolbox: Toolbox, log: CallLog
) -> list[Planned]:
    """Return the plans of the queries; a first plan to warm up does not count."""
    planner.plan(queries[0].record.request(toolbox))
    plans = []
    for query in queries:
        before = len(log.calls)
        result = planner.plan(query.record.request(toolbox))
        now, calls = time.perf_counter(), list(log.calls.values())[before:]
        plans.append(
            Planned(
                result.milliseconds,
                len(calls),
                sum(((call.ended or now) - call.started) * 1000 for call in calls),
                result.tokens,
                result.fallback,
                bool(calls) and not calls[-1].answered,
                judge(query, result.plan).tools,
            )
        )
    return plans


def _row(plans: Sequence[Planned]) -> dict[str, Any]:
    """Return a planner's row of means and shares over its plans."""
    times = [plan.milliseconds for plan in plans]
    shares = {
        "valid_at_first": [not plan.fallback and plan.calls < 2 for plan in plans],
        "valid_repaired": [not plan.fallback and plan.calls >= 2 for plan in plans],
        "fallback": [bool(plan.fallback) for plan in plans],
        "no_answer": [bool(plan.fallback) and plan.unanswered for plan in plans],
        "tools_own": [not plan.fallback and plan.right for plan in plans],
        "tools": [plan.right for plan in plans],
    }
    return {
        "plans": len(plans),
        "calls": round(mean([plan.calls for plan in plans]), 3),
        "tokens_in": round(mean([plan.tokens.get("input", 0) for plan in plans]), 1),
        "tokens_out": round(mean([plan.tokens.get("output", 0) for plan in plans]), 1),
        "ms_p50": round(p50(times), 2),
        "ms_p95": round(p95(times), 2),
        **{name: round(mean(values), 4) for name, values in shares.items()},
    }


def _draw(axes: Any, planned: Mapping[str, Sequence[Planned]], trips: Sequence[float]) -> None:
    times = {name: [plan.milliseconds for plan in plans] for name, plans in planned.items()}
    for name, milliseconds in {**times, "a call of one token": trips}.items():
        axes.ecdf(milliseconds, label=name)
    axes.set(xlabel="milliseconds", ylabel="share of plans")
    finish(axes, "Time to a plan", xscale="log")
