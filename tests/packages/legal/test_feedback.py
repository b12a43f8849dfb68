"""Searches of the legal domain with relevance feedback."""

from __future__ import annotations

import pytest

from casewright.domains import OpenDomain
from tests.domains.helpers import call, looped

#: Each tool, with what it is asked.
ASKED: dict[str, tuple[str, dict[str, str]]] = {
    "case_search": ("Can a note on a telephone be a valid will?", {}),
    "act_cases": ("unlawfully obtained evidence", {"act": "Evidence Act 2001"}),
}


def sources(opened: OpenDomain, tool: str) -> list[str]:
    question, given = ASKED[tool]
    return [row["source"] for row in call(opened, tool, question, **given)]


@pytest.mark.parametrize("tool", ASKED)
def test_feedback_without_confirmed_cases_finds_the_same_as_a_single_search(
    legal: OpenDomain, tool: str
) -> None:
    found = sources(legal, tool)
    assert found
    assert sources(looped(legal, "legal", lambda one: False), tool) == found


@pytest.mark.parametrize("tool", ASKED)
def test_confirmed_cases_follow_the_results_of_a_single_search(
    legal: OpenDomain, tool: str
) -> None:
    found = sources(legal, tool)
    more = sources(looped(legal, "legal", lambda one: True), tool)
    assert more[: len(found)] == found
    assert len(set(more)) == len(more) > len(found)
