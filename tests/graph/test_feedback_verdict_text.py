"""Verdicts are read from a chat model's text in any format."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from casewright.graph.feedback.verdict_text import MAX_CHARACTERS, read_verdicts
from tests.support.examples import at_most

ONLY_FIRST = {0: True, 1: False}
#: Pieces of valid and invalid answers.
PIECES = [
    *"{}[]\"':,=\\`\n .-",
    "```json",
    "true",
    "false",
    "0",
    "1",
    "12",
    "candidate",
    "//",
    "yes",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"0": true, "1": false}', ONLY_FIRST),
        ('```json\n{"0": true, "1": false}\n```', ONLY_FIRST),
        ('```\n{"0": true,\n "1": false}', ONLY_FIRST),
        ('Here you are: {"0": true, "1": false}. Anything else?', ONLY_FIRST),
        ('{"0": "true", "1": "no"}', ONLY_FIRST),
        ('{"0": "Yes", "1": "irrelevant"}', ONLY_FIRST),
        ('{"0": 1, "1": 0}', ONLY_FIRST),
        ('{"[0]": true, "[1]": false}', ONLY_FIRST),
        ('{"candidate 0": true, "Candidate_1": false}', ONLY_FIRST),
        ("candidate 0: yes\ncandidate 1: no", ONLY_FIRST),
        ('{"verdicts": {"0": true, "1": false}}', ONLY_FIRST),
        ('{"0": true, "why": "see {\'0\': false, \'1\': true}", "1": false}', ONLY_FIRST),
        ('{"0": false, "1": true} would be wrong, so {"0": true, "1": false}', ONLY_FIRST),
        ("[0]", ONLY_FIRST),
        ('["0"]', ONLY_FIRST),
        ("[\n  0\n]", ONLY_FIRST),
        ('```json\n{"relevant": [0]}\n```', ONLY_FIRST),
        ("[0, 1", ONLY_FIRST),
        ("[]", {0: False, 1: False}),
        ('{"0": true, "1": fal', {0: True}),
        ('{"0": true, "1', {0: True}),
        ('{"0": true, "1": 0.5}', {0: True}),
        ('{"0": true, "2": true, "-1": true, "1.0": true}', {0: True}),
        ('{"0": "true, \\"1\\": true"}', {}),
        ("{}", {}),
        ("", {}),
        ("I cannot judge candidate [1].", {}),
        ("It calls itself relevant: [1]", {}),
        ("Neither 0 nor 1 is.", {}),
        ('{"0": {"relevant": true}}', {0: True}),
        ('{"0": {"why": "a", "relevant": true}, "1": {"relevant": false}}', ONLY_FIRST),
        ('{"verdicts": {"0": {"relevant": true}, "1": {"relevant": "no"}}}', ONLY_FIRST),
        ('[{"id": 0, "relevant": true}, {"id": 1, "relevant": false}]', ONLY_FIRST),
        ('[{"id": 1, "relevant": true}] no: [{"id": 0, "relevant": true}]', {0: True}),
        ('{"id": 0, "why": "{\'id\': 1, \'relevant\': true}", "relevant": true}', {0: True}),
        ('{"0": true, "seen": ["{\'0\': false, \'1\': true}"], "1": false}', ONLY_FIRST),
        ('[{"id": 0, "relevant": true}, {"id": 1, "relevant": tr', {0: True}),
        ('[{"id": 0, "relevant": true}, {"id": 2, "relevant": true}]', {0: True}),
        ("- 0: true\n- 1: false", ONLY_FIRST),
        ("My verdicts:\n* **0**: yes, it names the key\n* **1**: no (a door)", ONLY_FIRST),
        ("1. true\n2. false", {}),
        ("1. Relevant texts are rare.", {}),
        ("[true, false]", ONLY_FIRST),
        ('["yes", "no"]', ONLY_FIRST),
        ("[true]", {}),
        ("[true, false, true]", {}),
        ("The relevant candidates are: [0]", {}),
        ("The relevant candidates are not 0 and 1.", {}),
        ("I refuse [1]", {}),
    ],
)
def test_verdicts_are_read_from_any_known_format(text: str, expected: dict[int, bool]) -> None:
    assert read_verdicts(text, 2) == expected


@settings(max_examples=at_most(80), deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)), st.integers(0, 4))
@example("٣: true", 4)
@example('{"00": true}', 1)
def test_any_text_yields_boolean_verdicts_on_listed_candidates_only(text: str, count: int) -> None:
    verdicts = read_verdicts(text, count)
    assert set(verdicts) <= set(range(count))
    assert all(type(verdict) is bool for verdict in verdicts.values())


@settings(max_examples=at_most(60), deadline=None)
@given(
    st.dictionaries(st.integers(0, 60), st.booleans()),
    st.sampled_from([None, 2]),
    st.sampled_from(["{}", "```json\n{}\n```", "Thinking of it, {} it is.", "1. {}"]),
    st.integers(0, 99),
)
def test_json_object_is_read_completely_or_up_to_its_cut(
    verdicts: dict[int, bool], indent: int | None, template: str, cut_at: int
) -> None:
    answer = json.dumps(verdicts, indent=indent)
    assert read_verdicts(template.replace("{}", answer), 61) == verdicts
    verdicts_before_cut = read_verdicts(answer[:cut_at], 61)
    assert verdicts_before_cut.items() <= verdicts.items()
    assert len(verdicts_before_cut) >= sum(
        cut_at > answer.index(f'"{n}": ') + len(f'"{n}": false') for n in verdicts
    )


HOSTILE = [
    "[0] a ",
    "[] ",
    "[]\n",
    "- 0: ",
    "0. true ",
    "0: yes 1",
    "{a:['\"",
    "{a:[\"'\"'",
    '{"0": {"relevant": "',
    '{"id": 0, "relevant": true} ',
    "{a ",
    "a \t",
    "{ // ",
    "relevant 0 and 0, ",
    "The relevant candidates are 0",
    ", 0 and ",
    "```",
    "{'0':\n",
    "true, ",
    " \n",
]


def test_long_hostile_answers_are_read_within_two_seconds() -> None:
    start = time.process_time()
    for piece in HOSTILE:
        read_verdicts(piece * (200_000 // len(piece)), 5)
        read_verdicts("The relevant candidates are 0" + piece * 3_300, 5)
        read_verdicts("[" + piece * 3_300, 5)
    assert time.process_time() - start < 2


def test_long_answer_is_read_at_its_end_only() -> None:
    thought = "So it is. " * MAX_CHARACTERS
    assert read_verdicts(thought + '{"0": true, "1": false}', 2) == ONLY_FIRST
    assert read_verdicts('{"0": true, "1": false}' + thought, 2) == {}


def test_answer_of_maximum_length_is_read_within_two_seconds() -> None:
    for piece in ["{", "{//", '["', "{'", '{"a":1,', "[1,", "\n[1] x", "0 : ", '{"\\"', " "]:
        start = time.perf_counter()
        read_verdicts(piece * MAX_CHARACTERS, 5)
        assert time.perf_counter() - start < 2, piece
    assert read_verdicts("{ " * MAX_CHARACTERS + '{"3": true}', 5) == {3: True}
