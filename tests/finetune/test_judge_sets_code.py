"""The sets of labelled questions about code, which name or describe a function."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from casewright.errors import InputError
from casewright.finetune.judge_sets.code import (
    MAX_QUESTIONS,
    PACKAGES,
    CodeCorpus,
    PackageDefinition,
    code_set,
    described_set,
    python_definitions,
    questions_about,
    read_code,
    written_questions,
)
from casewright.finetune.judge_sets.sets import FeedbackSet
from tests.support.mill import mill_corpus

WRITTEN = {
    "invented_mill/wheel.py:Wheel.grind": "How is corn crushed by the thing that turns?",
    "invented_mill/sluice.py:open_gate": "What lets the water in?",
    # The first has only one chunk; the second is in no installed version.
    "invented_mill/wheel.py:Wheel.stop": "What ends the turning?",
    "invented_mill/wheel.py:Wheel.rest": "What does it do on Sundays?",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeCorpus]:
    with mill_corpus(tmp_path_factory.mktemp("site")) as corpus:
        yield corpus


@pytest.fixture(scope="module")
def mill(corpus: CodeCorpus) -> FeedbackSet:
    """Return the set whose questions name a function of the invented package."""
    return code_set(corpus)


def test_code_set_has_one_question_per_unique_function_of_several_chunks(
    mill: FeedbackSet,
) -> None:
    assert sorted(question.id for question in mill.questions) == [
        "invented_mill/sluice.py:grind_all",
        "invented_mill/sluice.py:open_gate",
        "invented_mill/wheel.py:Wheel.grind",
        "invented_mill/wheel.py:grind_all",
    ]


def test_relevant_cases_are_exactly_the_chunks_of_the_function(mill: FeedbackSet) -> None:
    for question in mill.questions:
        chunks = [case for case in mill.cases if case.id in question.relevant]
        chunks.sort(key=lambda case: int(case.metadata["position"]))
        code = "\n".join(str(case.solution) for case in chunks)
        name = question.id.rpartition(":")[2].rpartition(".")[2]
        assert len(chunks) >= 2
        assert f"def {name}(" in chunks[0].solution
        assert [f"step_{number} =" in code for number in range(60)] == [True] * 60
        assert code.count("def ") == 1


def test_question_about_a_symbol_of_two_files_names_the_file(mill: FeedbackSet) -> None:
    for question in mill.questions:
        source, _, symbol = question.id.partition(":")
        assert all(part in question.text for part in symbol.split("."))
        if symbol == "grind_all":
            assert source in question.text


def test_code_set_omits_tests_and_files_that_are_no_python(mill: FeedbackSet) -> None:
    sources = {str(case.metadata["source"]) for case in mill.cases}
    assert sources == {f"invented_mill/{name}.py" for name in ("sluice", "twice", "wheel")}


def test_code_set_origin_lists_package_versions_and_missing_packages(mill: FeedbackSet) -> None:
    assert mill.origin["packages"] == {"invented_mill": "2.5"}
    assert mill.origin["packages_missing"] == ["invented-kiln"]


def test_code_set_without_an_installed_package_raises_input_error() -> None:
    with pytest.raises(InputError, match="none is installed"):
        code_set(read_code([("invented-kiln", "kiln")]))


def function(number: int, package: str = "mill", chunks: int = 2) -> PackageDefinition:
    ids = tuple(f"{package}-{number}-{chunk}" for chunk in range(chunks))
    return PackageDefinition(package, f"{package}/a.py", f"turn_{number}", ids, False)


def test_package_has_at_most_its_share_of_questions() -> None:
    questions = questions_about([function(number) for number in range(MAX_QUESTIONS + 30)])
    assert len(questions) == len({question.id for question in questions}) == MAX_QUESTIONS


def test_questions_about_a_package_do_not_depend_on_other_packages() -> None:
    mill = [function(number) for number in range(20)]
    kiln = [
        PackageDefinition("kiln", "kiln/a.py", f"bake_{n}", ("x", "y"), False) for n in range(20)
    ]
    with_kiln = questions_about([*kiln, *mill])
    assert {q for q in with_kiln if q.id.startswith("mill")} == set(questions_about(mill))


def test_no_question_is_asked_about_a_function_of_one_or_forty_chunks() -> None:
    questions = questions_about([function(1, chunks=1), function(2), function(3, chunks=40)])
    assert [question.id for question in questions] == ["mill/a.py:turn_2"]


def test_code_questions_have_at_least_seven_wordings() -> None:
    questions = questions_about([function(number) for number in range(40)])
    assert len({re.sub(r"turn_\d+", "", question.text) for question in questions}) >= 7


def test_overloads_setters_and_nested_functions_are_no_unique_definitions() -> None:
    source = b"""
try:
    def late(): ...
except ImportError:
    def late(): ...
class A:
    class B:
        def deep(self):
            def inner(): ...
    @property
    def size(self): ...
    @size.setter
    def size(self, value): ...
async def run(): ...
"""
    definitions = python_definitions(source)
    unique = [symbol for symbol, (first, *others) in definitions.items() if not others]
    assert unique == ["A", "A.B", "A.B.deep", "run"]
    assert [symbol for symbol in unique if not definitions[symbol][0].is_function] == ["A", "A.B"]


@pytest.fixture
def described(corpus: CodeCorpus) -> FeedbackSet:
    return described_set(corpus, WRITTEN)


def test_described_function_has_the_same_relevant_chunks_as_the_named_one(
    described: FeedbackSet, mill: FeedbackSet
) -> None:
    named = {question.id: question.relevant for question in mill.questions}
    assert [question.text for question in described.questions] == list(WRITTEN.values())[:2]
    assert all(question.relevant == named[question.id] for question in described.questions)


def test_function_is_in_the_same_half_whether_it_is_named_or_described(
    mill: FeedbackSet, corpus: CodeCorpus
) -> None:
    keys = [question.id for question in mill.questions]
    described = described_set(corpus, dict.fromkeys(keys, "What is it?"))
    for training in (True, False):
        half = [question.relevant for question in mill.half(training=training)]
        assert [question.relevant for question in described.half(training=training)] == half


def test_described_set_and_code_set_share_the_same_cases(
    described: FeedbackSet, mill: FeedbackSet
) -> None:
    assert described.cases is mill.cases


def test_described_functions_that_are_not_installed_are_counted(described: FeedbackSet) -> None:
    assert described.origin["functions_described"] == 2
    assert described.origin["functions_left_out"] == 2
    assert described.origin["packages"] == {"invented_mill": "2.5"}


def test_packages_without_a_described_function_raise_input_error(
    corpus: CodeCorpus,
) -> None:
    with pytest.raises(InputError, match=r"code_described .* invented_mill"):
        described_set(corpus)


def words(text: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text)]


def test_no_written_question_names_its_function_its_class_or_its_file() -> None:
    named = []
    for key, question in written_questions().items():
        source, _, symbol = key.partition(":")
        tokens = {word.strip("_").lower() for word in re.findall(r"\w+", question)}
        text = f" {' '.join(words(question))} "
        for name in (*symbol.split("."), source.rpartition("/")[2].removesuffix(".py")):
            name_words = words(name)
            # A name such as "__call__" is an ordinary word without its underscores.
            named_alone = not re.fullmatch(r"__\w+__", name) and name.strip("_").lower() in tokens
            if named_alone or (len(name_words) > 1 and f" {' '.join(name_words)} " in text):
                named.append((key, name))
    assert named == []


def test_written_questions_cover_all_packages_and_half_ask_for_the_whole() -> None:
    written = written_questions()
    packages = Counter(key.partition("/")[0] for key in written)
    assert set(packages) == {folder for _, folder in PACKAGES}
    assert max(packages.values()) < len(written) / 4
    assert len(set(written.values())) == len(written) >= 120
    pattern = re.compile(r"\b(show|print|whole|entire|full|complete|everything|all|every)\b", re.I)
    share = sum(bool(pattern.search(question)) for question in written.values()) / len(written)
    assert 0.4 < share < 0.6
