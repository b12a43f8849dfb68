"""Tests of searches of the legal domain with relevance feedback."""

from __future__ import annotations

import pytest

from casewright.domains import OpenDomain
from tests.domains.helpers import call, with_loop

#: The question and the arguments for each tool.
SEARCHES: dict[str, tuple[str, dict[str, str]]] = {
    "case_search": ("Can a note on a telephone be a valid will?", {}),
    "act_cases": ("unlawfully obtained evidence", {"act": "Evidence Act 2001"}),
}


def sources(opened: OpenDomain, tool: str) -> list[str]:
    question, arguments = SEARCHES[tool]
    return [row["source"] for row in call(opened, tool, question, **arguments)]


@pytest.mark.parametrize("tool", SEARCHES)
def test_feedback_without_confirmed_cases_finds_the_same_as_a_single_search(
    legal: OpenDomain, tool: str
) -> None:
    single = sources(legal, tool)
    assert single
    assert sources(with_loop(legal, "legal", lambda candidate: False), tool) == single


@pytest.mark.parametrize("tool", SEARCHES)
def test_confirmed_cases_follow_the_results_of_a_single_search(
    legal: OpenDomain, tool: str
) -> None:
    single = sources(legal, tool)
    extended = sources(with_loop(legal, "legal", lambda candidate: True), tool)
    assert extended[: len(single)] == single
    assert len(set(extended)) == len(extended) > len(single)
