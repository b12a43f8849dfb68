from __future__ import annotations

import pytest

from casewright_legal.acts import act_key, act_keys, is_act, matching_keys

KNOWN = act_keys(
    [
        "Residential Tenancies Act 2009 (Ard)",
        "Residential Tenancies Regulation 2010 (Ard)",
        "Coastal Waters Act 1998 (Ard)",
        "Coastal Waters (Mooring) Regulation 2004 (Ard)",
        "Water Allocation Act 2005 (Ard)",
        "Evidence Act 2001 (Ard)",
        "Evidence Act 1995 (Cth)",
    ]
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Residential Tenancies Act 2009 (Ard)", True),
        ("Criminal Code", True),
        ("Poisons List Amendment Order 2012", True),
        ("the Act", False),
        ("Holt v Marsh", False),
        ("2009", False),
        ("", False),
    ],
)
def test_act_is_recognised_by_the_end_of_its_name(name: str, expected: bool) -> None:
    assert is_act(name) is expected


def test_different_names_of_an_act_have_the_same_key() -> None:
    names = (
        "Residential Tenancies Act 2009 (Ard)",
        "the RESIDENTIAL TENANCIES ACT 2009",
        "residential  tenancies act, 2009 [Ard]",
    )
    assert {act_key(name) for name in names} == {"residential tenancies act 2009"}
    assert act_key("Coastal Waters (Mooring) Regulation 2004 (Ard)") == (
        "coastal waters mooring regulation 2004"
    )


def test_act_keys_contain_acts_with_and_without_year_and_no_other_entities() -> None:
    assert act_keys(["Evidence Act 2001 (Ard)", "Holt", "s 64"]) == [
        "evidence act 2001",
        "evidence act",
    ]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Residential Tenancies Act 2009", ["residential tenancies act 2009"]),
        ("the Residential Tenancies Act 2009 (Ard)", ["residential tenancies act 2009"]),
        ("evidence act", ["evidence act"]),
        ("s 41 of the Residential Tenancies Act 2009 here", ["residential tenancies act 2009"]),
        (
            "Evidence Act 2001 and the Water Allocation Act 2005 both",
            ["evidence act 2001", "water allocation act 2005"],
        ),
        ("s 9 of the water allocation act", ["water allocation act"]),
        (
            "mooring regulation",
            ["coastal waters mooring regulation", "coastal waters mooring regulation 2004"],
        ),
        ("Evidence 2001", ["evidence act 2001"]),
        ("Residential Tenancies Act 1987", []),
        ("s 9 of the Residential Tenancies Act 1987 here", []),
        ("Companies Act 1992", []),
        ("the Act", []),
        ("2009", []),
        ("", []),
    ],
)
def test_matching_keys_finds_only_the_acts_named_in_a_text(text: str, keys: list[str]) -> None:
    assert matching_keys(text, KNOWN) == keys
