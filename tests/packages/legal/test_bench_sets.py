from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.finetune.judge_sets.paragraphs import FILES, Paragraph
from casewright_legal.bench_sets import (
    QaSet,
    find_sets,
    first_sentence,
    paragraph_case,
    paragraph_question,
    read_multihop,
)
from tests.support.multihop import (
    TOWNS,
    Item,
    multihop_folder,
    musique_items,
    town_items,
    write_lines,
)


def read_set(folder: Path, items: list[Item]) -> QaSet:
    return read_multihop(write_lines(folder / "items.jsonl", items), "towns")


def test_every_distinct_paragraph_becomes_a_case(tmp_path: Path) -> None:
    items = town_items()
    items[0]["context"].append(["Quorn", ["Quorn is a village."]])
    data_set = read_set(tmp_path, items)
    titles = sorted(str(case.metadata["key"]) for case in data_set.cases)
    assert titles == sorted([*(town for pair in TOWNS for town in pair), "Quorn"])


def test_hotpotqa_and_musique_items_give_the_same_set(tmp_path: Path) -> None:
    hotpot, musique = read_set(tmp_path, town_items()), read_set(tmp_path, musique_items())
    assert hotpot == musique


def test_parents_are_the_supporting_paragraphs(tmp_path: Path) -> None:
    data_set = read_set(tmp_path, town_items())
    for question, pair in zip(data_set.questions, TOWNS, strict=True):
        assert {data_set.cases[position].metadata["key"] for position in question.parents} == set(
            pair
        )
        assert question.reference == f"The answer to the question “{question.text}” is: no."


def test_questions_with_more_or_fewer_than_two_parents_are_left_out(tmp_path: Path) -> None:
    items = town_items()
    items[0]["supporting_facts"].append([TOWNS[1][0], 0])
    items[1]["supporting_facts"].pop()
    items[2]["supporting_facts"].append([TOWNS[2][0], 1])
    data_set = read_set(tmp_path, items)
    assert len(data_set.questions) == len(items) - 2
    assert data_set.left_out_count == 2


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), word=st.text(min_size=1, max_size=30))
def test_cases_do_not_depend_on_questions_and_labels(
    tmp_path_factory: pytest.TempPathFactory, seed: int, word: str
) -> None:
    rng, items = random.Random(seed), town_items()
    for item in items:
        item["question"], item["answer"] = f"{word} {rng.random()}", word
        titles = [title for title, _ in item["context"]]
        item["supporting_facts"] = [[title, 0] for title in rng.sample(titles, rng.randint(0, 4))]
        rng.shuffle(item["context"])
    rng.shuffle(items)
    folder = tmp_path_factory.mktemp("items")
    assert read_set(folder, items).cases == read_set(folder, town_items()).cases


@pytest.mark.parametrize(
    ("title", "text", "question"),
    [
        ("Roy Kell", "Roy Kell (8 May 1934 – 2 June 1988) was an actor.", "Who was Roy Kell?"),
        ("Mia Ott", "Mia Ott is an actress. She lives in Rome.", "Who is Mia Ott?"),
        ("Ember (film)", "Ember is a 2016 film. He-Man is in it.", "What is Ember (film)?"),
        ("Ember", "Ember and Ash, by J. B. Hall, are two films.", "What are Ember?"),
        ("Xin School", "Xin School (兴化) was founded in 1926.", "When was Xin School founded?"),
        ("Detroit", "In 1805, the city burnt down.", "What happened to Detroit in 1805?"),
        ("Estonia", "Trade with the West has grown.", "What is known about Estonia?"),
        ("Estonia", "The West is a partner.", "What is known about Estonia?"),
    ],
)
def test_question_of_a_paragraph_is_formed_from_its_first_sentence(
    title: str, text: str, question: str
) -> None:
    assert paragraph_question(Paragraph.of(title, text)) == question


def test_case_is_made_of_title_and_paragraph() -> None:
    case = paragraph_case(Paragraph.of("Ember (film)", "Ember is a film by Mia Ott.  It is long."))
    assert case.problem["support"] == "Ember is a film by Mia Ott. It is long."
    assert case.problem["entities"][0] == "Ember (film)"
    assert "Mia Ott" in case.problem["entities"]
    assert case.solution == "Ember is a film by Mia Ott."


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Dr. J. B. Hall of St. Ives wrote it. He died.", "Dr. J. B. Hall of St. Ives wrote it."),
        ('He said: "It is over now." She left.', 'He said: "It is over now."'),
        ("Ver. 2.0 came out in 1999 only", "Ver. 2.0 came out in 1999 only"),
        ("Oh! What a day that was. Then came night.", "Oh! What a day that was."),
    ],
)
def test_first_sentence_does_not_end_at_an_abbreviation(text: str, first: str) -> None:
    assert first_sentence(text) == first


@given(st.text(max_size=200))
def test_paragraph_of_any_text_becomes_a_case(text: str) -> None:
    paragraph = Paragraph.of("Title", text)
    case = paragraph_case(paragraph)
    assert paragraph.text.startswith(case.solution)
    assert bool(case.solution) == bool(paragraph.text)
    assert str(case.problem["question"]).endswith("?")


def test_halves_are_disjoint_complete_and_reproducible(tmp_path: Path) -> None:
    data_set = read_set(tmp_path, town_items())
    development, test = data_set.halves()
    assert sorted([*development, *test]) == list(range(len(data_set.questions)))
    assert len(development) == len(test) == len(TOWNS) // 2
    assert read_set(tmp_path, town_items()).halves() == (development, test)
    assert development != list(range(len(development)))


def test_sets_are_found_in_the_folder_or_in_multihop(tmp_path: Path) -> None:
    folder = multihop_folder(tmp_path)
    assert [data_set.name for data_set in find_sets(folder)] == ["hotpotqa", "musique"]
    assert [data_set.name for data_set in find_sets(folder / "multihop")] == ["hotpotqa", "musique"]
    (limited,) = find_sets(folder, "musique", 5)
    assert (limited.name, len(limited.questions), len(limited.cases)) == ("musique", 5, 16)


def alqa_record(number: int) -> dict[str, Any]:
    source = {
        "text": f"The court of Ilkworth heard case {number}.",
        "citation": f"[2001] C {number}",
    }
    return {"question": f"What of {number}?", "answer": f"It was {number}.", "source": source}


def alqa_folder(folder: Path, pairs: list[dict[str, Any]]) -> Path:
    write_lines(folder / "qa.jsonl", [alqa_record(number) for number in (0, 1, 2, 3, 4, 4)])
    write_lines(folder / "pairs.jsonl", pairs)
    return folder


def pair(*parents: str | int) -> dict[str, Any]:
    return {"question": "Which two?", "answer": "Both.", "parents": list(parents)}


def test_alqa_pairs_name_their_parents_by_citation_or_position(tmp_path: Path) -> None:
    pairs = [pair("[2001] C 2", "[2001] C 0"), pair(1, 3), pair(4, 5), pair(0, "[2001] C 3")]
    # Two cases have the citation C 4, so it names neither.
    pairs += [pair(0, "[2001] C 4"), pair(1, 1)]
    (data_set,) = find_sets(alqa_folder(tmp_path, pairs))
    assert (data_set.name, len(data_set.cases), data_set.left_out_count) == ("alqa", 6, 2)
    assert [question.parents for question in data_set.questions] == [(0, 2), (1, 3), (4, 5), (0, 3)]
    assert {question.reference for question in data_set.questions} == {"Both."}


@pytest.mark.parametrize(
    "record",
    [pair(0, 9), pair("[1999] C 1", 0), {"question": "a?"}, [], pair(0, 1) | {"answer": 3}],
)
def test_invalid_pair_is_an_input_error_that_names_its_line(tmp_path: Path, record: Any) -> None:
    folder = alqa_folder(tmp_path, [*[pair(0, 1)] * 5, record])
    with pytest.raises(InputError, match=r"pairs\.jsonl, line 6"):
        find_sets(folder)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "7",
        "{}",
        '{"question": "q", "answer": "a", "context": 3, "supporting_facts": []}',
        '{"question": "q", "answer": "a", "context": [["t", [7]]], "supporting_facts": []}',
        '{"question": 1, "answer": "a", "context": [], "supporting_facts": []}',
    ],
)
def test_invalid_line_is_an_input_error_that_names_it(tmp_path: Path, line: str) -> None:
    file = write_lines(tmp_path / "items.jsonl", town_items()[:2])
    file.write_text(file.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"items\.jsonl, line 3"):
        read_multihop(file, "towns")


def test_set_of_too_few_questions_is_an_input_error(tmp_path: Path) -> None:
    write_lines(tmp_path / "hotpotqa-dev.jsonl", town_items()[:3])
    with pytest.raises(InputError, match="has 3 questions"):
        find_sets(tmp_path)


def test_shipped_set_has_cases_and_questions_with_two_parents() -> None:
    (data_set,) = find_sets(None)
    assert data_set.name == "shipped"
    assert len(data_set.cases) >= 60
    assert data_set.left_out_count == 0
    assert all(
        first < second < len(data_set.cases)
        for first, second in (q.parents for q in data_set.questions)
    )
    assert json.dumps(data_set.cases[0].to_json())


@pytest.mark.skipif("CASEWRIGHT_DATA" not in os.environ, reason="CASEWRIGHT_DATA is not set")
def test_published_sets_have_their_published_numbers_of_paragraphs() -> None:
    sets = {data_set.name: data_set for data_set in find_sets(Path(os.environ["CASEWRIGHT_DATA"]))}
    sizes = {name: (len(sets[name].cases), len(sets[name].questions)) for name in FILES}
    assert sizes == {"hotpotqa": (1493, 150), "2wikimultihop": (694, 62), "musique": (2750, 107)}
    for data_set in sets.values():
        assert all(case.problem["entities"] and case.solution for case in data_set.cases)
