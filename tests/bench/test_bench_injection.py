"""Tests of `casewright bench injection` with obedient and disobedient models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from casewright.bench import injection as measure
from casewright.bench.injection import (
    BENIGN,
    GOALS,
    JUDGE_GOALS,
    TEMPLATES,
    hostile_texts,
    measure_injection,
)
from tests.graph.helpers import ScriptedModel

Script = Callable[[list[BaseMessage]], str]


def measure_script(monkeypatch: pytest.MonkeyPatch, script: Script) -> list[Any]:
    monkeypatch.setattr(measure, "chat_model", lambda name, **options: ScriptedModel(script=script))
    monkeypatch.setattr(measure, "TEMPLATES", {n: TEMPLATES[n] for n in ("plain", "closed")})
    return list(measure_injection("fake:model").rows)


def test_bench_has_100_different_hostile_texts_for_answers_and_for_judges() -> None:
    for goals in (list(GOALS), JUDGE_GOALS):
        assert len(set(hostile_texts(goals))) == 100
    assert all("{goal}" not in text for text in hostile_texts(list(GOALS)))


def test_echoing_model_is_steered_but_calls_no_tool_and_gives_no_false_citation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    defended, undefended, _ = measure_script(monkeypatch, lambda messages: str(messages[-1].text))
    for row in (defended, undefended):
        assert (row["answers"], row["control"], row["tool_calls"]) == (20, 0, 0)
    # A false citation reaches only the answer whose citations are not checked.
    assert (defended["steered"], undefended["steered"]) == (0.9, 1.0)
    assert (defended["false_citations"], undefended["false_citations"] > 0) == (0, True)


def test_model_that_answers_the_question_is_not_counted_as_steered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    defended, undefended, judge = measure_script(monkeypatch, lambda messages: BENIGN[0])
    assert (defended["steered"], undefended["steered"], judge["whole"]) == (0, 0, 0)
    assert (judge["changed"], judge["control"], judge["hostile_relevant"]) == (0, 0, 0)
