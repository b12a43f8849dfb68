"""Tests of the cases, questions and queries that ship with the domain."""

from __future__ import annotations

import re

import pytest

from casewright.domains import OpenDomain
from casewright.domains.gold_plans import run_gold_plans
from casewright.planner import CasePlanner, plan_store
from casewright.stores import default_encoder
from casewright_legal.data import legal_cases, records
from casewright_legal.domain import DOMAIN, queries
from casewright_legal.question_pairs import cited_as, entity_pairs

NUMBER = re.compile(r"\d+(?:[,.]\d+)*")


def numbers(text: str) -> set[str]:
    return set(NUMBER.findall(text))


def test_at_least_60_shipped_cases_have_the_format_of_alqa() -> None:
    shipped = records("cases")
    assert len(shipped) >= 60
    for record in shipped:
        assert list(record) == ["question", "answer", "text", "prompt", "source"]
        assert set(record["source"]) == {
            "version_id",
            "type",
            "jurisdiction",
            "source",
            "citation",
            "url",
            "text",
        }
        assert record["question"].endswith("?")


def test_every_case_has_a_distinct_question_answer_and_citation() -> None:
    shipped = records("cases")
    for field in ("question", "answer", "text"):
        assert len({record[field] for record in shipped}) == len(shipped)
    for field in ("version_id", "citation", "text"):
        assert len({record["source"][field] for record in shipped}) == len(shipped)


def test_every_case_has_entities_and_nearly_all_name_an_act() -> None:
    cases = legal_cases()
    assert all(case.problem["entities"] for case in cases)
    assert sum(bool(case.metadata["acts"]) for case in cases) >= 0.9 * len(cases)


def test_every_number_of_an_answer_occurs_in_its_source() -> None:
    for record in records("cases"):
        source = record["source"]
        allowed = numbers(" ".join([record["question"], source["citation"], source["text"]]))
        assert numbers(record["answer"]) <= allowed, source["citation"]


def test_question_pairs_have_two_parents_that_contain_the_shared_entities() -> None:
    sources = {
        record["source"]["citation"]: record["source"]["text"] for record in records("cases")
    }
    pairs = records("pairs")
    assert len({pair["id"] for pair in pairs}) == len(pairs) >= 30
    assert len({pair["question"] for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert len(set(pair["parents"])) == 2
        assert pair["shared"]
        assert pair["answer"]
        for parent in pair["parents"]:
            text = f"{parent}\n{sources[parent]}".casefold()
            assert all(name.casefold() in text for name in pair["shared"]), (pair["id"], parent)


def test_entity_pairs_finds_the_parents_of_every_question_pair() -> None:
    citations = {
        frozenset((cited_as(pair.first), cited_as(pair.second)))
        for pair in entity_pairs(legal_cases())
    }
    assert [
        pair["id"] for pair in records("pairs") if frozenset(pair["parents"]) not in citations
    ] == []


def test_no_question_of_a_pair_is_the_question_of_a_case() -> None:
    questions = {record["question"] for record in records("cases")}
    assert not questions & {pair["question"] for pair in records("pairs")}


def test_queries_have_distinct_ids_and_valid_plans(legal: OpenDomain) -> None:
    shipped = queries()
    assert len({query.record.id for query in shipped}) == len(shipped) >= 50
    for query in shipped:
        query.record.request(legal.toolbox).validate(query.plan)
    assert {tool for query in shipped for tool in query.plan.tools} == {"case_search", "act_cases"}


def test_every_step_of_every_gold_plan_finds_something(legal: OpenDomain) -> None:
    runs = run_gold_plans(DOMAIN, legal, default_encoder())
    assert len(runs) == len(queries())
    outcomes = [(run.query.record.id, [step.status for step in run.outcomes]) for run in runs]
    assert [outcome for outcome in outcomes if set(outcome[1]) != {"done"}] == []


def test_case_planner_calls_the_right_tools_for_over_half_of_held_out_queries(
    legal: OpenDomain, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped, folds, right = queries(), 6, 0
    for fold in range(folds):
        known = [query for index, query in enumerate(shipped) if index % folds != fold]
        with plan_store(known, default_encoder()) as store:
            planner = CasePlanner(store)
            for query in shipped[fold::folds]:
                plan = planner.plan(query.record.request(legal.toolbox)).plan
                right += plan.tools == query.plan.tools
    with capsys.disabled():
        print(f"\nlegal: {right} of {len(shipped)} plans with the right tools, cross-validated")
    assert right > 0.5 * len(shipped)
