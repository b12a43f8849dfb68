"""A chat model over HTTP as planner, generator and judge; the case planner is the control."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.request import ProxyHandler, build_opener
from uuid import UUID

import numpy as np
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from casewright.bench.harness import finish, load_domain, mean, p50, p95, running, timings, tracked
from casewright.bench.report import Report
from casewright.errors import DependencyError, InputError
from casewright.finetune.evaluation import judge as compare_with_gold
from casewright.graph import ChatGenerator, Evidence, GenerationRequest
from casewright.graph.feedback import ChatJudge
from casewright.graph.generator import checked_citations
from casewright.planner import AnnotatedQuery, ChatPlanner, Planner, chat_model, plan_store
from casewright.planner.chat_call import ask, failure_text
from casewright.planner.language_model.smollm2 import smollm2_folder
from casewright.planner.named import CASE_PLANNER, make_planner
from casewright.stores import Hit
from casewright.stores.feedback import Candidate, JudgeRequest
from casewright.tools import Toolbox

#: Number of plan cases that the generator and the judge read.
NEAREST_COUNT = 3
#: Maximum number of tokens that the local model SmolLM2 generates: the length of a long plan.
SMOLLM2_MAX_TOKENS = 64
#: Numbers of timed completions of one token, and of untimed ones before: the first are slow.
ROUND_TRIPS, WARM_UP = 20, 2
#: Number of streamed answers, and of tokens in each.
STREAMS, STREAMED_TOKENS = 5, 8
#: The additional packages that `transformers serve` needs, and the server's code. The server ends
#: when its standard input closes, as happens if the parent process dies.
SERVER_PACKAGES = ("fastapi", "openai", "uvicorn")
SERVER = """\
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
from transformers.cli.transformers import main
main()
"""
NOTE = (
    "calls and tokens are means of a plan, tokens by the server's count. Shares of all plans: "
    "valid_at_first, valid_repaired: by the chat model; fallback: by the case planner; no_answer: "
    "by the case planner, because a call failed or was late; tools: with the right tools; "
    "tools_own: with the right tools, by the chat model. "
    "one_token_ms is a whole round trip with the same client; chat_ms_outside_calls is a plan's "
    "time outside of its calls: plan cases, prompt, checks, fallback. Generator and judge read the "
    "nearest plan cases; cut: share of calls that the limit of tokens ended; usable: share of "
    "answers that cite evidence, or of judgements with a verdict on every candidate."
)


@dataclass(slots=True)
class _Call:
    """A call of a chat model, timed by ``perf_counter``; ``ended`` is ``None`` for a late call."""

    started: float
    ended: float | None = None
    answered: bool = False
    cut: bool = False  # True if the limit of tokens ended the answer


class _CallLog(BaseCallbackHandler):
    """A LangChain callback that records a model's calls in order."""

    def __init__(self) -> None:
        self._calls: dict[UUID, _Call] = {}

    @property
    def calls(self) -> list[_Call]:
        return list(self._calls.values())

    def on_chat_model_start(self, *arguments: Any, run_id: UUID, **options: Any) -> None:
        self._calls[run_id] = _Call(time.perf_counter())

    def on_llm_end(self, response: Any, *, run_id: UUID, **options: Any) -> None:
        call = self._calls[run_id]
        call.ended, call.answered = time.perf_counter(), True
        metadata = response.generations[0][0].message.response_metadata
        call.cut = metadata.get("finish_reason") == "length"

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **options: Any) -> None:
        self._calls[run_id].ended = time.perf_counter()


class ChatOutcome(NamedTuple):
    """The outcome and the costs of planning one query."""

    milliseconds: float
    calls: int
    call_ms: float
    tokens: Mapping[str, int]
    fallback: str  # why the fallback planner planned; empty if the chat model did
    unanswered: bool  # True if the last call failed or timed out
    right: bool  # True if the plan calls the tools of the gold plan


class ServedModel(NamedTuple):
    """A model behind an OpenAI-compatible API."""

    url: str
    name: str

    def client(self, tokens: int | None, **settings: Any) -> BaseChatModel:
        """Return a LangChain client; ``tokens`` is the maximum length of an answer."""
        options = {} if tokens is None else {"max_tokens": tokens}
        return chat_model(f"openai:{self.name}", base_url=self.url, **options, **settings)

    def round_trips(self, seconds: float) -> list[float]:
        """Return the milliseconds of completions of one token; ``InputError`` if one fails."""
        client = self.client(1)
        call = partial(ask, client, [HumanMessage("Hello")], seconds)
        return self._timed(client, call, WARM_UP + ROUND_TRIPS)[WARM_UP:]

    def first_tokens(self) -> list[float]:
        """Return the milliseconds to first tokens; ``InputError`` if the server does not stream."""
        client = self.client(STREAMED_TOKENS)

        def wait_for_token() -> None:
            next(chunk for chunk in client.stream("Count from 1 to 20.") if chunk.text)

        return self._timed(client, wait_for_token, STREAMS)

    def _timed(self, client: BaseChatModel, call: Callable[[], Any], count: int) -> list[float]:
        try:
            return timings(call, count)
        except Exception as error:  # a server may fail in any way
            raise InputError(f"{failure_text(client, error)}. Check --url and --model.") from error


@contextmanager
def served(url: str | None, model: str | None) -> Iterator[ServedModel]:
    """Yield the model at a URL; without a URL, serve SmolLM2 on this machine.

    Raise ``InputError`` if only one of ``url`` and ``model`` is given, and ``CasewrightError`` if
    SmolLM2 is not installed, or its server cannot be started or fails.
    """
    if (url is None) != (model is None):
        raise InputError("--url and --model go together: a server's address, and its model's name.")
    if url is not None and model is not None:
        yield ServedModel(url, model)
        return
    folder = smollm2_folder()
    with local_server(folder) as address:
        yield ServedModel(address, folder.name)


@contextmanager
def local_server(folder: Path, *, seconds: float = 120.0) -> Iterator[str]:
    """Run `transformers serve` for a model's folder, and yield the URL of its API.

    Raise ``DependencyError`` if a package of ``SERVER_PACKAGES`` is not installed, and
    ``CasewrightError`` if the server does not start in time, or ends early.
    """
    if missing := [name for name in SERVER_PACKAGES if find_spec(name) is None]:
        raise DependencyError(
            f"A local server needs {', '.join(missing)}. Run: pip install 'casewright[bench]'"
        )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-c", SERVER, "serve", folder.name]
    command += ["--host", "127.0.0.1", "--port", port, "--device", "cpu"]
    # Requests to this machine must not go through a proxy that the environment names.
    opener = build_opener(ProxyHandler({}))

    def find_address(log: str) -> str | None:
        with suppress(OSError, HTTPException):
            opener.open(f"http://127.0.0.1:{port}/health", timeout=1).close()
            return f"http://127.0.0.1:{port}/v1"
        return None

    with TemporaryDirectory(prefix="casewright-caches-") as caches:
        # The server downloads nothing, and its caches are in a temporary folder.
        settings = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1", "HF_HOME": caches}
        options: dict[str, Any] = {"cwd": folder.parent, "env": {**os.environ, **settings}}
        with running(command, find_address, seconds=seconds, **options) as (url, _):
            yield url


def measure_chat(
    domain_name: str,
    query_count: int,
    *,
    url: str | None = None,
    model: str | None = None,
    tokens: int | None = None,
    seconds: float = 30.0,
) -> Report:
    """Plan the same queries with a chat model over HTTP and with the case planner.

    The chat model also answers each query from the nearest plan cases, and judges their relevance.
    """
    tested = load_domain(domain_name)
    known, held_out = tested.domain.queries(), tested.held_out_queries(query_count)
    sample = [held_out[index * len(held_out) // query_count] for index in range(query_count)]
    limit = SMOLLM2_MAX_TOKENS if tokens is None and url is None else tokens
    log = _CallLog()
    with served(url, model) as server:
        chat, one_token_ms = server.client(limit, callbacks=[log]), server.round_trips(seconds)
        first_token_ms = server.first_tokens()
        with plan_store(known, tested.uncached_encoder) as cases:
            case_planner = make_planner(CASE_PLANNER, cases, tested.domain.open_reader())
            planner = ChatPlanner(chat, fallback=case_planner, plan_cases=cases, seconds=seconds)
            planned = {
                name: _plan_all(candidate, sample, tested.toolbox, log)
                for name, candidate in (("chat", planner), ("case", case_planner))
            }
            nearest = [cases.search(query.query, NEAREST_COUNT) for query in sample]
        pairs = list(zip(sample, nearest, strict=True))
        role_rows = []
        for name, call in (("generator", _generate), ("judge", _judge)):
            runs = (call(chat, query.query, hits, seconds) for query, hits in tracked(name, pairs))
            role_rows.append(_role_row(name, log, runs))
    reasons = Counter(p.fallback for p in planned["chat"] if p.fallback and p.unanswered)
    rows = [{"table": "plans", "planner": name, **_plan_cells(p)} for name, p in planned.items()]
    address = url or "transformers serve, on this machine"
    settings: dict[str, Any]
    settings = {"domain": tested.domain.name, "server": address, "model": server.name}
    settings |= {"tokens": limit, "seconds": seconds}
    figures = {
        "queries": float(len(sample)),
        "one_token_ms_p50": p50(one_token_ms),
        "one_token_ms_p95": p95(one_token_ms),
        "streamed_first_token_ms_p50": p50(first_token_ms),
        "chat_ms_outside_calls_p50": p50([p.milliseconds - p.call_ms for p in planned["chat"]]),
    }
    notes = [NOTE, *(f"{count} × {why}" for why, count in reasons.most_common(3))]
    draw = partial(_draw, planned=planned, one_token_ms=one_token_ms)
    titles = {"plans": "plans", "roles": "answers and verdicts"}
    return Report("chat", settings, figures, [*rows, *role_rows], notes, draw, titles)


def _plan_all(
    planner: Planner, queries: Sequence[AnnotatedQuery], toolbox: Toolbox, log: _CallLog
) -> list[ChatOutcome]:
    """Plan each query, and return the outcomes, after planning the first query untimed."""
    planner.plan(queries[0].record.request(toolbox))
    outcomes = []
    for query in queries:
        earlier_count = len(log.calls)
        result = planner.plan(query.record.request(toolbox))
        now, calls = time.perf_counter(), log.calls[earlier_count:]
        call_ms = sum(((call.ended or now) - call.started) * 1000 for call in calls)
        costs = (result.milliseconds, len(calls), call_ms, result.tokens)
        is_unanswered = bool(calls) and not calls[-1].answered
        is_right = compare_with_gold(query, result.plan).tools
        outcomes.append(ChatOutcome(*costs, result.fallback, is_unanswered, is_right))
    return outcomes


def _generate(
    chat: BaseChatModel, query: str, hits: Sequence[Hit], seconds: float
) -> tuple[bool, bool, Mapping[str, int]]:
    """Answer from the hits; return whether the model replied, if it cites a hit, and the tokens."""
    evidence = [
        Evidence(f"E{number}", "s1", "cases", _hit_text(hit), "", {}, final=True)
        for number, hit in enumerate(hits, 1)
    ]
    generator = ChatGenerator(chat, seconds=seconds)
    generation = generator.generate(GenerationRequest(query, evidence))
    has_replied = generation.generator == generator.name
    _, cited = checked_citations(generation.text, evidence)
    return has_replied, has_replied and bool(cited), generation.tokens


def _judge(
    chat: BaseChatModel, query: str, hits: Sequence[Hit], seconds: float
) -> tuple[bool, bool, Mapping[str, int]]:
    """Judge the hits; return whether the model replied, if it judged every hit, and the tokens."""
    candidates = [Candidate(hit, _hit_text(hit), 0.0, 1) for hit in hits]
    verdicts = ChatJudge(chat, seconds=seconds).judge(JudgeRequest(query, (), candidates))
    return not verdicts.failed, not verdicts.note, verdicts.tokens


def _role_row(
    name: str, log: _CallLog, lazy_results: Iterable[tuple[bool, bool, Mapping[str, int]]]
) -> dict[str, Any]:
    earlier_count = len(log.calls)
    replied, usable, tokens = zip(*lazy_results, strict=True)
    calls = log.calls[earlier_count:]
    times = [(call.ended - call.started) * 1000 for call in calls if call.ended is not None]
    return {
        "table": "roles",
        "role": name,
        "calls": len(calls),
        "tokens_in": round(mean([count.get("input", 0) for count in tokens]), 1),
        "tokens_out": round(mean([count.get("output", 0) for count in tokens]), 1),
        "ms_p50": round(p50(times or [0]), 2),
        "no_answer": mean(np.logical_not(replied)),
        "cut": mean([call.cut for call in calls]),
        "usable": mean(usable),
    }


def _hit_text(hit: Hit) -> str:
    return f"{hit.case.problem['question']}\n{hit.case.solution}"


def _plan_cells(plans: Sequence[ChatOutcome]) -> dict[str, Any]:
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


def _draw(
    axes: Any, planned: Mapping[str, Sequence[ChatOutcome]], one_token_ms: Sequence[float]
) -> None:
    times = {name: [plan.milliseconds for plan in plans] for name, plans in planned.items()}
    for name, milliseconds in {**times, "a call of one token": one_token_ms}.items():
        axes.ecdf(milliseconds, label=name)
    finish(axes, "Time to a plan", xscale="log", xlabel="milliseconds", ylabel="share of plans")
