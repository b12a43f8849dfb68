"""Tests of the legal domain on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from casewright.domains import find_domain
from tests.serve.helpers import new_home, one_line_error, result, run

QUESTION = find_domain("legal").questions[0]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = new_home(tmp_path_factory.mktemp("legal") / "home")
    built = result(run(folder, "domains", "--build", "legal", "--json"))
    assert built["cases"]["legal"] >= 60
    return folder


def test_json_answer_cites_cases_with_their_citation(home: Path) -> None:
    answer = result(run(home, "ask", "--domain", "legal", QUESTION, "--json"))
    cited = [item for item in answer["evidence"] if item["id"] in answer["citations"]]
    assert cited
    for item in cited:
        assert item["source"] == f"legal:{item['row']['citation']}"


def test_text_answer_names_the_cited_case_and_its_evidence(home: Path) -> None:
    completed = run(home, "ask", "--domain", "legal", QUESTION)
    assert completed.returncode == 0, completed.stderr
    answer, _, evidence = completed.stdout.partition("\nEvidence\n")
    assert "[E1]" in answer
    assert evidence.startswith("[E1] legal:")
    citation = evidence.partition("  ")[0].removeprefix("[E1] legal:")
    assert citation in " ".join(answer.split())


def test_missing_alqa_file_is_a_one_line_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEWRIGHT_ALQA", str(home / "none.jsonl"))
    message = one_line_error(run(home, "ask", "--domain", "legal", "Is a note a will?"))
    assert "CASEWRIGHT_ALQA" in message
    assert "none.jsonl" in message


def test_domain_is_listed_with_its_questions(home: Path) -> None:
    domains = {domain["name"]: domain for domain in result(run(home, "domains", "--json"))}
    assert domains["legal"]["questions"] == list(find_domain("legal").questions)
    assert domains["legal"]["scopes"] == {}
