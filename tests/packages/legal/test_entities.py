from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewright_legal.entities import MAX_ENTITIES, extract_entities, is_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Under s 41(2)(a) of the Residential Tenancies Act 2009 (Ard) the notice is bad.",
            ["s 41(2)(a)", "Residential Tenancies Act 2009 (Ard)"],
        ),
        (
            "It follows Okafor v Brightline Homes Pty Ltd [2014] ArdCT 87 closely.",
            ["Okafor v Brightline Homes Pty Ltd", "[2014] ArdCT 87"],
        ),
        ("That was so in R v Draycott (No 2), too.", ["R v Draycott (No 2)"]),
        ("See John Fairfax Pty Ltd -v- Kazak.", ["John Fairfax Pty Ltd -v- Kazak"]),
        ("See Smith v. Jones & Sons Ltd. It was heard.", ["Smith v. Jones & Sons Ltd"]),
        (
            "In Hyland (as Executor of the late Lily Hyland) v Woods the bank paid.",
            ["Hyland (as Executor of the late Lily Hyland) v Woods"],
        ),
        ("It was applied in Re Castellan Estates Pty Ltd.", ["Re Castellan Estates Pty Ltd"]),
        ("The writ in Ex parte Holt was refused.", ["Ex parte Holt"]),
        ("She read In the matter of Tobias Wren.", ["In the matter of Tobias Wren"]),
        ("The full report is (1992) 175 CLR 1.", ["(1992) 175 CLR 1"]),
        ("That is Part VIIIB, or reg 5(1)(a), or ss 12.", ["Part VIIIB", "reg 5(1)(a)", "ss 12"]),
        ("It was heard by Fenwick J and Smith CJ.", ["Fenwick J", "Smith CJ"]),
        ("It went to the Supreme Court of Ardmore.", ["Supreme Court of Ardmore"]),
        ("He told Ms Desai of it.", ["Desai"]),
        ("He sued Petrel Bank Ltd. In May she paid.", ["Petrel Bank Ltd"]),
        ("On 3 March 2014 he paid $1,960.", ["3 March 2014", "$1,960"]),
        ("It cost US$2.3 million in 1998.", ["US$2.3 million", "1998"]),
        (
            "The Securities and Investments Commission and the Crown agreed.",
            ["Securities and Investments Commission"],
        ),
    ],
)  # fmt: skip
def test_extractor_finds_acts_cases_courts_dates_and_amounts_as_written(
    text: str, expected: list[str]
) -> None:
    assert extract_entities(text) == expected


def test_acts_joined_by_and_are_separate_entities() -> None:
    text = "It rests on the Wills and Succession Act 1987 (Ard) and the Evidence Act 2001."
    assert extract_entities(text) == [
        "Wills and Succession Act 1987 (Ard)",
        "Evidence Act 2001",
    ]
    assert extract_entities("Both Smith and the Privacy Act 1988 matter.") == [
        "Smith",
        "Privacy Act 1988",
    ]
    sea = "It breached the Protection of the Sea Act 1981."
    assert extract_entities(sea) == ["Protection of the Sea Act 1981"]


def test_entities_of_general_prose_are_people_places_and_dates() -> None:
    text = (
        "Christopher Edward Nolan (born 30 July 1970) is an English-American film director. "
        "Featuring the DC Comics character Batman, the film was shot in 2012 in London and New "
        "York. Nolan lives in London."
    )
    assert extract_entities(text) == [
        "Christopher Edward Nolan",
        "30 July 1970",
        "English-American",
        "DC Comics",
        "Batman",
        "2012",
        "London",
        "New York",
    ]


def test_first_word_of_a_sentence_is_no_name_unless_capitalised_elsewhere() -> None:
    assert extract_entities("Rent was due. However, nothing came. Tenants left.") == []
    assert extract_entities("Holt left. The rent was due. Holt came back.") == ["Holt"]
    assert extract_entities("Courts differ. Some courts agree. Courts decide.") == []


def test_paragraph_numbers_and_headings_begin_a_sentence() -> None:
    text = "14. Notice was given.\n(2) Service was late.\nPart 4 — Remedies\n15 Damages follow."
    assert extract_entities(text) == ["Part 4"]


def test_common_roles_are_not_entities() -> None:
    assert extract_entities("Then the Tribunal heard the Applicant and the Minister.") == []


def test_each_entity_comes_once_in_order_of_first_mention() -> None:
    text = "In Stannick Mr Holt met Ada Marsh. Later HOLT and Marsh left Stannick."
    assert extract_entities(text) == ["Stannick", "Holt", "Ada Marsh"]


def test_text_with_many_names_gives_the_first_ones_up_to_the_limit() -> None:
    names = [f"Xa{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}" for n in range(600)]
    entities = extract_entities("He saw " + ", then ".join(names) + ".")
    assert entities == names[:MAX_ENTITIES]


def test_line_break_separates_two_names() -> None:
    assert extract_entities("He saw Ada\nMarsh Holt there.") == ["Ada", "Marsh Holt"]


@pytest.mark.parametrize(
    ("entity", "expected"),
    [
        ("Stannick", True),
        ("Evidence Act 2001 (Ard)", True),
        ("R v Holt", True),
        ("s 41(2)(a)", False),
        ("[2014] ArdCT 87", False),
        ("3 March 2014", False),
        ("$1,960", False),
        ("2014", False),
    ],
)
def test_is_name_refuses_numbers_sections_citations_and_dates(entity: str, expected: bool) -> None:
    assert is_name(entity) is expected


PIECES = st.sampled_from(
    ["A", "Act", "v", "(", ")", "[2009]", "of", "and", "the", ".", "'s", "Re", "In", "the matter",
     "J", "Ltd", "$1,0", "s 1(a", "Holt", " ", "\n", "é", "Ǆ", "2009", "&", "-", "Mr", "No 2"]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(PIECES).map(" ".join), st.lists(PIECES).map("".join)))
def test_entities_of_any_text_occur_in_it_and_are_distinct(text: str) -> None:
    entities = extract_entities(text)
    plain = " ".join(text.split())
    assert all(entity and entity in plain for entity in entities)
    assert len({entity.casefold() for entity in entities}) == len(entities) <= MAX_ENTITIES


@pytest.mark.parametrize(
    "piece",
    ["A v ", "A ", "Act ", "A and the ", "[2009] ", "s 1(a)", "'", "A. ", '"', "In the matter of ",
     "$1,000", "The Act 2009 (Ard ", "of ", "(A ", ") v ", "A & ", "1 A ", "A\n", "No 2) "],
)  # fmt: skip
def test_extraction_time_grows_no_faster_than_the_text(piece: str) -> None:
    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        durations = []
        for _ in range(2):
            started = time.process_time()
            extract_entities(text)
            durations.append(time.process_time() - started)
        return min(durations)

    # In quadratic time, sixteen times the text would take 256 times as long.
    assert seconds(12_800) < 80 * max(seconds(800), 0.0005)
