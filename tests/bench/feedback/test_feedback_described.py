from __future__ import annotations

import re
from collections import Counter

import pytest

from casewright.bench.feedback.code import PACKAGES, CodeCorpus
from casewright.bench.feedback.described import described_set, written_questions
from casewright.bench.feedback.sets import FeedbackSet
from casewright.errors import InputError

WRITTEN = {
    "invented_mill/wheel.py:Wheel.grind": "How is corn crushed by the thing that turns?",
    "invented_mill/sluice.py:open_gate": "What lets the water in?",
    # Of one chunk, and of no version that is installed.
    "invented_mill/wheel.py:Wheel.stop": "What ends the turning?",
    "invented_mill/wheel.py:Wheel.rest": "What does it do on Sundays?",
}


@pytest.fixture
def described(mill_corpus: CodeCorpus) -> FeedbackSet:
    return described_set(mill_corpus, WRITTEN)


def test_described_function_has_the_chunks_that_it_has_when_it_is_named(
    described: FeedbackSet, mill: FeedbackSet
) -> None:
    named = {question.id: question.relevant for question in mill.questions}
    assert [question.text for question in described.questions] == list(WRITTEN.values())[:2]
    assert all(question.relevant == named[question.id] for question in described.questions)


def test_function_is_in_the_same_half_whether_it_is_named_or_described(
    mill: FeedbackSet, mill_corpus: CodeCorpus
) -> None:
    keys = [question.id for question in mill.questions]
    found = described_set(mill_corpus, dict.fromkeys(keys, "What is it?"))
    for training in (True, False):
        half = [question.relevant for question in mill.half(training=training)]
        assert [question.relevant for question in found.half(training=training)] == half


def test_both_sets_of_code_are_of_the_very_same_cases(
    described: FeedbackSet, mill: FeedbackSet
) -> None:
    assert described.cases is mill.cases


def test_functions_that_are_not_there_are_counted(described: FeedbackSet) -> None:
    assert described.settings["functions_described"] == 2
    assert described.settings["functions_left_out"] == 2
    assert described.settings["packages"] == {"invented_mill": "2.5"}


def test_packages_without_any_described_function_are_an_input_error(
    mill_corpus: CodeCorpus,
) -> None:
    with pytest.raises(InputError, match=r"code_described .* invented_mill"):
        described_set(mill_corpus)


def words(text: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text)]


def test_no_written_question_names_its_function_its_class_or_its_file() -> None:
    named = []
    for key, question in written_questions().items():
        source, _, symbol = key.partition(":")
        told = {word.strip("_").lower() for word in re.findall(r"\w+", question)}
        spoken = f" {' '.join(words(question))} "
        for name in (*symbol.split("."), source.rpartition("/")[2].removesuffix(".py")):
            parts = words(name)
            # "__call__" is called like a word that every other sentence has.
            alone = not re.fullmatch(r"__\w+__", name) and name.strip("_").lower() in told
            if alone or (len(parts) > 1 and f" {' '.join(parts)} " in spoken):
                named.append((key, name))
    assert named == []


def test_written_questions_are_of_all_packages_and_half_of_them_ask_for_the_whole() -> None:
    written = written_questions()
    packages = Counter(key.partition("/")[0] for key in written)
    assert set(packages) == {folder for _, folder in PACKAGES}
    assert max(packages.values()) < len(written) / 4
    assert len(set(written.values())) == len(written) >= 120
    whole = re.compile(r"\b(show|print|whole|entire|full|complete|everything|all|every)\b", re.I)
    share = sum(bool(whole.search(question)) for question in written.values()) / len(written)
    assert 0.4 < share < 0.6
