from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewright_legal.naming import (
    BOTH_PARTIES,
    CITATION,
    FULL_NAME,
    NOT_NAMED,
    ONE_PARTY,
    naming_levels,
)

HALLORAN = "Halloran v Minister for Water [2008] ArdSC 121"
PASTORAL = "Yarrick Pastoral Co Pty Ltd v Minister for Water [2014] ArdSC 88"
DESAI = "Desai v Brightline Homes Pty Ltd [2016] ArdSC 58"
BRIGHTLINE = "Brightline Homes Pty Ltd v Desai [2015] ArdCT 142"
ESTATE = "Re Castellan Estates Pty Ltd [2014] ArdSC 102"
SECTION = "Evidence Act 2001 (Ard) s 64"
ALL = [HALLORAN, PASTORAL, DESAI, BRIGHTLINE, ESTATE, SECTION]


def named_cases(question: str) -> dict[str, int]:
    levels = zip(ALL, naming_levels(question, ALL), strict=True)
    return {citation: level for citation, level in levels if level != NOT_NAMED}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What was held in [2016] ArdSC 58?", {DESAI: CITATION}),
        ("Why did Desai v Brightline Homes go on?", {DESAI: FULL_NAME, BRIGHTLINE: BOTH_PARTIES}),
        ("desai v brightline", {DESAI: FULL_NAME, BRIGHTLINE: BOTH_PARTIES}),
        ("what did brightline get from desai", {BRIGHTLINE: FULL_NAME, DESAI: BOTH_PARTIES}),
        ("In Halloran, was the notice irregular?", {HALLORAN: ONE_PARTY}),
        (
            "Does Halloran differ from Desai v Brightline?",
            {DESAI: FULL_NAME, BRIGHTLINE: BOTH_PARTIES},
        ),
        ("in halloran, was the notice irregular?", {}),
        ("What may the Minister for Water do?", {}),
        ("Was Re Castellan Estates followed?", {ESTATE: FULL_NAME}),
        ("Did Castellan Estates pay?", {}),
        ("what does evidence act 2001 (ard) s 64 say", {SECTION: FULL_NAME}),
        ("What does the Evidence Act 2001 say?", {}),
        ("May a landlord keep the bond?", {}),
        ("", {}),
    ],
)
def test_question_names_cases_by_citation_name_or_party(
    question: str, expected: dict[str, int]
) -> None:
    assert named_cases(question) == expected


def test_party_of_more_than_two_cases_names_none_of_them() -> None:
    three = [
        f"Zahra v {other} [2010] ArdSC {n}" for n, other in enumerate(["Holt", "Wren", "Pell"])
    ]
    assert naming_levels("Who was Zahra?", three) == [NOT_NAMED] * 3
    assert naming_levels("Who was Zahra?", three[:2]) == [ONE_PARTY] * 2
    assert naming_levels("Was Zahra v Wren followed?", three)[1] == FULL_NAME


@given(st.text(), st.lists(st.text() | st.sampled_from(ALL)))
def test_named_by_returns_a_valid_level_for_any_text(question: str, citations: list[str]) -> None:
    levels = naming_levels(question, citations)
    assert len(levels) == len(citations)
    assert all(NOT_NAMED <= level <= CITATION for level in levels)
