from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from casewright.domains import domain_names, find_domain
from tests.serve.helpers import new_home, result, run


@pytest.fixture(scope="module")
def listed(home: Path) -> list[dict[str, Any]]:
    domains: list[dict[str, Any]] = result(run(home, "domains", "--json"))
    return domains


def test_domains_lists_every_domain_with_example_questions_and_scopes(home: Path) -> None:
    done = run(home, "domains")
    assert (done.returncode, done.stderr) == (0, "")
    for name in domain_names():
        domain = find_domain(name)
        assert f"{name}: {domain.description}" in done.stdout
        for question in domain.questions:
            assert f'casewright ask --domain {name} "{question}"' in done.stdout
        for field, values in domain.scopes.items():
            assert f"--{field} {' | '.join(values)}" in done.stdout


def test_domains_json_lists_every_domain_with_questions_and_scopes(
    listed: list[dict[str, Any]],
) -> None:
    assert [domain["name"] for domain in listed] == domain_names()
    for domain in listed:
        known = find_domain(domain["name"])
        assert domain["description"] == known.description
        assert domain["questions"] == list(known.questions)
        assert domain["scopes"] == {field: list(v) for field, v in known.scopes.items()}


def test_domains_json_has_the_stores_folder_and_whether_it_is_built(
    home: Path, listed: list[dict[str, Any]], tmp_path: Path
) -> None:
    shopping = listed[domain_names().index("shopping")]
    assert shopping["folder"] == str(home / "data" / "shopping")
    assert shopping["built"] is True
    bare = new_home(tmp_path / "bare")
    assert not any(domain["built"] for domain in result(run(bare, "domains", "--json")))
    assert not (bare / "data").exists()


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
