from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casewright.domains import Domain, OpenDomain, find_domain
from casewright.domains.legal.data import SETTING, records
from casewright.errors import DependencyError, InputError
from casewright.graph import build_graph
from casewright.planner import CasePlanner
from tests.domains.helpers import Row, call
from tests.support.encoders import HashingEncoder

EVIDENCE_ACT = "Which matters must a court take into account?"


def cited(rows: Any) -> list[str]:
    return [row["citation"] for row in rows]


def test_case_that_a_question_names_is_found_with_its_answer_and_its_source(
    legal: OpenDomain,
) -> None:
    for record in records("cases")[::8]:
        source = record["source"]
        (row, *_) = call(legal, "case_search", f"What became of {source['citation']}?")
        assert row == {
            "citation": source["citation"],
            "answer": record["answer"],
            "evidence": source["text"],
            "source": f"legal:{source['citation']}",
        }


@pytest.mark.parametrize("question", find_domain("legal").questions)
def test_question_to_try_is_answered_from_cases_that_the_answer_cites(
    legal: OpenDomain, question: str
) -> None:
    graph: Any = build_graph(legal.toolbox, CasePlanner(legal.plan_cases))
    answer = graph.invoke({"question": question})["answer"]
    assert {step["status"] for step in answer["steps"]} == {"done"}
    cited = [item for item in answer["evidence"] if item["id"] in answer["citations"]]
    assert cited
    for item in cited:
        assert item["row"]["citation"] in answer["text"]
        assert f"[{item['id']}]" in answer["text"]


@pytest.mark.parametrize(
    ("question", "case"),
    [
        ("Can a note on a telephone be a valid will?", "In the Estate of Tobias Wren"),
        ("does a solar system that breaks down give me a refund?", "Kettering v"),
        ("what is the discount for pleading guilty?", "Sentencing Act 1996 (Ard) s 9"),
        ("I dived off a jetty and was hurt, can I sue the council?", "Hewson v"),
        ("customer wants the bank's fraud file on him", "Dunmore v"),
    ],
)
def test_question_in_other_words_finds_the_case_that_answers_it(
    legal: OpenDomain, question: str, case: str
) -> None:
    assert cited(call(legal, "case_search", question))[0].startswith(case)


def test_both_parents_of_most_questions_of_two_cases_are_found(legal: OpenDomain) -> None:
    pairs = records("pairs")
    found = [
        len(set(pair["parents"]) & set(cited(call(legal, "case_search", pair["question"]))))
        for pair in pairs
    ]
    assert min(found) >= 1
    assert found.count(2) >= 0.8 * len(pairs)


@pytest.mark.parametrize("question", ["how to cook pasta", "asdf qwer zxcv", "weather in London"])
def test_question_that_no_case_is_about_finds_none(legal: OpenDomain, question: str) -> None:
    assert call(legal, "case_search", question) == []


@pytest.mark.parametrize(
    "act",
    [
        "Evidence Act 2001 (Ard)",
        "Evidence Act 2001",
        "the evidence act",
        "EVIDENCE ACT 2001 please",
    ],
)
def test_act_is_found_by_its_name_whatever_its_jurisdiction_and_letters(
    legal: OpenDomain, act: str
) -> None:
    rows = call(legal, "act_cases", EVIDENCE_ACT, act=act)
    assert cited(rows)[0] == "Evidence Act 2001 (Ard) s 64"
    assert len(rows) > 1
    for row in rows:
        assert "Evidence Act 2001" in row["citation"] + row["evidence"]
        assert row["source"] == f"legal:{row['citation']}"


@pytest.mark.parametrize("act", ["Migration Act 1958", "Evidence Act 1995", "the Act", "hello", ""])
def test_act_that_no_case_names_finds_none(legal: OpenDomain, act: str) -> None:
    assert call(legal, "act_cases", EVIDENCE_ACT, act=act) == []


Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, answer: str) -> Path:
        source = {"citation": "Holt v Marsh [2010] ArdSC 1", "text": "Mr Holt burnt the carpet."}
        record = {"question": "Why was the bond kept?", "answer": answer, "source": source}
        path = tmp_path / name
        path.write_text(json.dumps(record) + "\n", encoding="utf-8")
        return path

    return written


def answers(folder: Path) -> list[Any]:
    """What the domain's cases answer, opened in a folder and closed again."""
    domain: Domain = find_domain("legal")
    opened = domain.open(folder, HashingEncoder(), False)
    try:
        return [case.solution for case in opened.stores["legal"].all()]
    finally:
        opened.close()


def test_cases_of_alqa_take_the_place_of_the_shipped_ones_and_back(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "stores"
    assert len(answers(home)) == len(records("cases"))
    monkeypatch.setenv(SETTING, str(write("qa.jsonl", "For the carpet.")))
    assert answers(home) == ["For the carpet."]
    monkeypatch.setenv(SETTING, str(write("qa.jsonl", "For the burnt carpet.")))
    assert answers(home) == ["For the burnt carpet."]
    monkeypatch.delenv(SETTING)
    assert len(answers(home)) == len(records("cases"))


def test_cases_of_alqa_are_found_like_the_shipped_ones(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, str(write("qa.jsonl", "For the carpet.")))
    opened = find_domain("legal").open(tmp_path / "stores", HashingEncoder(), False)
    rows: list[Row] = list(call(opened, "case_search", "Why was the bond kept?"))
    opened.close()
    assert [(row["citation"], row["answer"]) for row in rows] == [
        ("Holt v Marsh [2010] ArdSC 1", "For the carpet.")
    ]


def test_setting_that_names_no_file_is_refused_with_what_it_may_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path / "none.jsonl"))
    with pytest.raises(InputError, match=rf"{SETTING}.*no such file.*Hugging Face"):
        answers(tmp_path / "stores")


def test_setting_that_names_a_set_needs_datasets_and_builds_nothing_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    monkeypatch.setenv(SETTING, "isaacus/open-australian-legal-qa")
    with pytest.raises(DependencyError, match="pip install datasets"):
        answers(tmp_path / "stores")
    monkeypatch.delenv(SETTING)
    assert len(answers(tmp_path / "stores")) == len(records("cases"))


def test_bad_record_is_told_when_the_stores_are_built(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("qa.jsonl", "")
    monkeypatch.setenv(SETTING, str(path))
    with pytest.raises(InputError, match=r"qa\.jsonl, line 1: answer"):
        answers(tmp_path / "stores")
