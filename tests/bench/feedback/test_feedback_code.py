from __future__ import annotations

import re

import pytest

from casewright.bench.feedback.code import code_set, read_code
from casewright.bench.feedback.code_questions import PER_PACKAGE, Function, ask_about
from casewright.bench.feedback.definitions import definitions, functions_defined_once
from casewright.bench.feedback.sets import FeedbackSet
from casewright.bench.feedback.symbol_filter import SymbolFilter
from casewright.errors import InputError


def test_each_function_that_was_cut_and_has_its_own_symbol_is_asked_about_once(
    mill: FeedbackSet,
) -> None:
    assert sorted(question.id for question in mill.questions) == [
        "invented_mill/sluice.py:grind_all",
        "invented_mill/sluice.py:open_gate",
        "invented_mill/wheel.py:Wheel.grind",
        "invented_mill/wheel.py:grind_all",
    ]


def test_relevant_are_the_chunks_that_make_up_the_function_and_no_other(mill: FeedbackSet) -> None:
    for question in mill.questions:
        chunks = [case for case in mill.cases if case.id in question.relevant]
        chunks.sort(key=lambda case: int(case.metadata["position"]))
        whole = "\n".join(str(case.solution) for case in chunks)
        name = question.id.rpartition(":")[2].rpartition(".")[2]
        assert len(chunks) >= 2
        assert f"def {name}(" in chunks[0].solution
        assert [f"step_{number} =" in whole for number in range(60)] == [True] * 60
        assert whole.count("def ") == 1


def test_symbol_that_two_files_define_is_asked_for_with_its_file(mill: FeedbackSet) -> None:
    for question in mill.questions:
        source, _, symbol = question.id.partition(":")
        assert all(part in question.text for part in symbol.split("."))
        if symbol == "grind_all":
            assert source in question.text


def test_tests_and_files_that_are_no_python_are_no_cases(mill: FeedbackSet) -> None:
    sources = {str(case.metadata["source"]) for case in mill.cases}
    assert sources == {f"invented_mill/{name}.py" for name in ("sluice", "twice", "wheel")}


def test_settings_tell_versions_and_what_is_missing(mill: FeedbackSet) -> None:
    assert mill.settings["packages"] == {"invented_mill": "2.5"}
    assert mill.settings["packages_missing"] == ["invented-kiln"]


def test_set_of_no_installed_package_is_an_input_error() -> None:
    with pytest.raises(InputError, match="none is installed"):
        code_set(read_code([("invented-kiln", "kiln")]))


def test_symbol_filter_finds_each_function_that_is_named(mill: FeedbackSet) -> None:
    plain = SymbolFilter(mill.cases)
    for question in mill.questions:
        assert set(plain.find(question.text)) == question.relevant


def test_symbol_filter_takes_the_symbols_of_which_most_is_named(mill: FeedbackSet) -> None:
    plain = SymbolFilter(mill.cases)
    symbols = {case.id: case.metadata.get("symbol") for case in mill.cases}
    assert {symbols[found] for found in plain.find("the stop of Wheel")} == {"Wheel.stop"}
    both = plain.find("all of grind_all")
    assert len(both) == 2 * len(plain.find("all of grind_all in invented_mill/sluice.py"))
    assert plain.find("how does water flow over stones?") == plain.find("flow")
    assert plain.find("nothing of this is named") == []


def function(number: int, package: str = "mill", chunks: int = 2) -> Function:
    ids = tuple(f"{package}-{number}-{chunk}" for chunk in range(chunks))
    return Function(package, f"{package}/a.py", f"turn_{number}", ids, False)


def test_no_package_has_more_questions_than_its_share() -> None:
    asked = ask_about([function(number) for number in range(PER_PACKAGE + 30)])
    assert len(asked) == len({question.id for question in asked}) == PER_PACKAGE


def test_another_package_changes_no_question_of_this_one() -> None:
    mill = [function(number) for number in range(20)]
    kiln = [Function("kiln", "kiln/a.py", f"bake_{n}", ("x", "y"), False) for n in range(20)]
    with_kiln = ask_about([*kiln, *mill])
    assert {q for q in with_kiln if q.id.startswith("mill")} == set(ask_about(mill))


def test_function_of_one_chunk_or_of_very_many_is_not_asked_about() -> None:
    asked = ask_about([function(1, chunks=1), function(2), function(3, chunks=40)])
    assert [question.id for question in asked] == ["mill/a.py:turn_2"]


def test_questions_are_worded_in_several_ways() -> None:
    asked = ask_about([function(number) for number in range(40)])
    assert len({re.sub(r"turn_\d+", "", question.text) for question in asked}) >= 7


def test_overloads_setters_and_nested_functions_are_no_functions_of_their_own() -> None:
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
    assert [one.symbol for one in functions_defined_once(source)] == ["A.B.deep", "run"]
    assert [one.symbol for one in definitions(source) if not one.is_function] == ["A", "A.B"]
