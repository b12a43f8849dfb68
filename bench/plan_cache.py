"""The hit rate, wrong plans and savings of a cache of plans in front of a chat planner."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from casewright.bench.harness import TestedDomain, load_domain, mean, p50, timed, tracked
from casewright.bench.report import Report, Row
from casewright.errors import InputError
from casewright.finetune.evaluation import judge
from casewright.finetune.neighbours import unit_embeddings
from casewright.planner import AnnotatedQuery, Plan, Planner, PlanRequest, PlanResult, plan_store
from casewright.planner.plan import context_fields, text_literals, with_literals
from casewright.planner.plan_cases import EXAMPLE_COUNT, similar_plans
from casewright.planner.prompt import render_prompt
from casewright.stores import CaseStore, Encoder
from casewright.tools import Toolbox

#: Kinds of questions and their shares of the stream. Each starts from an annotated question. as_is:
#: this question. reworded: in lower case, or with another beginning, ending or spacing. neighbour:
#: the most similar annotated question. swapped: with another value of a literal, also in the plan.
KIND_SHARES = {"as_is": 0.5, "reworded": 0.25, "neighbour": 0.125, "swapped": 0.125}
#: The assumed costs of a chat model's call: seconds without output, and output tokens per second.
CALL_SECONDS, TOKENS_PER_SECOND = 0.5, 50.0
#: The kind of a question whose text is that of an earlier question.
ASKED_BEFORE = "asked before"
REWORDINGS: Sequence[Callable[[str], str]] = (
    str.lower,
    lambda text: text.rstrip("?.! "),
    lambda text: f"Hi, {text}",
    lambda text: f"{text} Thanks!",
    lambda text: f"Please: {text}",
    lambda text: text.replace(" ", "  ", 1),
)
NOTES = (
    "wrong: share of all questions whose plan has a wrong tool or argument; wrong_reuse: the same "
    "share of the reused plans. A question without a reused plan costs a call of a chat model: "
    f"{CALL_SECONDS:g} s, and 1 s for {TOKENS_PER_SECOND:g} tokens of output. The model writes the "
    "gold plan, so only a reused plan can be wrong. ms_search: the median time of a search in the "
    "cache. The kind “asked before” has the text of an earlier question.",
)


class Cache(Protocol):
    """A cache of plans by their questions."""

    def reusing(self, planner: Planner) -> Planner:
        """Return a planner that reuses cached plans, and calls the given planner on a miss."""

    def nearest(self, question: str) -> Plan | None:
        """Return the plan of the nearest question at any distance; None if the cache is empty."""

    def keep(self, question: str, plan: Plan) -> None:
        """Cache the plan of a question."""

    def close(self) -> None:
        """Close the cache."""


#: A function from an encoder to an empty cache.
OpenCache = Callable[[Encoder], Cache]


class StreamQuestion(NamedTuple):
    """A question of the stream, and its kind: one of ``KIND_SHARES``, or ``ASKED_BEFORE``."""

    query: AnnotatedQuery
    kind: str


@dataclass(slots=True)
class _PricedGoldPlanner:
    """A planner that returns each question's gold plan with the costs of a chat model's call.

    LangChain's approximation counts the tokens of the plan, and of a prompt with plan cases.
    """

    toolbox: Toolbox
    cases: CaseStore
    gold_plans: dict[str, Plan]  # by question
    name: str = "chat"
    _results: dict[str, PlanResult] = field(default_factory=dict)

    def plan(self, request: PlanRequest) -> PlanResult:
        question = request.question
        if question not in self._results:
            prompt = render_prompt(request, similar_plans(self.cases, request, EXAMPLE_COUNT))
            plan = self.gold_plans[question]
            tokens = {
                name: count_tokens_approximately([HumanMessage(text)])
                for name, text in (("input", f"{prompt.head}{prompt.tail}"), ("output", str(plan)))
            }
            milliseconds = (CALL_SECONDS + tokens["output"] / TOKENS_PER_SECOND) * 1000
            result = PlanResult(plan, self.name, milliseconds=milliseconds, tokens=tokens)
            self._results[question] = result
        return self._results[question]

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return self.plan(request)


class StreamResult(NamedTuple):
    """A question's outcome and costs; ``milliseconds`` includes the search."""

    question: StreamQuestion
    is_reused: bool  # the plan comes from the cache
    is_right: bool  # the tools and arguments are those of the gold plan
    milliseconds: float
    tokens: int  # input and output of the chat model
    search_ms: float


def measure_plan_cache(domain_name: str, length: int, seed: int, open_cache: OpenCache) -> Report:
    """Plan a stream of ``length`` questions with a ``_PricedGoldPlanner`` behind three caches.

    The cache "kept answers" keeps every plan that it returns, even a wrong one, as if the user had
    approved it. The others are controls: "always misses" never reuses a plan; "always hits" reuses
    the nearest gold plan. Raise ``InputError`` if too few queries of the domain need no context.
    """
    tested = load_domain(domain_name)
    known_queries = tested.domain.queries()
    standalone = [query for query in known_queries if _needs_only_question(query)]
    if len(standalone) < 2:
        raise InputError(f"{domain_name!r} has too few queries without context. Give shopping.")
    stream = list(_stream(standalone, length, random.Random(seed), tested.encoder))
    gold_plans = {question.query.query: question.query.plan for question in stream}
    with plan_store(known_queries, tested.encoder) as cases:
        chat = _PricedGoldPlanner(tested.toolbox, cases, gold_plans)
        results_by_cache = {
            name: list(_stream_results(name, stream, chat, tested, open_cache))
            for name in ("always misses", "kept answers", "always hits")
        }
    rows = [
        {"table": "caches", **_row(name, results, results_by_cache["always misses"])}
        for name, results in results_by_cache.items()
    ]
    for kind in (ASKED_BEFORE, *KIND_SHARES):
        of_kind = [r for r in results_by_cache["kept answers"] if r.question.kind == kind]
        reused = [result for result in of_kind if result.is_reused]
        counts = {"questions": len(of_kind), "reused": len(reused)}
        wrong = sum(not result.is_right for result in reused)
        rows.append({"table": "kinds", "kind": kind, **counts, "wrong": wrong})
    settings = {"domain": domain_name, "questions": length, "seed": seed, "kinds": KIND_SHARES}
    names = ("hit_rate", "wrong_reuse", "time_saved", "tokens_saved")
    figures = {name: float(rows[1][name]) for name in names}  # of "kept answers"
    titles = {"caches": "plan-cache", "kinds": "kept answers, by kind of question"}
    return Report("plan-cache", settings, figures, rows, NOTES, titles=titles)


def _needs_only_question(query: AnnotatedQuery) -> bool:
    """Return true if a query needs no history, no other tools and no context, such as a product."""
    record = query.record
    needs_more = record.history or record.tools_extra or record.tools_removed
    return not (needs_more or context_fields(query.plan) or "product_id" in record.context)


def _stream(
    queries: Sequence[AnnotatedQuery], count: int, rng: random.Random, encoder: Encoder
) -> Iterator[StreamQuestion]:
    """Yield ``count`` questions, drawn by Zipf's law; their kinds have the ``KIND_SHARES``."""
    vectors = unit_embeddings(encoder, [query.query for query in queries])
    literals: dict[tuple[str, str], list[str]] = defaultdict(list)  # by tool and parameter
    for query in queries:
        for index, parameter, text in text_literals(query.plan):
            literals[query.plan.tools[index], parameter].append(text)
    ranked_indices = rng.sample(range(len(queries)), len(queries))
    weights = [1 / rank for rank in range(1, len(queries) + 1)]
    asked: set[str] = set()
    for _ in range(count):
        query_index = rng.choices(ranked_indices, weights)[0]
        (kind,) = rng.choices([*KIND_SHARES], [*KIND_SHARES.values()])
        query = queries[query_index]
        if kind == "reworded":
            query = _with_question(query, rng.choice(REWORDINGS)(query.query))
        elif kind == "neighbour":
            similarities = vectors @ vectors[query_index]
            similarities[query_index] = -np.inf
            query = queries[int(similarities.argmax())]
        elif kind == "swapped":
            query = _with_other_value(query, literals, rng)
        yield StreamQuestion(query, ASKED_BEFORE if query.query in asked else kind)
        asked.add(query.query)


def _with_question(query: AnnotatedQuery, text: str) -> AnnotatedQuery:
    return replace(query, record=query.record.model_copy(update={"query": text}))


def _with_other_value(
    query: AnnotatedQuery, literals: Mapping[tuple[str, str], Sequence[str]], rng: random.Random
) -> AnnotatedQuery:
    """Return the query with another value for a literal, in the question and in the plan.

    The query is unchanged if no literal of its plan occurs in its question.
    """
    for index, parameter, text in text_literals(query.plan):
        value = rng.choice(literals[query.plan.tools[index], parameter])
        pattern = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
        if pattern.search(query.query):
            plan = with_literals(query.plan, {(index, parameter): value})
            escaped = value.replace("\\", r"\\")
            new_query = _with_question(query, pattern.sub(escaped, query.query))
            return replace(new_query, plan=plan, must={}, accept=())
    return query


def _stream_results(
    name: str,
    stream: Sequence[StreamQuestion],
    chat: _PricedGoldPlanner,
    tested: TestedDomain,
    open_cache: OpenCache,
) -> Iterator[StreamResult]:
    """Yield the results of the stream's questions in order, with a new cache."""
    # The time of a search includes encoding the question, so the encoder has no cache.
    cache = open_cache(tested.uncached_encoder)
    planner = cache.reusing(chat)
    try:
        for question in tracked(name, stream):
            request = PlanRequest(question.query.query, chat.toolbox)
            chat_result = chat.plan(request)
            reused_plan, search_ms = None, 0.0
            if name == "always hits":
                reused_plan, search_ms = timed(partial(cache.nearest, request.question))
            elif name == "kept answers":
                result, search_ms = timed(partial(planner.plan, request))
                # On a miss, the planner returns the result that ``chat`` has cached.
                reused_plan = None if result is chat_result else result.plan
            plan = chat_result.plan if reused_plan is None else reused_plan
            if name == "kept answers":
                cache.keep(request.question, plan)
            elif name == "always hits":
                # A cache that kept the plans that it reused would soon contain only the first plan.
                cache.keep(request.question, chat_result.plan)
            is_right = judge(question.query, plan).right_arguments  # implies right tools
            is_reused = reused_plan is not None
            tokens = 0 if is_reused else sum(chat_result.tokens.values())
            milliseconds = search_ms + (0 if is_reused else chat_result.milliseconds)
            yield StreamResult(question, is_reused, is_right, milliseconds, tokens, search_ms)
    finally:
        cache.close()


def _row(name: str, results: Sequence[StreamResult], uncached: Sequence[StreamResult]) -> Row:
    """Return the row of a cache; ``uncached`` are the results of the cache that always misses."""
    reused = [result for result in results if result.is_reused]
    wrong = sum(not result.is_right for result in reused)

    def saved(cost: str) -> float:
        with_cache, without = (sum(getattr(r, cost) for r in rs) for rs in (results, uncached))
        return float(round(1 - with_cache / without, 4))

    return {
        "cache": name,
        "hit_rate": round(len(reused) / len(results), 4),
        "wrong_reuse": round(wrong / max(len(reused), 1), 4),
        "wrong": round(sum(not r.is_right for r in results) / len(results), 4),
        "seconds": round(mean([r.milliseconds for r in results]) / 1000, 3),
        "tokens": round(mean([r.tokens for r in results]), 1),
        "time_saved": saved("milliseconds"),
        "tokens_saved": saved("tokens"),
        "ms_search": round(p50([r.search_ms for r in results]), 1),
    }
