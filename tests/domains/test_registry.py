from __future__ import annotations

import pytest

from casewright.domains import domain_names, find_domain
from casewright.domains.shopping.data import records
from casewright.errors import InputError
from casewright.planner.request import check_question


def test_every_named_domain_is_found_under_its_name() -> None:
    assert "shopping" in domain_names()
    assert domain_names() == sorted(set(domain_names()))
    for name in domain_names():
        assert find_domain(name).name == name


@pytest.mark.parametrize("name", ["", "Shopping", "shop", "../shopping", "shopping "])
def test_unknown_domain_is_refused_with_the_names_of_all_domains(name: str) -> None:
    with pytest.raises(InputError, match="Domains are: ") as caught:
        find_domain(name)
    assert all(domain_name in str(caught.value) for domain_name in domain_names())


def test_every_domain_has_a_description_valid_questions_and_queries() -> None:
    for name in domain_names():
        domain = find_domain(name)
        assert domain.description.endswith(".")
        assert domain.questions
        for question in domain.questions:
            check_question(question)
        assert domain.queries()
        assert all(values for values in domain.scopes.values())


def test_customer_scopes_are_all_customers_with_c001_first() -> None:
    customers = find_domain("shopping").scopes["customer"]
    assert list(customers) == [record["id"] for record in records("customers")]
    assert customers[0] == "C001"
