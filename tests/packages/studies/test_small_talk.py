"""Tests of the bench of small talk, REAPER's second class without evidence."""

from __future__ import annotations

import json

import pytest

from casewright.domains import find_domain
from casewright_studies.small_talk import FILE, NO_EVIDENCE, measure_small_talk


def test_small_talk_is_a_part_of_the_queries_without_evidence() -> None:
    ids = json.loads(FILE.read_text(encoding="utf-8"))["ids"]
    labels = {query.record.id: query.label for query in find_domain("shopping").queries()}
    assert len(ids) == len(set(ids)) > 100
    assert {labels[id_] for id_ in ids} == {NO_EVIDENCE}
    assert len(ids) < list(labels.values()).count(NO_EVIDENCE) / 2


@pytest.mark.slow
def test_both_classes_are_measured_without_and_with_examples() -> None:
    report = measure_small_talk(4, with_model=False)
    rows = [row for row in report.rows if row["planner"] == "case planner"]
    assert [(row["examples"], row["class"]) for row in rows] == [
        (examples, label) for examples in (0, 66) for label in ("human_small_talk", NO_EVIDENCE)
    ]
    assert rows[2]["published"].startswith("f1 0.92")
