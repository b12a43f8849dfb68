"""How a chat model plans over HTTP, beside the case planner: calls, tokens, time, and what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from casewright.bench.chat.calls import CallLog
from casewright.bench.chat.planned import Planned, plan_all, reasons_of, row_of
from casewright.bench.chat.served import Served, served
from casewright.bench.planner import UncachedQuestions
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.planner import AnnotatedQuery, ChatPlanner, plan_store
from casewright.serve.planners import CASE_PLANNER, make_planner
from casewright.serve.session import open_reader
from casewright.stores import default_encoder
from casewright.stores.paths import data_folder

#: The most tokens that the random model writes: those of a long plan.
RANDOM_TOKENS = 64
COLUMNS = (
    "calls and tokens are means of a plan, tokens by the server's count. valid_at_first, "
    "valid_repaired: shares of plans that are the planner's own; the others are fallbacks, which "
    "the case planner wrote, those of no_answer because a call failed or was late. tools_own: "
    "share of all plans that are the planner's own and have the right tools; tools: with the "
    "fallbacks. one_token_ms is a whole round trip by the same client; chat_ms_outside_calls what "
    "a plan takes beside its calls: plan cases, prompt, checks, fallback."
)


def measure_chat(
    domain_name: str,
    queries: int,
    *,
    url: str | None = None,
    model: str | None = None,
    tokens: int | None = None,
    seconds: float = 30.0,
) -> Report:
    """Plan by a chat model of an OpenAI-compatible server, and by the case planner.

    Both plan for the same queries, which are no plan cases. Without a URL a server is started on
    this machine with a small model of random weights, which plans nothing: then transport and
    control flow are measured, and no quality.

    Args:
        domain_name: A domain with queries that are for measuring only.
        queries: How many of them, spread over all.
        url: Of the server's API, such as ``http://localhost:8000/v1``.
        model: What the server calls its model; it goes with ``url``.
        tokens: The most that an answer may have; 64 for the random model, the server's own limit
            for others.
        seconds: Deadline of one plan.

    Raises:
        InputError: There are not as many queries, only one of ``url`` and ``model`` is given, or
            the server does not answer.
        DependencyError: The client's or the local server's packages are not installed.
        CasewrightError: The server on this machine cannot be started, or fails.
    """
    from casewright.domains import find_domain

    domain = find_domain(domain_name)
    known, picked = domain.queries(), spread(domain.measuring_queries(), queries)
    limit = RANDOM_TOKENS if tokens is None and url is None else tokens
    texts = (f"{query.query}\n{query.plan}" for query in known)
    log = CallLog()
    planned: dict[str, list[Planned]] = {}
    with served(url, model, texts) as server:
        chat, trips = server.client(limit, callbacks=[log]), server.round_trips(seconds)
        encoder = default_encoder()
        opened = domain.open(data_folder() / domain.name, encoder, False)
        toolbox = opened.toolbox
        opened.close()
        with plan_store(known, UncachedQuestions(encoder)) as cases:
            case_planner = make_planner(CASE_PLANNER, cases, open_reader(domain))
            planner = ChatPlanner(chat, fallback=case_planner, plan_cases=cases, seconds=seconds)
            planned["chat"] = plan_all(planner, picked, toolbox, log)
            planned["case"] = plan_all(case_planner, picked, toolbox, log)
    outside = [one.milliseconds - one.waited for one in planned["chat"]]
    figures = {
        "queries": float(len(picked)),
        "one_token_ms_p50": float(np.median(trips)),
        "one_token_ms_p95": float(np.percentile(trips, 95)),
        "chat_ms_outside_calls_p50": float(np.median(outside)),
    }
    return Report(
        bench="chat",
        settings={
            "domain": domain.name,
            "server": url or "transformers serve, on this machine",
            "model": server.name,
            "parameters": server.parameters,
            "tokens": limit,
            "seconds": seconds,
        },
        figures=figures,
        rows=[{"planner": name, **row_of(own)} for name, own in planned.items()],
        notes=[*_random(server), COLUMNS, *reasons_of(planned["chat"])],
        draw=lambda axes: _draw(axes, planned, trips),
    )


def spread(queries: Sequence[AnnotatedQuery], count: int) -> list[AnnotatedQuery]:
    """Return so many queries at even distances, for they stand by class.

    Raises:
        InputError: There are not as many.
    """
    if len(queries) < count:
        raise InputError(
            f"The domain has {len(queries)} queries for measuring only. Ask for that many or less "
            "by --queries."
        )
    return [queries[place * len(queries) // count] for place in range(count)]


def _random(server: Served) -> list[str]:
    if server.parameters is None:
        return []
    return [
        f"A random model of {server.parameters:,} parameters answered: it cannot plan. Only "
        "transport and control flow are measured: requests, answers, repair and fallback."
    ]


def _draw(axes: Any, planned: Mapping[str, Sequence[Planned]], trips: Sequence[float]) -> None:
    times = {name: [one.milliseconds for one in own] for name, own in planned.items()}
    for name, spent in {**times, "a call of one token": trips}.items():
        axes.ecdf(spent, label=name)
    axes.set_xscale("log")
    axes.set(xlabel="milliseconds", ylabel="share that takes no longer", title="Time to a plan")
    axes.grid(alpha=0.3)
    axes.legend()
