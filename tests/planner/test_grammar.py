"""The grammar of plans admits what its rules allow, and nothing else."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from casewright.domains import OpenDomain
from casewright.errors import InputError
from casewright.planner import AnnotatedQuery, PlanRequest, parse_plan
from casewright.planner.grammar import PlanGrammar
from casewright.planner.grammar.toolbox_rules import plan_rules
from casewright.tools import Toolbox, ToolSpec
from tests.planner.grammar_walk import admits, admits_start, byte_tokenizer, grammar, request_for
from tests.planner.helpers import parameter
from tests.planner.toolbox import CONTEXT, TOOLBOX

FIND = ToolSpec("find", "", (parameter("q", "question"),), ("item_id", "title"))
READ = ToolSpec("read", "", (parameter("item_id", "step"),), ("evidence",))
BARE = ToolSpec("bare", "", (), ())


def use_request(*sources: str, **more: Any) -> PlanRequest:
    """Return a request with a context and the tool ``use``."""
    return request_for(ToolSpec("use", "", (parameter("x", *sources, **more),)), context=CONTEXT)


def test_grammar_admits_the_plans_of_the_shopping_queries(
    shopping: OpenDomain, shopping_queries: list[AnnotatedQuery]
) -> None:
    for query in shopping_queries[::10]:
        request = query.record.request(shopping.toolbox)
        assert admits(request, str(query.plan)), query.record.id


def test_grammar_always_admits_no_evidence() -> None:
    assert admits(request_for(), "s1 = no_evidence()")
    assert admits(PlanRequest("a b", TOOLBOX), "s1 = no_evidence()")
    assert admits(request_for(FIND), "s1 = find(q=question)\ns2 = no_evidence()")


@pytest.mark.parametrize("plan", ["s1 = seek()", "s1 = fin()", "s1 = read_()", "s1 = Find()"])
def test_grammar_admits_only_tools_of_the_request(plan: str) -> None:
    assert not admits_start(request_for(FIND, READ), plan[:-1])


@pytest.mark.parametrize(
    "plan",
    [
        "",
        "s1 = find(q=question)\n",
        "s1 = find(q=question)\n\ns2 = no_evidence()",
        "s1 = find(q=question)\ns3 = no_evidence()",
        "s2 = find(q=question)",
        "s1=find(q=question)",
        "s1 = find( q=question)",
        "s1 = find(q=question) ",
        "s1 = find(q=question",
        "s1 = find(q=question))",
    ],
)
def test_grammar_admits_only_the_canonical_text_of_a_plan(plan: str) -> None:
    assert not admits(request_for(FIND), plan)


def test_a_reference_can_name_only_fields_of_the_tool_at_that_step() -> None:
    request = request_for(FIND, READ, BARE)
    steps = "s1 = bare()\ns2 = find(q=question)\ns3 = find(q=question)\ns4 = "
    for reference in ("s2.item_id", "s3.title", "s3[1].item_id", "s2[9].title"):
        assert admits(request, f"{steps}read(item_id={reference})"), reference
    for reference in (
        *("s1.evidence", "s1.item_id", "s2.evidence", "s4.evidence", "s5.item_id", "s0.item_id"),
        *("s2.item", "s2.title_", "s2[0].title", "s2[10].title", "s2[01].title", "s12.title"),
    ):
        assert not admits(request, f"{steps}read(item_id={reference})"), reference


def test_reference_fields_depend_on_the_tools_of_earlier_steps() -> None:
    request = request_for(FIND, READ)
    plan = "s1 = find(q=question)\ns2 = read(item_id=s1.item_id)\ns3 = read(item_id=s{}.{})"
    assert admits(request, plan.format(2, "evidence"))
    assert admits(request, plan.format(1, "title"))
    assert not admits(request, plan.format(2, "title"))
    assert not admits(request, plan.format(1, "evidence"))


def test_grammar_omits_tools_whose_required_argument_has_no_source() -> None:
    request = request_for(FIND, READ, BARE)
    assert not admits_start(request, "s1 = r")
    assert not admits_start(request, "s1 = bare()\ns2 = r")
    assert admits_start(request, "s1 = find(q=question)\ns2 = r")
    assert not admits_start(request_for(READ), "s1 = r")
    page = ToolSpec("page", "", (parameter("x", "context", kind="number"),))
    assert not admits_start(request_for(page, context={"x": "text", "none": None}), "s1 = p")
    assert admits(request_for(page, context={"x": 3}), "s1 = page(x=context.x)")
    words = ToolSpec("words", "", (parameter("x", "span"),))
    assert not admits_start(request_for(words, question="?!"), "s1 = w")


def test_grammar_omits_tools_whose_required_argument_has_no_fitting_value() -> None:
    assert not admits_start(use_request("literal", kind="integer"), "s1 = u")
    assert not admits_start(use_request(choices=("a",), kind="boolean"), "s1 = u")
    assert not admits_start(use_request(choices=("\ud800",)), "s1 = u")


def test_arguments_keep_their_declared_order_and_only_optional_ones_may_be_omitted() -> None:
    names = ("a", "b", "c", "d")
    request = request_for(
        FIND,
        ToolSpec("some", "", tuple(parameter(n, "question", required=n in "bd") for n in names)),
        ToolSpec("none", "", tuple(parameter(n, "question", required=False) for n in names[:3])),
        ToolSpec("late", "", tuple(parameter(n, "step", required=False) for n in names[:2])),
        ToolSpec("both", "", (parameter("a", "step", required=False), parameter("b", "question"))),
    )
    texts = {"a": "a=question", "b": "b=question", "c": "c=question", "d": "d=question"}
    for arguments, tool in (
        *((("bd", "some"), ("abd", "some"), ("bcd", "some"), ("abcd", "some"))),
        *((("", "none"), ("a", "none"), ("b", "none"), ("c", "none"), ("ac", "none"))),
        *((("bc", "none"), ("abc", "none"), ("", "late"), ("b", "both"))),
    ):
        call = f"{tool}({', '.join(texts[name] for name in arguments)})"
        assert admits(request, f"s1 = {call}"), call
    for call in (
        *("some()", "some(b=question)", "some(d=question, b=question)", "none(, a=question)"),
        *("none(b=question, a=question)", "none(a=question, a=question)", "none(a=question, )"),
        *("some(b=question, d=question, e=question)", "late(a=s1.title)", "both(a=s1.title, "),
    ):
        assert not admits_start(request, f"s1 = {call}"), call
    first_step = "s1 = find(q=question)\ns2 = "
    for call in ("late(a=s1.title, b=s1[2].title)", "late(b=s1.title)", "late()"):
        assert admits(request, first_step + call), call
    assert admits(request, f"{first_step}both(a=s1.item_id, b=question)")


@pytest.mark.parametrize("tool", TOOLBOX.names)
def test_grammar_admits_exactly_the_values_that_validation_accepts(tool: str) -> None:
    values = [
        *('"wool socks"', '"boots"', '"celsius"', "question", "true", "false", "12", "1.5"),
        *("context.page", "context.n", "context.ratio", "context.on", "context.tags"),
        *("context.none", "context.gone", "s1.item_id", "s1[1].title", "s1.evidence"),
        *('["wool socks"]', '["boots", 1, true]', "[question, context.n]", "[s1.title]"),
        *('["celsius", "kelvin"]', "[[1]]", "null"),
    ]
    request = PlanRequest("Do you sell red wool socks?", TOOLBOX, CONTEXT)
    for value in values:
        plan = f"s1 = give()\ns2 = {tool}(x={value})"
        try:
            request.validate(parse_plan(plan))
            valid = True
        except ValueError:
            valid = False
        assert admits(request, plan) == valid, plan


def test_text_argument_is_never_empty_nor_longer_than_120_characters() -> None:
    request = use_request("literal")
    assert not admits_start(request, 's1 = use(x=""')
    assert admits(request, f's1 = use(x="{"x" * 120}")')
    assert not admits_start(request, f's1 = use(x="{"x" * 121}')
    assert admits(request, f's1 = use(x="{"é😀" * 60}")')


def test_text_argument_has_one_escaped_form() -> None:
    request = use_request("literal")
    assert admits(request, r's1 = use(x="\"a\\b\nc\td")')
    for text in (r"\u0041", r"\/", r"\u00e9", "a\tb", "a\nb", r"\r", "\x00", r"\x41", " a", "\\"):
        assert not admits(request, f's1 = use(x="{text}")'), text


@pytest.mark.parametrize("number", ["0", "7", "-12", "1.5", "-0.25", "3.0", "0.0001", "9" * 15])
def test_grammar_admits_numbers_in_the_form_that_python_writes(number: str) -> None:
    plan = f"s1 = use(x={number})"
    assert admits(use_request("number", kind="number"), plan)
    assert admits(use_request("number", kind="integer"), plan) == ("." not in number)
    assert str(parse_plan(plan)) == plan


@pytest.mark.parametrize("number", ["01", "-0", "1.50", "1.", ".5", "1e5", "+1", "0x1", "1" * 16])
def test_grammar_refuses_numbers_in_another_form(number: str) -> None:
    assert not admits(use_request("number"), f"s1 = use(x={number})")


def test_list_argument_has_one_to_eight_items() -> None:
    request = use_request("number", kind="array")
    assert not admits_start(request, "s1 = use(x=[]")
    assert admits(request, f"s1 = use(x=[{', '.join('12345678')}])")
    assert not admits_start(request, f"s1 = use(x=[{', '.join('12345678')},")
    assert not admits_start(request, "s1 = use(x=1")


def test_grammar_admits_max_steps_steps_and_never_more_than_64() -> None:
    steps = [f"s{number} = bare()" for number in range(1, 67)]
    for max_steps in (1, 2, 12, 64, 500):
        request = request_for(BARE, max_steps=max_steps)
        limit = min(max_steps, 64)
        assert admits(request, "\n".join(steps[:limit]))
        assert not admits_start(request, "\n".join(steps[: limit + 1]))


@pytest.mark.parametrize(("classes", "steps"), [(5, 12), (31, 12), (32, 11), (63, 11), (64, 10)])
def test_many_result_field_sets_lower_the_step_limit_but_not_the_checks(
    classes: int, steps: int
) -> None:
    producers = [ToolSpec(f"t{n}", "", (), (f"f{n}", "all")) for n in range(classes)]
    consumer = ToolSpec("use", "", (parameter("x", "step", required=False),), producers[0].results)
    request = request_for(*producers, consumer)
    lines = [f"s{number} = t{(number * 7) % classes}()" for number in range(1, steps)]
    plan = "\n".join([*lines, f"s{steps} = use(x=s{steps - 1}."])
    field = f"f{(steps - 1) * 7 % classes}"
    assert admits(request, f"{plan}{field})")
    assert not admits(request, f"{plan}f{(steps * 7) % classes})")
    assert not admits_start(request, f"{plan}{field})\ns")


def test_grammar_refuses_max_steps_of_zero() -> None:
    with pytest.raises(InputError, match=r"max_steps=0\. Give 1 or more"):
        grammar().plan_matcher(request_for(FIND, max_steps=0))


def test_grammar_admits_only_the_first_64_context_fields() -> None:
    fields = {"n" * 65: "x", "no name": "x"} | {f"f{number}": "x" for number in range(5000)}
    request = request_for(ToolSpec("use", "", (parameter("x", "context"),)), context=fields)
    assert admits(request, "s1 = use(x=context.f63)")
    assert not admits(request, "s1 = use(x=context.f64)")
    assert not admits_start(request, "s1 = use(x=context.n")


def test_toolbox_rules_are_built_once_for_all_questions_and_contexts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules_mock = Mock(wraps=plan_rules)
    monkeypatch.setattr("casewright.planner.grammar.plan_grammar.plan_rules", rules_mock)
    toolbox = Toolbox([FIND, READ, ToolSpec("use", "", (parameter("x", "span", "context"),))])
    cached = PlanGrammar(byte_tokenizer())
    for number in range(4):
        cached.plan_matcher(PlanRequest(f"question {number}", toolbox, {f"field{number}": "x"}))
    rules_mock.assert_called_once()


def test_toolboxes_that_differ_only_in_a_kind_have_different_grammars() -> None:
    tools = [
        ToolSpec("use", "", (parameter("x", "number", kind=kind),))
        for kind in ("number", "integer")
    ]
    assert [admits(request_for(tool), "s1 = use(x=1.5)") for tool in tools] == [True, False]
