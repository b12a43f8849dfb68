"""Invalid questions, contexts and limits are refused with an error before any call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from casewright.errors import InputError, PlanError
from casewright.graph import ChatGenerator, Limits
from tests.graph.helpers import QUESTION, Ask, ScriptedModel, graph_of, tool

INVALID: dict[str, Any] = {
    "empty": {"question": ""},
    "blank": {"question": " \n\t"},
    "very long": {"question": "why " * 25_000},
    "NUL": {"question": "what\x00now"},
    "no text": {"question": 7},
    "none": {"question": None},
    "missing": {"context": {}},
    "half a surrogate": {"question": "why \ud800"},
    "context: text": {"question": QUESTION, "context": "page"},
    "context: list": {"question": QUESTION, "context": ["page"]},
    "context: number": {"question": QUESTION, "context": 3},
    "context: empty list": {"question": QUESTION, "context": []},
    "context: empty text": {"question": QUESTION, "context": ""},
    "context: false": {"question": QUESTION, "context": False},
    "context: keys are numbers": {"question": QUESTION, "context": {1: "a"}},
    "context: no JSON": {"question": QUESTION, "context": {"a": object()}},
    "context: not a number": {"question": QUESTION, "context": {"a": float("nan")}},
    "history: text": {"question": QUESTION, "history": "before"},
    "history: no turns": {"question": QUESTION, "history": [{"said": "x"}]},
}


@pytest.mark.parametrize("kind", INVALID)
def test_invalid_question_context_or_history_is_an_input_error_before_any_call(
    ask: Ask, kind: str
) -> None:
    calls: list[str] = []
    tools = [tool("t", lambda _, context: calls.append(context.step))]
    model = ScriptedModel(script="fine")
    graph = graph_of(tools, "s1 = t()", ChatGenerator(model))
    with pytest.raises(InputError) as raised:
        ask(graph, INVALID[kind])
    assert len(str(raised.value)) < 400
    assert calls == []
    assert model.requests == []


@pytest.mark.parametrize("context", [None, {}, {"page": None}, {"a": {"b": [1, "c"]}}])
def test_context_may_be_absent_or_any_json_object(ask: Ask, context: Any) -> None:
    graph = graph_of([tool("t", lambda *_: "there")], "s1 = t()")
    assert ask(graph, {"question": QUESTION, "context": context}).citations == ["E1"]


@pytest.mark.parametrize("name", ["steps", "step_seconds", "concurrency", "rows", "characters"])
@pytest.mark.parametrize("value", [0, -1])
def test_limit_that_is_not_positive_is_refused_and_named(name: str, value: int) -> None:
    budget: Any = {name: value}
    with pytest.raises(InputError, match=f"Limits.{name} is {value}"):
        replace(Limits(), **budget)


def test_plan_with_a_field_that_the_context_lacks_is_refused(ask: Ask) -> None:
    calls: list[str] = []
    tools = [tool("t", lambda _, context: calls.append(context.step))]
    graph = graph_of(tools, "s1 = t(a=context.page)\ns2 = t()")
    with pytest.raises(PlanError, match="The context of this request has no page"):
        ask(graph, {"question": QUESTION, "context": {"page": None}})
    assert calls == []
