"""Reports that tools make while they run."""

from __future__ import annotations

import time
from datetime import date

from casewright.tools import CallContext
from tests.graph.helpers import QUESTION, Arguments, Ask, graph_of, tool

PLAN = "s1 = work()"


def test_step_keeps_the_reports_of_its_last_attempt(ask: Ask) -> None:
    attempts: list[int] = []

    def work(arguments: Arguments, context: CallContext) -> str:
        attempts.append(1)
        context.report({"attempt": len(attempts)})
        if len(attempts) == 1:
            raise ConnectionError("try again")
        return "done"

    answer = ask(graph_of([tool("work", work)], PLAN), {"question": QUESTION})
    assert answer.steps[0]["reports"] == [{"attempt": 2}]


def test_reports_of_an_abandoned_call_are_ignored(ask: Ask) -> None:
    def work(arguments: Arguments, context: CallContext) -> str:
        context.report({"said": "in time"})
        time.sleep(0.3)
        context.report({"said": "too late"})
        return "late"

    answer = ask(graph_of([tool("work", work)], PLAN, step_seconds=0.1), {"question": QUESTION})
    time.sleep(0.4)
    assert answer.steps[0]["status"] == "timed_out"
    assert answer.steps[0]["reports"] == [{"said": "in time"}]


def test_step_fails_with_a_reason_when_a_report_is_not_json(ask: Ask) -> None:
    def work(arguments: Arguments, context: CallContext) -> str:
        context.report({"what": object()})
        return "done"

    answer = ask(graph_of([tool("work", work)], PLAN), {"question": QUESTION})
    assert answer.steps[0]["status"] == "failed"
    assert "reported what JSON cannot hold" in answer.steps[0]["error"]


def test_date_in_a_result_or_report_becomes_text(ask: Ask) -> None:
    def work(arguments: Arguments, context: CallContext) -> date:
        context.report({"until": date(2024, 2, 28)})
        return date(2024, 2, 29)

    (step,) = ask(graph_of([tool("work", work)], PLAN), {"question": QUESTION}).steps
    assert step["status"] == "done"
    assert step["reports"] == [{"until": "2024-02-28"}]
    assert [row["value"] for row in step["rows"]] == ["2024-02-29"]


def test_step_keeps_at_most_as_many_reports_as_rows(ask: Ask) -> None:
    def work(arguments: Arguments, context: CallContext) -> str:
        for number in range(500):
            context.report({"number": number})
        return "done"

    answer = ask(graph_of([tool("work", work)], PLAN, rows=10), {"question": QUESTION})
    assert len(answer.steps[0]["reports"]) == 10
