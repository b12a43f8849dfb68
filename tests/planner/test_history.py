"""The history changes the plans of follow-up questions, and of no others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casewright.domains import OpenDomain, find_domain
from casewright.errors import InputError
from casewright.planner import (
    AnnotatedQuery,
    CasePlanner,
    PlanRequest,
    Reader,
    plan_store,
    render_prompt,
)
from casewright.planner.annotated import Conversation
from casewright.planner.history.back_references import (
    back_references,
    new_subject,
    with_noun,
    without_discourse_markers,
)
from casewright.planner.history.mentions import (
    Mention,
    mention_by_price,
    mention_by_word,
    mentions_in,
)
from casewright.planner.plan_cases import similar_plans
from casewright.planner.request import Turn
from casewright.stores import default_encoder
from tests.support.examples import at_most

SHOP = find_domain("shopping")
LISTED = """- Keystone K87 mechanical keyboard, brown switches; price 89.0 [E1]
- Lyrebird 61-key digital keyboard with stand; price 189.0 [E2]"""
KEYBOARDS: Turn = {"question": "Do you have mechanical keyboards?", "answer": LISTED}
TABLET: Turn = {"question": "Where is my tablet?", "answer": "It left the sorting centre."}
REFUNDS: Turn = {"question": "How long do refunds take?", "answer": "Up to a week."}
PODS: Turn = {"question": "what do buyers say about the Marlowe Pods", "answer": "3.4 stars."}
PAGE = {"product_id": "P028", "page": "product"}
#: Questions that need no history.
STAND_ALONE = (
    "Where is my fitness watch?",
    "How long do refunds take?",
    "do you sell bike locks?",
    "How much memory is on my Galaxy phone?",
    "What do other buyers say about the Marlowe Pods?",
    "what's the capital of Norway?",
    "thanks, bye!",
)


@pytest.fixture(scope="module")
def planner(shopping: OpenDomain) -> CasePlanner:
    assert SHOP.reader is not None
    return CasePlanner(None, Reader(SHOP.reader))


def shop_request(
    shopping: OpenDomain, question: str, *history: Turn, context: dict[str, Any] | None = None
) -> PlanRequest:
    return PlanRequest(question, shopping.toolbox, context or {}, history)


def test_pronoun_in_a_follow_up_means_the_first_product_listed_earlier(
    planner: CasePlanner, shopping: OpenDomain
) -> None:
    plan = planner.plan(shop_request(shopping, "and its warranty?", KEYBOARDS)).plan
    assert str(plan) == (
        's1 = prod_search(query="Keystone K87 mechanical keyboard")\n'
        "s2 = prod_qna(product_id=s1.product_id, query=question)"
    )


def test_pronoun_after_an_order_is_looked_up_among_orders(
    planner: CasePlanner, shopping: OpenDomain
) -> None:
    plan = planner.plan(shop_request(shopping, "is it waterproof?", TABLET)).plan
    assert plan.tools == ("order_lookup", "prod_qna")
    assert '"tablet"' in str(plan)


def test_pronoun_means_the_product_of_the_open_page(
    planner: CasePlanner, shopping: OpenDomain
) -> None:
    plan = planner.plan(shop_request(shopping, "is it loud?", KEYBOARDS, context=PAGE)).plan
    assert str(plan) == "s1 = prod_qna(product_id=context.product_id, query=question)"


def test_ordinal_means_a_position_in_the_list_even_with_an_open_page(
    planner: CasePlanner, shopping: OpenDomain
) -> None:
    question = "how heavy is the second one?"
    for context in ({}, PAGE):
        plan = planner.plan(shop_request(shopping, question, KEYBOARDS, context=context)).plan
        assert "Lyrebird 61-key digital keyboard" in str(plan)
        assert "context" not in str(plan)


def test_follow_up_with_another_product_reuses_the_plan_of_the_earlier_question(
    planner: CasePlanner, shopping: OpenDomain
) -> None:
    plan = planner.plan(shop_request(shopping, "and the Marlowe Quiet 7?", PODS)).plan
    assert plan.tools == ("prod_search", "review_summary")
    # The question names only the product: a literal adds what is asked.
    assert 'query="Marlowe Quiet 7"' in str(plan)
    assert "buyers say about the Marlowe Quiet 7" in str(plan)


def test_follow_up_to_a_policy_question_keeps_its_topic(
    planner: CasePlanner, shopping: OpenDomain
) -> None:
    returns: Turn = {"question": "how do I return a pair of shoes?", "answer": "In My orders."}
    plan = planner.plan(shop_request(shopping, "who pays for that?", returns)).plan
    assert plan.tools == ("customer_support",)
    assert "return a pair of shoes" in str(plan)


def test_case_planner_without_a_reader_uses_the_history(shopping: OpenDomain) -> None:
    planner = CasePlanner(shopping.plan_cases)
    request = shop_request(shopping, "what about the second one?", KEYBOARDS)
    plan = planner.plan(request).plan
    request.validate(plan)
    assert "Lyrebird" in str(plan)


TURNS = st.fixed_dictionaries({"question": st.text(max_size=60), "answer": st.text(max_size=200)})
SHOP_TURNS = st.sampled_from(
    [turn for dialogue in SHOP.conversations() for turn in dialogue.turns[-1].record.turns()]
)
HISTORIES = st.lists(st.one_of(TURNS, SHOP_TURNS), max_size=5)


@settings(
    max_examples=at_most(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(question=st.sampled_from(STAND_ALONE), history=HISTORIES)
def test_history_does_not_change_the_plan_of_a_stand_alone_question(
    planner: CasePlanner, shopping: OpenDomain, question: str, history: list[Turn]
) -> None:
    expected = planner.plan(shop_request(shopping, question)).plan
    assert planner.plan(shop_request(shopping, question, *history)).plan == expected


@settings(
    max_examples=at_most(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    question=st.one_of(
        st.text(min_size=1, max_size=60),
        st.sampled_from(["and it?", "the second one", "no, the 17", "which of the two?", "and"]),
    ),
    history=HISTORIES,
    context=st.sampled_from([{}, PAGE, {"page": "orders"}]),
)
def test_case_planner_gives_a_valid_plan_with_any_history(
    planner: CasePlanner,
    shopping: OpenDomain,
    question: str,
    history: list[Turn],
    context: dict[str, Any],
) -> None:
    try:
        request = shop_request(shopping, question, *history, context=context)
    except InputError:
        return
    request.validate(planner.plan(request).plan)


def test_mentions_are_read_from_lists_and_from_running_text() -> None:
    assert [mention.name for mention in mentions_in(LISTED)] == [
        "Keystone K87 mechanical keyboard",
        "Lyrebird 61-key digital keyboard with stand",
    ]
    text = "We have the Caldera stovetop moka pot for 31.50 euros and the Pellow One."
    names = [mention.name for mention in mentions_in(text)]
    assert names == ["Caldera stovetop moka pot", "Pellow One"]
    assert mentions_in("Yes. It left on Monday.") == []


def test_mention_is_selected_by_price_or_by_a_word() -> None:
    mentions = mentions_in(LISTED)
    assert mention_by_price(mentions, 0) == mentions[0]
    assert mention_by_price(mentions, -1) == mentions[1]
    assert mention_by_word(mentions, "digital") == mentions[1]
    assert mention_by_price([], 0) is None


@pytest.mark.parametrize(
    ("text", "price"),
    [("price 1549.0", 1549), ("for 1,049.00 euros", 1049), ("€ 12,50", 12.5), ("2 pieces", None)],
)
def test_mention_reads_prices_in_several_formats(text: str, price: float | None) -> None:
    assert Mention("thing", text).price == price


def test_lone_surrogate_in_the_history_is_refused(shopping: OpenDomain) -> None:
    broken: Turn = {"question": KEYBOARDS["question"], "answer": "- Key\ud800board K; price 5"}
    with pytest.raises(InputError, match="valid Unicode"):
        shop_request(shopping, "and its warranty?", broken, {"question": "\ud800", "answer": ""})


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("is it blue?", ["pronoun"]),
        ("how heavy is the first one?", ["ordinal"]),
        ("does the cheaper one fold?", ["price"]),
        ("which of the two is lighter?", ["several"]),
        ("is the leather one soft?", ["attribute"]),
        ("is the Pellow One light?", []),
        ("will it rain tomorrow?", []),
        ("thanks, that's all", []),
        ("My tent leaks badly. Can it be repaired?", []),
    ],
)
def test_back_references_finds_words_that_refer_to_earlier_turns(
    question: str, kinds: list[str]
) -> None:
    assert [reference.kind for reference in back_references(question)] == kinds


def test_new_subject_finds_subjects_and_corrections_but_not_new_questions() -> None:
    assert new_subject("and the kite?") == ("the kite", False)
    assert new_subject("no, I meant the 17") == ("the 17", True)
    assert new_subject("and how do I pay?") is None
    assert without_discourse_markers("ok, and the kite?") == "and the kite?"


def test_with_noun_inserts_the_noun_for_one_and_anything() -> None:
    assert (
        with_noun("do you have one for children?", "jacket") == "do you have jacket for children?"
    )
    assert with_noun("anything cheaper?", "kettle") == "do you have a cheaper kettle?"
    assert with_noun("how heavy is this one?", "kettle") is None


def test_plan_case_with_history_is_shown_with_turns_to_follow_ups_only(
    shopping: OpenDomain,
) -> None:
    record = {
        "query": "and its warranty?",
        "history": [{**KEYBOARDS, "plan": 's1 = prod_search(query="keyboards")'}],
        "plan": 's1 = prod_search(query="K87")\n'
        "s2 = prod_qna(product_id=s1.product_id, query=question)",
    }
    plain = {"query": "is there a warranty", "plan": "s1 = customer_support(query=question)"}
    cases = [AnnotatedQuery.read(record), AnnotatedQuery.read(plain)]
    with plan_store(cases, default_encoder()) as store:
        single = similar_plans(store, shop_request(shopping, "its warranty?"), 4)
        follow_up = similar_plans(store, shop_request(shopping, "its warranty?", TABLET), 4)
        stands_alone = CasePlanner(store).plan(shop_request(shopping, "is there a guarantee"))
    with plan_store(cases[1:], default_encoder()) as store:
        without = CasePlanner(store).plan(shop_request(shopping, "is there a guarantee"))
    assert (stands_alone.plan, stands_alone.confidence) == (without.plan, without.confidence)
    assert [case.query for case in single] == ["is there a warranty"]
    assert {case.query for case in follow_up} == {"is there a warranty", "and its warranty?"}
    tail = render_prompt(shop_request(shopping, "its warranty?", TABLET), follow_up).tail
    turn = f"Earlier question: {KEYBOARDS['question']}\nEarlier answer: {KEYBOARDS['answer']}\n\n"
    assert f"{turn}Question: and its warranty?\nPlan:\n" in tail
    assert tail.index("Earlier question: Where is my tablet?") > tail.index("and its warranty?")


def test_conversation_with_a_turn_without_plan_raises_error_naming_the_turn() -> None:
    record = {"query": "and it?", "plan": "s1 = no_evidence()", "history": [dict(REFUNDS)]}
    with pytest.raises(InputError, match="turn 1"):
        Conversation.read(record)


def test_annotated_query_with_an_invalid_history_is_refused() -> None:
    record = {"query": "and it?", "plan": "s1 = no_evidence()", "history": [{"said": "x"}]}
    query = AnnotatedQuery.read(json.loads(json.dumps(record)))
    with pytest.raises(InputError, match="history"):
        query.record.turns()
