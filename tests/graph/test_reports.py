"""What tools tell of themselves while they work."""

from __future__ import annotations

import time
from datetime import date

from casewright.tools import CallContext
from tests.graph.helpers import QUESTION, Ask, Given, graph_of, tool

ONE = "s1 = work()"


def test_reports_of_the_last_attempt_are_kept_with_the_step(ask: Ask) -> None:
    attempts: list[int] = []

    def work(given: Given, context: CallContext) -> str:
        attempts.append(1)
        context.report({"attempt": len(attempts)})
        if len(attempts) == 1:
            raise ConnectionError("try again")
        return "done"

    answer = ask(graph_of([tool("work", work)], ONE), {"question": QUESTION})
    assert answer.steps[0]["reports"] == [{"attempt": 2}]


def test_what_an_abandoned_call_reports_is_heard_by_nobody(ask: Ask) -> None:
    def work(given: Given, context: CallContext) -> str:
        context.report({"said": "in time"})
        time.sleep(0.3)
        context.report({"said": "too late"})
        return "late"

    answer = ask(graph_of([tool("work", work)], ONE, step_seconds=0.1), {"question": QUESTION})
    time.sleep(0.4)
    assert answer.steps[0]["status"] == "timed_out"
    assert answer.steps[0]["reports"] == [{"said": "in time"}]


def test_a_report_that_json_cannot_hold_fails_the_step_and_says_so(ask: Ask) -> None:
    def work(given: Given, context: CallContext) -> str:
        context.report({"what": object()})
        return "done"

    answer = ask(graph_of([tool("work", work)], ONE), {"question": QUESTION})
    assert answer.steps[0]["status"] == "failed"
    assert "reported what JSON cannot hold" in answer.steps[0]["error"]


def test_a_date_that_a_tool_returns_or_reports_is_text(ask: Ask) -> None:
    def work(given: Given, context: CallContext) -> date:
        context.report({"until": date(2024, 2, 28)})
        return date(2024, 2, 29)

    (step,) = ask(graph_of([tool("work", work)], ONE), {"question": QUESTION}).steps
    assert step["status"] == "done"
    assert step["reports"] == [{"until": "2024-02-28"}]
    assert [row["value"] for row in step["rows"]] == ["2024-02-29"]


def test_a_tool_that_reports_without_end_fills_no_state(ask: Ask) -> None:
    def work(given: Given, context: CallContext) -> str:
        for number in range(500):
            context.report({"number": number})
        return "done"

    answer = ask(graph_of([tool("work", work)], ONE, rows=10), {"question": QUESTION})
    assert len(answer.steps[0]["reports"]) == 10
