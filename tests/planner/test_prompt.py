from __future__ import annotations

import json

from casewright.planner import PlanRequest, render_prompt
from casewright.planner.prompt import PlanExample
from casewright.tools import Parameter, Toolbox, ToolExample, ToolSpec
from tests.planner.helpers import SHOP

EXAMPLES = [ToolExample("how big is my tent", "s1 = own(query=question)")]


def test_prompt_head_contains_role_tools_rules_and_examples_in_this_order() -> None:
    head = render_prompt(PlanRequest("q", SHOP)).head
    parts = ["You plan look-ups", "Tools:", SHOP["find"].signature(), "Rules:", "Examples:"]
    positions = [head.index(part) for part in parts]
    assert positions == sorted(positions)


def test_prompt_shows_each_tool_with_signature_description_and_example() -> None:
    described = ToolSpec(
        "weather",
        "Tells the weather.",
        (Parameter("city", "Which city."),),
        example=ToolExample("rain in Oslo?", 's1 = weather(city="Oslo")'),
    )
    head = render_prompt(PlanRequest("q", SHOP.with_(described))).head
    for tool in SHOP.with_(described):
        assert tool.signature() in head
        assert tool.description in head
        if tool.example is not None:
            assert f"Question: {tool.example.query}\nPlan:\n{tool.example.plan}" in head
    assert "city: Which city." in head


def test_prompt_omits_tools_outside_the_toolbox() -> None:
    text = str(render_prompt(PlanRequest("q", SHOP.without("desk"))))
    assert "desk" not in text


def test_prompt_omits_an_example_that_calls_an_absent_tool() -> None:
    example = ToolExample("is my tent dry", "s1 = own(query=question)\ns2 = dry(thing=s1.id)")
    dry = ToolSpec("dry", "Tells what is dry.", (Parameter("thing"),), example=example)
    with_both = render_prompt(PlanRequest("q", SHOP.with_(dry))).head
    assert example.query in with_both
    assert example.query not in render_prompt(PlanRequest("q", SHOP.with_(dry).without("own"))).head


def test_prompt_rules_name_every_source_and_no_evidence() -> None:
    head = render_prompt(PlanRequest("q", Toolbox([]))).head
    rules = head[head.index("Rules:") :]
    for word in ("span", "literal", "question", "context.FIELD", "sK.FIELD", "sK[i].FIELD"):
        assert word in rules
    assert "s1 = no_evidence()" in rules


def test_prompt_head_depends_only_on_the_toolbox() -> None:
    first = render_prompt(PlanRequest("where is it", SHOP, {"page": "p1"}), EXAMPLES)
    second = render_prompt(
        PlanRequest("is it red", SHOP, {}, [{"question": "hi", "answer": "hello"}])
    )
    assert first.head == second.head
    assert first.tail != second.tail
    assert first.head != render_prompt(PlanRequest("where is it", SHOP.without("desk"))).head


def test_prompt_tail_contains_examples_history_context_and_question_in_this_order() -> None:
    request = PlanRequest(
        "where is it", SHOP, {"page": "p1"}, [{"question": "my tent?", "answer": "Sent."}]
    )
    tail = render_prompt(request, EXAMPLES).tail
    parts = [
        "Question: how big is my tent\nPlan:\ns1 = own(query=question)",
        "Earlier question: my tent?\nEarlier answer: Sent.",
        'Context: {"page": "p1"}',
        "Question: where is it\nPlan:",
    ]
    positions = [tail.index(part) for part in parts]
    assert positions == sorted(positions)
    assert tail.endswith(parts[-1])


def test_prompt_text_is_head_and_tail() -> None:
    prompt = render_prompt(PlanRequest("where is it", SHOP), EXAMPLES)
    assert str(prompt) == f"{prompt.head}\n\n{prompt.tail}"


def test_prompt_omits_null_context_fields() -> None:
    tail = render_prompt(PlanRequest("q", SHOP, {"page": None, "shop": "é"})).tail
    assert f"Context: {json.dumps({'shop': 'é'}, ensure_ascii=False)}" in tail


def test_prompt_shortens_a_huge_context() -> None:
    long = render_prompt(PlanRequest("q", SHOP, {"page": "x" * 100_000})).tail
    shortened = render_prompt(PlanRequest("q", SHOP, {f"f{i}": [i] * 50 for i in range(1000)})).tail
    assert len(long) < 3000
    assert len(shortened) < 3000


def test_prompt_shows_a_plan_case_with_its_context_field_names() -> None:
    case = PlanExample("is it dry", "s1 = find(query=question)", context=("page", "town"))
    tail = render_prompt(PlanRequest("where is it", SHOP), [case]).tail
    assert "Context: page, town\nQuestion: is it dry\nPlan:\ns1 = find(query=question)" in tail
    assert tail.count("Context:") == 1
