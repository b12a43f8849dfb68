from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from casewright.domains import domain_names, find_domain
from tests.serve.helpers import new_home, result, run


@pytest.fixture(scope="module")
def reports(home: Path) -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = result(run(home, "domains", "--json"))
    return reports


def test_domains_lists_every_domain_with_example_questions_and_scopes(home: Path) -> None:
    completed = run(home, "domains")
    assert (completed.returncode, completed.stderr) == (0, "")
    for name in domain_names():
        domain = find_domain(name)
        assert f"{name}: {domain.description}" in completed.stdout
        for question in domain.questions:
            assert f'casewright ask --domain {name} "{question}"' in completed.stdout
        for field, values in domain.scopes.items():
            assert f"--{field} {' | '.join(values)}" in completed.stdout


def test_domains_json_lists_every_domain_with_questions_and_scopes(
    reports: list[dict[str, Any]],
) -> None:
    assert [report["name"] for report in reports] == domain_names()
    for report in reports:
        domain = find_domain(report["name"])
        assert report["description"] == domain.description
        assert report["questions"] == list(domain.questions)
        assert report["scopes"] == {field: list(values) for field, values in domain.scopes.items()}


def test_domains_json_has_the_stores_folder_and_whether_it_is_built(
    home: Path, reports: list[dict[str, Any]], tmp_path: Path
) -> None:
    shopping = reports[domain_names().index("shopping")]
    assert shopping["folder"] == str(home / "data" / "shopping")
    assert shopping["built"] is True
    empty_home = new_home(tmp_path / "bare")
    assert not any(report["built"] for report in result(run(empty_home, "domains", "--json")))
    assert not (empty_home / "data").exists()


@pytest.mark.parametrize(
    ("number", "tools"),
    [
        (1, {"order_lookup", "shipment_status"}),
        (2, {"prod_search", "review_summary"}),
        (3, {"prod_search"}),
    ],
)
def test_example_question_of_the_shop_calls_the_expected_tools(
    home: Path, number: int, tools: set[str]
) -> None:
    question = find_domain("shopping").questions[number]
    answer = result(run(home, "ask", question, "--json"))
    assert {step["tool"] for step in answer["steps"]} == tools, (question, answer["plan"])
    assert answer["missing"] == [], (question, answer["plan"])
    assert answer["citations"]
