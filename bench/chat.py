"""Measures a chat model over HTTP as planner, generator and judge, beside the case planner."""

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
#: Numbers of timed completions of one token, and of slow, untimed completions before these.
ROUND_TRIP_COUNT, WARM_UP_COUNT = 20, 2
#: Number of streamed answers, and maximum number of tokens in each.
STREAM_COUNT, MAX_STREAMED_TOKENS = 5, 8
#: The packages that `transformers serve` needs besides transformers.
SERVER_PACKAGES = ("fastapi", "openai", "uvicorn")
#: The server's code. If the parent process dies, standard input closes, and the server ends.
SERVER = """\
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
from transformers.cli.transformers import main
main()
"""
NOTE = (
    "calls, tokens_in, tokens_out: means per plan; the server counts the tokens. "
    "The other columns are shares of all plans. valid_at_first, valid_repaired: plans of the chat "
    "model after one call, or after more. fallback: plans of the case planner. no_answer: plans of "
    "the case planner after a failed or late call. tools: plans with the right tools. tools_own: "
    "plans of the chat model with the right tools. one_token_ms: a whole call for one token. "
    "chat_ms_outside_calls: a plan's time outside of the calls. Generator and judge read the "
    "nearest plan cases. cut: share of calls that the limit of tokens ended. usable: share of "
    "answers that cite evidence, or of judgements with a verdict on every candidate."
)


@dataclass(slots=True)
class _Call:
    """A call of a chat model; the times are seconds of ``perf_counter``."""

    started: float
    ended: float | None = None  # ``None`` until the call ends
    is_answered: bool = False
    is_cut: bool = False  # True if the limit of tokens ended the answer


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
        call.ended, call.is_answered = time.perf_counter(), True
        metadata = response.generations[0][0].message.response_metadata
        call.is_cut = metadata.get("finish_reason") == "length"

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **options: Any) -> None:
        self._calls[run_id].ended = time.perf_counter()


class ChatOutcome(NamedTuple):
    """The outcome and the costs of planning one query."""

    milliseconds: float
    call_count: int
    call_ms: float  # the time of all calls, in milliseconds
    tokens: Mapping[str, int]  # the numbers of tokens by kind: "input" and "output"
    fallback_reason: str  # why the fallback planner planned; empty if the chat model planned
    is_unanswered: bool  # True if the last call failed or timed out
    is_right: bool  # True if the plan calls the tools of the gold plan


class ServedModel(NamedTuple):
    """A model behind an OpenAI-compatible API."""

    url: str
    name: str

    def client(self, max_tokens: int | None, **settings: Any) -> BaseChatModel:
        """Return a LangChain client, whose answers have at most ``max_tokens`` tokens."""
        options = {} if max_tokens is None else {"max_tokens": max_tokens}
        return chat_model(f"openai:{self.name}", base_url=self.url, **options, **settings)

    def round_trip_ms(self, seconds: float) -> list[float]:
        """Return the milliseconds of completions of one token; ``InputError`` if one fails."""
        client = self.client(1)
        call = partial(ask, client, [HumanMessage("Hello")], seconds)
        return self._call_ms(client, call, WARM_UP_COUNT + ROUND_TRIP_COUNT)[WARM_UP_COUNT:]

    def first_token_ms(self) -> list[float]:
        """Return the milliseconds to first tokens; ``InputError`` if the server does not stream."""
        client = self.client(MAX_STREAMED_TOKENS)

        def wait_for_token() -> None:
            next(chunk for chunk in client.stream("Count from 1 to 20.") if chunk.text)

        return self._call_ms(client, wait_for_token, STREAM_COUNT)

    def _call_ms(self, client: BaseChatModel, call: Callable[[], Any], count: int) -> list[float]:
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
    tokens: int | None = None,  # maximum number of tokens of an answer of the chat model
    seconds: float = 30.0,  # time limit of a call of the chat model
) -> Report:
    """Plan the same queries with a chat model over HTTP and with the case planner.

    The chat model also answers each query from the nearest plan cases, and judges these cases.
    """
    tested = load_domain(domain_name)
    known_queries, held_out = tested.domain.queries(), tested.held_out_queries(query_count)
    # The sample is spread evenly over the held-out queries.
    sample = [held_out[index * len(held_out) // query_count] for index in range(query_count)]
    max_tokens = SMOLLM2_MAX_TOKENS if tokens is None and url is None else tokens
    log = _CallLog()
    with served(url, model) as server:
        chat = server.client(max_tokens, callbacks=[log])
        one_token_ms, first_token_ms = server.round_trip_ms(seconds), server.first_token_ms()
        with plan_store(known_queries, tested.uncached_encoder) as cases:
            case_planner = make_planner(CASE_PLANNER, cases, tested.domain.open_reader())
            planner = ChatPlanner(chat, fallback=case_planner, plan_cases=cases, seconds=seconds)
            outcomes_of = {
                name: _plan_all(candidate, sample, tested.toolbox, log)
                for name, candidate in (("chat", planner), ("case", case_planner))
            }
            texts_with_hits = [(q.query, cases.search(q.query, NEAREST_COUNT)) for q in sample]
        role_rows = []
        for name, ask_role in (("generator", _generate), ("judge", _judge)):
            pairs = tracked(name, texts_with_hits)
            results = (ask_role(chat, text, hits, seconds) for text, hits in pairs)
            role_rows.append(_role_row(name, log, results))
    chat_outcomes = outcomes_of["chat"]
    unanswered = [o.fallback_reason for o in chat_outcomes if o.is_unanswered]
    reason_counts = Counter(filter(None, unanswered))
    plan_cells = {name: _plan_cells(outcomes) for name, outcomes in outcomes_of.items()}
    rows = [{"table": "plans", "planner": name, **cells} for name, cells in plan_cells.items()]
    address = url or "transformers serve, on this machine"
    settings: dict[str, Any]
    settings = {"domain": tested.domain.name, "server": address, "model": server.name}
    settings |= {"tokens": max_tokens, "seconds": seconds}
    figures = {
        "queries": float(len(sample)),
        "one_token_ms_p50": p50(one_token_ms),
        "one_token_ms_p95": p95(one_token_ms),
        "streamed_first_token_ms_p50": p50(first_token_ms),
        "chat_ms_outside_calls_p50": p50([o.milliseconds - o.call_ms for o in chat_outcomes]),
    }
    notes = [NOTE, *(f"{count} × {why}" for why, count in reason_counts.most_common(3))]
    draw = partial(_draw, outcomes_of=outcomes_of, one_token_ms=one_token_ms)
    titles = {"plans": "plans", "roles": "answers and verdicts"}
    return Report("chat", settings, figures, [*rows, *role_rows], notes, draw, titles)


def _plan_all(
    planner: Planner, queries: Sequence[AnnotatedQuery], toolbox: Toolbox, log: _CallLog
) -> list[ChatOutcome]:
    """Plan the first query untimed; then plan each query, and return the outcomes."""
    planner.plan(queries[0].record.request(toolbox))
    outcomes = []
    for query in queries:
        earlier_count = len(log.calls)
        result = planner.plan(query.record.request(toolbox))
        now, calls = time.perf_counter(), log.calls[earlier_count:]
        call_ms = sum(((call.ended or now) - call.started) * 1000 for call in calls)
        costs = (result.milliseconds, len(calls), call_ms, result.tokens)
        is_unanswered = bool(calls) and not calls[-1].is_answered
        is_right = compare_with_gold(query, result.plan).right_tools
        outcomes.append(ChatOutcome(*costs, result.fallback, is_unanswered, is_right))
    return outcomes


def _generate(
    chat: BaseChatModel, query: str, hits: Sequence[Hit], seconds: float
) -> tuple[bool, bool, Mapping[str, int]]:
    """Answer from the hits. Return flags (replied, cited a hit) and the numbers of tokens."""
    evidence = [
        Evidence(f"E{number}", "s1", "cases", _hit_text(hit), source="", row={}, final=True)
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
    """Judge the hits. Return flags (replied, judged every hit) and the numbers of tokens."""
    candidates = [Candidate(hit, _hit_text(hit), nearness=0.0, round=1) for hit in hits]
    request = JudgeRequest(query, relevant=(), candidates=candidates)
    verdicts = ChatJudge(chat, seconds=seconds).judge(request)
    return not verdicts.failed, not verdicts.note, verdicts.tokens


def _role_row(
    name: str, log: _CallLog, lazy_results: Iterable[tuple[bool, bool, Mapping[str, int]]]
) -> dict[str, Any]:
    earlier_count = len(log.calls)
    replied, usable, tokens = zip(*lazy_results, strict=True)  # this calls the model
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
        "cut": mean([call.is_cut for call in calls]),
        "usable": mean(usable),
    }


def _hit_text(hit: Hit) -> str:
    return f"{hit.case.problem['question']}\n{hit.case.solution}"


def _plan_cells(outcomes: Sequence[ChatOutcome]) -> dict[str, Any]:
    times = [outcome.milliseconds for outcome in outcomes]
    flags = {
        "valid_at_first": [not o.fallback_reason and o.call_count < 2 for o in outcomes],
        "valid_repaired": [not o.fallback_reason and o.call_count >= 2 for o in outcomes],
        "fallback": [bool(o.fallback_reason) for o in outcomes],
        "no_answer": [bool(o.fallback_reason) and o.is_unanswered for o in outcomes],
        "tools_own": [not o.fallback_reason and o.is_right for o in outcomes],
        "tools": [o.is_right for o in outcomes],
    }
    return {
        "plans": len(outcomes),
        "calls": round(mean([outcome.call_count for outcome in outcomes]), 3),
        "tokens_in": round(mean([outcome.tokens.get("input", 0) for outcome in outcomes]), 1),
        "tokens_out": round(mean([outcome.tokens.get("output", 0) for outcome in outcomes]), 1),
        "ms_p50": round(p50(times), 2),
        "ms_p95": round(p95(times), 2),
        **{name: round(mean(values), 4) for name, values in flags.items()},
    }


def _draw(
    axes: Any, outcomes_of: Mapping[str, Sequence[ChatOutcome]], one_token_ms: Sequence[float]
) -> None:
    times = {name: [o.milliseconds for o in outcomes] for name, outcomes in outcomes_of.items()}
    for name, milliseconds in {**times, "a call of one token": one_token_ms}.items():
        axes.ecdf(milliseconds, label=name)
    finish(axes, "Time to a plan", xscale="log", xlabel="milliseconds", ylabel="share of plans")
