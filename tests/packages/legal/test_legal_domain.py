from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from casewright.domains import Domain, OpenDomain, find_domain
from casewright.errors import CasewrightError, DependencyError, InputError
from casewright.graph import build_graph
from casewright.planner import CasePlanner
from casewright_legal.data import ALQA_VARIABLE, CONTEXT_VARIABLE, EXTRACTOR_VARIABLE, records
from tests.domains.helpers import Row, call
from tests.support.encoders import HashingEncoder

EVIDENCE_ACT = "Which matters must a court take into account?"


def cited(rows: Any) -> list[str]:
    return [row["citation"] for row in rows]


def test_case_named_in_a_question_is_found_with_answer_and_source(
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
def test_example_question_is_answered_with_cited_cases(legal: OpenDomain, question: str) -> None:
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
def test_paraphrased_question_finds_the_case_that_answers_it(
    legal: OpenDomain, question: str, case: str
) -> None:
    assert cited(call(legal, "case_search", question))[0].startswith(case)


def test_search_finds_both_parents_of_most_pair_questions(legal: OpenDomain) -> None:
    pairs = records("pairs")
    parent_counts = [
        len(set(pair["parents"]) & set(cited(call(legal, "case_search", pair["question"]))))
        for pair in pairs
    ]
    assert min(parent_counts) >= 1
    assert parent_counts.count(2) >= 0.8 * len(pairs)


@pytest.mark.parametrize("question", ["how to cook pasta", "asdf qwer zxcv", "weather in London"])
def test_unrelated_question_finds_no_case(legal: OpenDomain, question: str) -> None:
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
def test_act_is_found_by_name_with_or_without_jurisdiction_and_capitals(
    legal: OpenDomain, act: str
) -> None:
    rows = call(legal, "act_cases", EVIDENCE_ACT, act=act)
    assert cited(rows)[0] == "Evidence Act 2001 (Ard) s 64"
    assert len(rows) > 1
    for row in rows:
        assert "Evidence Act 2001" in row["citation"] + row["evidence"]
        assert row["source"] == f"legal:{row['citation']}"


@pytest.mark.parametrize("act", ["Migration Act 1958", "Evidence Act 1995", "the Act", "hello", ""])
def test_act_that_no_case_names_finds_no_case(legal: OpenDomain, act: str) -> None:
    assert call(legal, "act_cases", EVIDENCE_ACT, act=act) == []


Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_record(name: str, answer: str) -> Path:
        source = {"citation": "Holt v Marsh [2010] ArdSC 1", "text": "Mr Holt burnt the carpet."}
        record = {"question": "Why was the bond kept?", "answer": answer, "source": source}
        path = tmp_path / name
        path.write_text(json.dumps(record) + "\n", encoding="utf-8")
        return path

    return write_record


def answers(folder: Path) -> list[Any]:
    """Return the answers of the domain's cases in a folder."""
    domain: Domain = find_domain("legal")
    opened = domain.open(folder, HashingEncoder(), False)
    try:
        return [case.solution for case in opened.stores["legal"].all()]
    finally:
        opened.close()


def test_alqa_setting_replaces_the_shipped_cases_until_it_is_unset(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "stores"
    assert len(answers(home)) == len(records("cases"))
    monkeypatch.setenv(ALQA_VARIABLE, str(write("qa.jsonl", "For the carpet.")))
    assert answers(home) == ["For the carpet."]
    monkeypatch.setenv(ALQA_VARIABLE, str(write("qa.jsonl", "For the burnt carpet.")))
    assert answers(home) == ["For the burnt carpet."]
    monkeypatch.delenv(ALQA_VARIABLE)
    assert len(answers(home)) == len(records("cases"))


def test_cases_of_alqa_are_found_like_the_shipped_ones(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ALQA_VARIABLE, str(write("qa.jsonl", "For the carpet.")))
    opened = find_domain("legal").open(tmp_path / "stores", HashingEncoder(), False)
    rows: list[Row] = list(call(opened, "case_search", "Why was the bond kept?"))
    opened.close()
    assert [(row["citation"], row["answer"]) for row in rows] == [
        ("Holt v Marsh [2010] ArdSC 1", "For the carpet.")
    ]


def test_alqa_setting_with_a_missing_file_is_refused_with_alternatives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ALQA_VARIABLE, str(tmp_path / "none.jsonl"))
    with pytest.raises(InputError, match=rf"{ALQA_VARIABLE}.*no such file.*Hugging Face"):
        answers(tmp_path / "stores")


def test_alqa_dataset_name_without_datasets_is_an_error_and_builds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    monkeypatch.setenv(ALQA_VARIABLE, "isaacus/open-australian-legal-qa")
    with pytest.raises(DependencyError, match="pip install datasets"):
        answers(tmp_path / "stores")
    monkeypatch.delenv(ALQA_VARIABLE)
    assert len(answers(tmp_path / "stores")) == len(records("cases"))


def test_invalid_record_is_refused_when_the_stores_are_built(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("qa.jsonl", "")
    monkeypatch.setenv(ALQA_VARIABLE, str(path))
    with pytest.raises(InputError, match=r"qa\.jsonl, line 1: answer"):
        answers(tmp_path / "stores")


def test_alqa_file_without_a_case_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "qa.jsonl"
    path.write_text("\n", encoding="utf-8")
    monkeypatch.setenv(ALQA_VARIABLE, str(path))
    with pytest.raises(InputError, match=r"qa\.jsonl has no cases"):
        answers(tmp_path / "stores")


@pytest.mark.parametrize(
    ("form", "evidence"),
    [
        ("support", "Mr Holt burnt the carpet."),
        (
            "full",
            "question: Why was the bond kept?\nsupport: Mr Holt burnt the carpet.\n"
            "entities: Holt\nanswer: For the carpet.",
        ),
        (
            "qsa",
            "question: Why was the bond kept?\nsupport: Mr Holt burnt the carpet.\n"
            "answer: For the carpet.",
        ),
    ],
)
def test_context_setting_changes_the_evidence_without_rebuilding(
    tmp_path: Path,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    form: str,
    evidence: str,
) -> None:
    monkeypatch.setenv(ALQA_VARIABLE, str(write("qa.jsonl", "For the carpet.")))
    answers(tmp_path / "stores")
    assert "Building the legal stores" in capsys.readouterr().err
    monkeypatch.setenv(CONTEXT_VARIABLE, form)
    opened = find_domain("legal").open(tmp_path / "stores", HashingEncoder(), False)
    rows: list[Row] = list(call(opened, "case_search", "Why was the bond kept?"))
    opened.close()
    assert [row["evidence"] for row in rows] == [evidence]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        (CONTEXT_VARIABLE, "whole", "full, qsa, support"),
        (EXTRACTOR_VARIABLE, "mistral", "offline, or a chat model as provider:model"),
        (EXTRACTOR_VARIABLE, "ollama:", "offline, or a chat model as provider:model"),
    ],
)
def test_invalid_setting_is_refused_with_the_valid_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, message: str
) -> None:
    monkeypatch.setenv(setting, value)
    with pytest.raises(InputError, match=rf"{setting} is '{value}'.*{message}"):
        answers(tmp_path / "stores")


def replace_providers(monkeypatch: pytest.MonkeyPatch, *replies: str) -> None:
    """Replace the chat models of LangChain's providers with one of scripted replies."""

    def init_chat_model(model: str, **settings: Any) -> GenericFakeChatModel:
        assert (model, settings["model_provider"]) == ("mistral", "ollama")
        return GenericFakeChatModel(messages=iter(AIMessage(reply) for reply in replies))

    module = ModuleType("langchain.chat_models")
    module.init_chat_model = init_chat_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "langchain", ModuleType("langchain"))
    monkeypatch.setitem(sys.modules, "langchain.chat_models", module)


def entities(folder: Path) -> list[Any]:
    opened = find_domain("legal").open(folder, HashingEncoder(), False)
    try:
        return [case.problem.get("entities") for case in opened.stores["legal"].all()]
    finally:
        opened.close()


def test_extractor_setting_determines_the_entities_and_calls_the_model_once(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ALQA_VARIABLE, str(write("qa.jsonl", "For the carpet.")))
    assert entities(tmp_path) == [["Holt"]]
    monkeypatch.setenv(EXTRACTOR_VARIABLE, "ollama:mistral")
    replace_providers(monkeypatch, '["the carpet"]')
    assert entities(tmp_path) == [["the carpet"]]
    # Built stores need no model.
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    assert entities(tmp_path) == [["the carpet"]]
    monkeypatch.delenv(EXTRACTOR_VARIABLE)
    assert entities(tmp_path) == [["Holt"]]


def test_chat_extractor_without_its_package_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    monkeypatch.setenv(EXTRACTOR_VARIABLE, "ollama:mistral")
    with pytest.raises(DependencyError, match="ollama:mistral"):
        answers(tmp_path)


def test_failing_extractor_model_stops_the_build_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EXTRACTOR_VARIABLE, "ollama:mistral")
    replace_providers(monkeypatch)
    with pytest.raises(CasewrightError, match=r"no entities from the first 5 texts.*model failed"):
        answers(tmp_path)
