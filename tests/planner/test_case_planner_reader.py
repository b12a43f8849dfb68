"""The case planner with a reader, in the small shop of ``helpers``."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.planner import (
    CasePlanner,
    Literal,
    Plan,
    PlanRequest,
    PlanResult,
    QueryRecord,
    Reader,
    is_span,
)
from casewright.planner.sub_query_reuse import ASKS_BELOW, SubQueryReuse
from casewright.tools import Toolbox, ToolExample, ToolSpec
from tests.planner.helpers import SHOP, case_planner, parameter
from tests.support.examples import at_most
from tests.support.readers import Trained, bare, own_tool, toy_queries, untrained

#: On a busy machine the training of the reader takes minutes.
pytestmark = pytest.mark.timeout(600)
#: Questions of the reader's training.
KNOWN = [query.query for query in toy_queries()]
WORDS = sorted({word for question in KNOWN for word in question.split()})
PAGE = {"product_id": "p1"}
CONTEXTS = st.sampled_from(
    [{}, PAGE, {"product_id": None}, {"page": "home"}, {**PAGE, "page": "product", "n": [1]}]
)
QUESTIONS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join),
    st.builds("{} {}".format, st.sampled_from(KNOWN), st.text(max_size=12)),
)
#: Questions that are no ordinary sentences.
UNUSUAL = {
    "8,000 letters": "a" * 8000,
    "8,000 characters of words": ("how heavy is my old tent " * 320)[:8000],
    "8,000 characters in one hyphenated word": "a-" * 3999 + "ab",
    "8,000 emoji": "😀" * 8000,
    "no words": "?!. ,;" * 50,
    "one mark": "?",
    "combining marks alone": "\u0301\u0308",
    "emoji": "🎁 for 👩‍👩‍👧, is it ⛈️?",
    "right to left": "هل تبيعون جوارب من الصوف؟ وكم وزن خيمتي القديمة",
    "directions mixed": "do you sell \u202eskcos loow\u202c or גרביים?",
    "no spaces": "你们卖羊毛袜吗我的旧帐篷有多重",
    "lines": "do you\r\nsell\n\n\twool socks",
    "zero width": "wool\u200bsocks\ufeff",
    "case that changes length": "İ ﬁnd STRASSE ß",
    "the tokenizer's own marks": "[SEP] [CLS] [MASK] [PAD] wool socks [UNK]",
    "a plan": 's1 = find(query="wool socks")',
}
BONN = own_tool(
    *("store_locator", "town", "Finds the nearest shop."),
    *("where is the nearest shop in Bonn", 's1 = store_locator(town="Bonn")'),
)
BOUGHT = own_tool(
    *("also_bought", "item_id", "What was bought together with a product."),
    *("what do people buy with this", "s1 = also_bought(item_id=context.product_id)"),
)
NAMELESS = {"name": "nameless"}
EUROS = own_tool(
    *("in_dollars", "amount", "Converts euros to dollars."),
    *("how much are 20 euros in dollars", "s1 = in_dollars(amount=20)"),
)


@pytest.fixture(scope="session")
def planner(trained_reader: Trained) -> CasePlanner:
    return CasePlanner(None, trained_reader.reader)


def result_of(planner: CasePlanner, request: PlanRequest) -> PlanResult:
    result = planner.plan(request)
    request.validate(result.plan)
    assert result.plan.steps
    assert result.planner == "case"
    assert result.attempts >= 1
    assert result.milliseconds > 0
    return result


def shop_request(
    question: str, *extra: dict[str, Any], context: dict[str, Any] | None = None
) -> PlanRequest:
    record = {"query": question, "tools_extra": list(extra), "context": context or {}}
    return QueryRecord.read(record).request(SHOP)


def texts_of(plan: Plan) -> list[str]:
    values = [value for step in plan.steps for _, value in step.arguments]
    return [v.value for v in values if isinstance(v, Literal) and isinstance(v.value, str)]


@pytest.mark.parametrize(
    ("question", "context", "plan"),
    [
        ("do you sell paper lanterns", {}, 's1 = find(query="paper lanterns")'),
        ("got any Paper  Lanterns?", {}, 's1 = find(query="Paper  Lanterns")'),
        (
            "how heavy is my kayak",
            {},
            's1 = own(query="kayak")\ns2 = fact(item_id=s1.item_id, query=question)',
        ),
        ("is it foldable", PAGE, "s1 = fact(item_id=context.product_id, query=question)"),
        ("how do I get a refund", {}, "s1 = desk(query=question)"),
    ],
)
def test_reader_fills_sub_queries_of_similar_questions_with_words_of_the_question(
    planner: CasePlanner, question: str, context: dict[str, Any], plan: str
) -> None:
    result = result_of(planner, shop_request(question, context=context))
    assert str(result.plan) == plan
    assert result.fallback == ""


def test_reader_gives_any_question_a_valid_plan_with_any_tools_and_context(
    planner: CasePlanner,
) -> None:
    fallbacks = []

    @settings(max_examples=at_most(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(QUESTIONS, CONTEXTS, st.lists(st.sampled_from([*SHOP.names]), max_size=3, unique=True))
    @example("what is it", PAGE, ["own", "find", "desk", "fact"])
    def run(question: str, context: dict[str, Any], removed: list[str]) -> None:
        toolbox = SHOP.without(*(name for name in removed if name != "no_evidence"))
        try:
            request = PlanRequest(question, toolbox, context)
        except InputError:
            return
        result = result_of(planner, request)
        assert not set(result.plan.tools) & set(removed) - {"no_evidence"}
        assert all(is_span(t, question) or t == question for t in texts_of(result.plan))
        assert planner.plan(request).plan == result.plan
        fallbacks.append(bool(result.fallback))

    run()
    assert fallbacks.count(False) > len(fallbacks) / 2


@pytest.mark.parametrize("name", UNUSUAL)
@pytest.mark.parametrize("context", [{}, {**PAGE, "page": "x" * 5000}])
def test_reader_gives_unusual_questions_a_valid_plan(
    planner: CasePlanner, name: str, context: dict[str, Any]
) -> None:
    request = shop_request(UNUSUAL[name], BONN, BOUGHT, EUROS, context=context)
    result = result_of(planner, request)
    assert planner.plan(request).plan == result.plan


def test_reader_plans_a_question_with_400_context_fields(planner: CasePlanner) -> None:
    fields = {f"field_{n}": n for n in range(400)}
    result_of(planner, shop_request("do you sell wool socks", context=fields))


def test_literals_of_a_reader_plan_are_spans_of_the_question(planner: CasePlanner) -> None:
    literals = []
    for question in [*KNOWN[::6], "do you sell Käsehobel", "got any x-200 drill?"]:
        plan = result_of(planner, shop_request(question)).plan
        assert all(is_span(text, question) for text in texts_of(plan)), (question, plan)
        literals += texts_of(plan)
    assert len(literals) > 10


def test_literal_of_a_reader_plan_never_crosses_a_sentence_end(planner: CasePlanner) -> None:
    texts = texts_of(result_of(planner, shop_request("do you sell lamps. Wool socks")).plan)
    assert all("." not in text for text in texts)


def test_question_with_two_requests_gets_a_plan_with_both_sub_queries(planner: CasePlanner) -> None:
    request = shop_request("how wide is this one? And do you sell paper lanterns?", context=PAGE)
    plan = result_of(planner, request).plan
    assert plan.tools == ("fact", "find")
    assert texts_of(plan) == ["paper lanterns"]


def test_reader_plan_has_a_confidence_and_valid_alternatives(planner: CasePlanner) -> None:
    known, other = (
        planner.plan(shop_request(question)) for question in (KNOWN[0], "how many wool tents")
    )
    for result in (known, other):
        assert result.confidence is not None
        assert 0 <= result.confidence <= 1
        assert result.asks_back == (result.confidence < ASKS_BELOW)
        assert result.plan not in result.alternatives
        for plan in result.alternatives:
            shop_request(KNOWN[0]).validate(plan)
    assert (known.confidence or 0) > 0.6


def test_reader_never_combines_no_evidence_with_other_steps(tmp_path: Path) -> None:
    # An untrained reader joins any sub-queries.
    reuse = SubQueryReuse(untrained(tmp_path))
    plans = [r.plan for question in KNOWN[::6] for r in reuse.scored_plans(shop_request(question))]
    assert any(len(plan.steps) > 1 for plan in plans)
    for plan in plans:
        assert plan.tools == ("no_evidence",) or "no_evidence" not in plan.tools


def test_reader_plan_contains_no_two_equal_sub_queries(planner: CasePlanner) -> None:
    requests = [
        shop_request(q, BOUGHT, BONN, context=PAGE) for q in [*KNOWN[::11], *UNUSUAL.values()]
    ]
    for request in requests:
        steps = result_of(planner, request).plan.steps
        independent = [step for step in steps if not [*step.references()]]
        calls = [str(step) for step in independent if step.tool != "own"]
        assert len(set(calls)) == len(calls)


@pytest.mark.parametrize(
    ("question", "plan"),
    [
        ("where is the nearest shop in Kiel", 's1 = store_locator(town="Kiel")'),
        ("where is the closest shop in Oslo", 's1 = store_locator(town="Oslo")'),
    ],
)
def test_reader_uses_the_example_of_a_tool_that_no_case_calls(
    planner: CasePlanner, question: str, plan: str
) -> None:
    result = result_of(planner, shop_request(question, BONN))
    assert str(result.plan) == plan
    assert "store_locator" not in result_of(planner, shop_request(question)).plan.tools


def test_tool_that_no_case_calls_does_not_change_plans_of_other_questions(
    planner: CasePlanner,
) -> None:
    for question in ("do you sell wool socks", "how heavy is my old tent", "how do I get a refund"):
        plan = result_of(planner, shop_request(question)).plan
        assert result_of(planner, shop_request(question, BONN, BOUGHT)).plan == plan


def test_reader_uses_the_context_field_of_a_tool_example_only_if_present(
    planner: CasePlanner,
) -> None:
    question = "what do people buy with this?"
    plan = result_of(planner, shop_request(question, BOUGHT, context=PAGE)).plan
    assert str(plan) == "s1 = also_bought(item_id=context.product_id)"
    for context in ({}, {"product_id": None}):
        plan = result_of(planner, shop_request(question, BOUGHT, context=context)).plan
        assert "context." not in str(plan)


@pytest.mark.parametrize(
    ("question", "amount"),
    [("how much are 250 euros in dollars", "250"), ("how much are some euros in dollars", "")],
)
def test_reader_does_not_copy_the_number_of_a_tool_example(
    planner: CasePlanner, question: str, amount: str
) -> None:
    plan = result_of(planner, shop_request(question, EUROS)).plan
    assert plan.tools == ("in_dollars",)
    assert amount in str(plan)
    assert "20" not in str(plan)


@pytest.mark.parametrize(
    "question",
    [f"how much are {number} euros in dollars" for number in ("9" * 25, "9" * 400, "1" * 5000)],
)
def test_reader_plans_a_question_whose_number_is_too_long_for_a_plan(
    planner: CasePlanner, question: str
) -> None:
    result_of(planner, shop_request(question, EUROS))


def test_reader_plans_without_fallback_beside_a_tool_without_an_example(
    planner: CasePlanner,
) -> None:
    questions = ("where is the nearest shop in Kiel", "Finds the nearest shop.", "hello there")
    for question in (*questions, "do you sell wool socks"):
        for tool in (bare(BONN), bare(EUROS), NAMELESS):
            assert result_of(planner, shop_request(question, tool)).fallback == ""


@pytest.mark.parametrize(
    "plan",
    ["not a plan", "s1 = gone()", "s1 = odd(x=s1.a)", "s1 = odd(x=context.gone)", "s1 = odd(y=1)"],
)
def test_reader_ignores_an_invalid_example_of_a_tool(planner: CasePlanner, plan: str) -> None:
    odd = ToolSpec("odd", "", (parameter("x", "literal"),), example=ToolExample("very odd", plan))
    result_of(planner, PlanRequest("very odd", SHOP.with_(odd)))
    other = result_of(planner, PlanRequest("do you sell wool socks", SHOP.with_(odd)))
    assert other.plan.tools == ("find",)


def test_reader_plans_no_evidence_with_an_empty_toolbox(planner: CasePlanner) -> None:
    for question in ("do you sell wool socks", "hello there", "?", *UNUSUAL.values()):
        request = PlanRequest(question, Toolbox([]), PAGE)
        assert str(result_of(planner, request).plan) == "s1 = no_evidence()"


@pytest.mark.parametrize("question", [*KNOWN[3:8], UNUSUAL["8,000 characters of words"]])
@pytest.mark.parametrize("max_steps", [1, 2, 3])
def test_reader_plan_has_at_most_max_steps_steps(
    planner: CasePlanner, question: str, max_steps: int
) -> None:
    request = PlanRequest(question, SHOP, PAGE, max_steps=max_steps)
    assert len(result_of(planner, request).plan.steps) <= max_steps


def test_reader_plan_is_valid_after_a_tool_changed_its_declaration(
    planner: CasePlanner,
) -> None:
    changed = ToolSpec("find", "", (parameter("words", "question"),))
    toolbox = Toolbox(
        [tool for tool in SHOP if tool.name not in ("find", "no_evidence")] + [changed]
    )
    result = result_of(planner, PlanRequest("do you sell wool socks", toolbox))
    assert 'query="wool socks"' not in str(result.plan) or "find" not in result.plan.tools
    without_id = ToolSpec("own", "", (parameter("query", "span"),), ("title",))
    toolbox = Toolbox(
        [tool for tool in SHOP if tool.name not in ("own", "no_evidence")] + [without_id]
    )
    assert "s1.item_id" not in str(
        result_of(planner, PlanRequest("how heavy is my tent", toolbox)).plan
    )


def test_reader_gives_eight_threads_the_plans_of_one_thread(trained_reader: Trained) -> None:
    # This reader is not loaded yet: eight threads load it at the same time.
    reader = Reader(trained_reader.folder)
    planner = CasePlanner(None, reader)
    requests = [shop_request(question, BONN, context=PAGE) for question in KNOWN[::8]]
    with ThreadPoolExecutor(8) as pool:
        plans = list(pool.map(lambda r: planner.plan(r).plan, requests * 2, timeout=90))
    assert plans == [planner.plan(request).plan for request in requests] * 2


def test_preloaded_reader_gives_equal_plans(planner: CasePlanner, trained_reader: Trained) -> None:
    reader = Reader(trained_reader.folder)
    reader.preload()
    request = shop_request("do you sell wool socks")
    assert CasePlanner(None, reader).plan(request).plan == planner.plan(request).plan


def test_case_planner_without_plan_cases_and_reader_is_refused() -> None:
    with pytest.raises(InputError, match="plan cases or a reader"):
        CasePlanner(None)
    assert case_planner().plan(shop_request("hello there")).plan.tools == ("no_evidence",)


def test_case_planner_with_reader_gives_the_same_plan_by_aplan(planner: CasePlanner) -> None:
    request = shop_request("do you sell paper lanterns")
    assert asyncio.run(planner.aplan(request)).plan == planner.plan(request).plan
