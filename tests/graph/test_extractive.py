"""The generator without a language model: quotations, and what they cite."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest

from casewright.graph import ExtractiveGenerator, GenerationRequest
from casewright.tools.spec import NEAREST
from tests.graph.helpers import QUESTION, Ask, evidence, graph_of, tool
from tests.support.encoders import HashingEncoder

LONG = " ".join(f"Sentence {n} is about the weather on day {n}." for n in range(40))


def generated(request: GenerationRequest, **more: Any) -> str:
    return ExtractiveGenerator(**more).generate(request).text


def test_short_evidence_is_quoted_with_its_id_and_nothing_else_is_said() -> None:
    request = GenerationRequest(QUESTION, [evidence(1, "8 GB"), evidence(2, "16 GB")])
    generation = ExtractiveGenerator().generate(request)
    assert generation.text.splitlines() == ["- 8 GB [E1]", "- 16 GB [E2]"]
    assert generation.generator == "extractive"


def test_blocking_and_awaited_texts_are_the_same() -> None:
    request = GenerationRequest(QUESTION, [evidence(1, LONG)], ["s2 (find) failed."])
    generator = ExtractiveGenerator()
    assert asyncio.run(generator.agenerate(request)) == generator.generate(request)


@pytest.mark.parametrize("encoder", [None, HashingEncoder(4096)], ids=["no encoder", "encoder"])
def test_long_evidence_is_cut_to_whole_sentences_of_it(encoder: Any) -> None:
    asked = GenerationRequest("what about the weather on day 31", [evidence(1, LONG)])
    (line,) = generated(asked, encoder=encoder).splitlines()
    quoted = line.removeprefix("- ").removesuffix(" [E1]")
    assert quoted in LONG
    assert quoted.startswith("Sentence")
    assert quoted.endswith(".")
    assert len(quoted) < 470
    assert encoder is None or "day 31." in quoted


def test_an_encoder_picks_the_sentences_nearest_to_the_question() -> None:
    text = LONG + " Umbrellas cost nine euros."
    asked = GenerationRequest("umbrellas cost how many euros?", [evidence(1, text)])
    assert "Umbrellas cost nine euros." in generated(asked, encoder=HashingEncoder(4096))
    assert "Umbrellas" not in generated(asked)


def test_what_holds_the_fact_comes_first_and_all_of_it_on_demand() -> None:
    items = [
        evidence(1, LONG),
        evidence(2, f"{LONG} Umbrellas cost nine euros."),
        evidence(3, LONG),
    ]
    asked = GenerationRequest("umbrellas cost how many euros?", items)
    short = generated(asked, encoder=HashingEncoder(4096))
    assert "Umbrellas cost nine euros. [E2]" in short.splitlines()[0]
    assert len(short) < 700
    whole = generated(asked, encoder=HashingEncoder(4096), full=True)
    assert all(item.text in whole for item in items)


def test_a_sentence_of_a_fourth_result_does_not_take_the_place_of_a_first_one() -> None:
    last = evidence(4, f"{LONG} Umbrellas cost nine euros.")
    items = [*(evidence(n, f"{LONG} Umbrella {n} is blue.") for n in (1, 2, 3)), last]
    asked = GenerationRequest("umbrellas cost how many euros?", items)
    text = generated(asked, encoder=HashingEncoder(4096))
    assert "E1" in text
    assert "E4" not in text


def test_a_list_and_code_are_quoted_on_lines_of_their_own_below_their_heading() -> None:
    listed = "# Mill\n\nIt has:\n\n- a stone\n- a wheel"
    asked = GenerationRequest("what has it?", [evidence(1, listed)])
    assert generated(asked) == "Mill: [E1]\nIt has:\n- a stone\n- a wheel"
    code = "# oil\n\n```python\nmill()\n\n    oil()\n```"
    asked = GenerationRequest("how?", [evidence(1, code)])
    assert generated(asked) == "oil: [E1]\n```python\nmill()\n\n    oil()\n```"


def test_at_most_three_results_of_a_step_are_quoted() -> None:
    items = [evidence(n, f"fact {n}") for n in range(1, 6)]
    items.append(evidence(6, "fact 6", step="s2"))
    text = generated(GenerationRequest(QUESTION, items))
    assert re.findall(r"\[(E\d)\]", text) == ["E1", "E2", "E3", "E6"]


def test_what_another_step_needed_is_told_as_looked_up() -> None:
    items = [evidence(1, "order 7", final=False), evidence(2, "8 GB", step="s2")]
    lines = generated(GenerationRequest(QUESTION, items)).splitlines()
    assert lines == ["- Looked up: order 7 [E1]", "- 8 GB [E2]"]


def test_nothing_to_look_up_is_said_instead_of_an_empty_list(ask: Ask) -> None:
    answer = ask(graph_of([], "s1 = no_evidence()"))
    assert answer.text.startswith("No look-up was needed")
    assert answer.citations == []
    assert answer.missing == []


def test_a_search_that_found_nothing_says_about_what_and_what_is_nearest(ask: Ask) -> None:
    def search(given: Any, context: Any) -> list[Any]:
        context.report({"event": NEAREST, "query": "the moon", "titles": ["Mills", "Saws"]})
        return []

    answer = ask(graph_of([tool("search", search)], "s1 = search()"))
    assert answer.text == "Nothing found about “the moon”. Nearest: Mills; Saws."
    assert (answer.refused, answer.citations) == (True, [])


def test_only_an_answer_whose_last_steps_found_nothing_is_refused(ask: Ask) -> None:
    tools = [tool("none", lambda g, c: []), tool("t", lambda g, c: "there")]
    assert ask(graph_of(tools, "s1 = none()")).refused
    assert not ask(graph_of(tools, "s1 = none()\ns2 = t()")).refused
    assert not ask(graph_of(tools, "s1 = no_evidence()")).refused


@pytest.mark.parametrize(
    ("name", "finds", "said"),
    [
        ("find_bookings", "", "No bookings found."),
        ("prod_search", "product", "No product found."),
        ("search", "", "No result found."),
    ],
)
def test_a_step_that_found_nothing_says_what_in_words(
    ask: Ask, name: str, finds: str, said: str
) -> None:
    empty = replace(tool(name, lambda g, c: []), finds=finds)
    assert ask(graph_of([empty], f"s1 = {name}()")).text == said


def test_missing_sentences_are_passed_on(ask: Ask) -> None:
    tools = [tool("none", lambda g, c: []), tool("t", lambda g, c: "there")]
    answer = ask(graph_of(tools, "s1 = none()\ns2 = t()\ns3 = t(a=s1.value)"))
    assert answer.missing == [
        "No none found.",
        "s3 (t) was skipped. It needs s1 (none), which ended empty.",
    ]
    assert answer.text.splitlines()[-1] == "Missing: " + " ".join(answer.missing)
    assert answer.citations == ["E1"]


def test_every_citation_is_of_evidence_that_exists_and_was_quoted(ask: Ask) -> None:
    tools = [tool("t", lambda g, c: [f"fact {n}" for n in range(5)])]
    answer = ask(graph_of(tools, "s1 = t()"))
    assert answer.citations == ["E1", "E2", "E3"]
    assert [item["id"] for item in answer.evidence] == ["E1", "E2", "E3", "E4", "E5"]
    assert answer.generator == "extractive"


@pytest.mark.parametrize("fake", ["[E4]", "[E1, E4]", "[E99]", "[E[E99]9]", "[E[E99]4]"])
def test_a_citation_that_stands_in_the_evidence_cites_nothing(ask: Ask, fake: str) -> None:
    facts = [f"fact {fake} one", "fact two", "fact three", "fact four"]
    answer = ask(graph_of([tool("t", lambda g, c: facts)], "s1 = t()"))
    assert answer.citations == ["E1", "E2", "E3"]
    assert re.findall(r"\[(E\d+)\]", answer.text) == ["E1", "E2", "E3"]


def test_a_citation_that_stands_in_an_error_cites_nothing(ask: Ask) -> None:
    def fails(given: Any, context: Any) -> None:
        raise ValueError("see [E4]")

    tools = [tool("t", lambda g, c: ["a", "b", "c", "d"]), tool("fails", fails)]
    answer = ask(graph_of(tools, "s1 = t()\ns2 = fails()"))
    assert answer.citations == ["E1", "E2", "E3"]
    assert "E4" not in re.findall(r"\[(E\d+)\]", answer.text)


@pytest.mark.parametrize(
    "fact", ["costs .99 euros", "from 3 to 5 ; then more", "really !important"]
)
def test_a_quotation_is_verbatim(ask: Ask, fact: str) -> None:
    answer = ask(graph_of([tool("t", lambda g, c: fact)], "s1 = t()"))
    assert fact in answer.text


def test_a_sentence_over_wrapped_lines_is_quoted_whole(ask: Ask) -> None:
    wrapped = (
        "The kettle is made of steel and holds as much water as six cups of\n"
        "tea would need. It must not be opened while it is hot, and it should\n"
        "stand on a level place.\n- one item of a list\n- another item of it\n"
    )
    answer = ask(graph_of([tool("t", lambda g, c: wrapped + "More. " * 60)], "s1 = t()"))
    assert "holds as much water as six cups of tea would need. It must" in answer.text
    assert "list - another" not in answer.text


def test_a_long_field_among_several_is_cut_to_its_sentences(ask: Ask) -> None:
    row = {"title": "Kettle", "text": "It is steel. " * 60, "note": "short"}
    answer = ask(graph_of([tool("t", lambda g, c: [row], results=tuple(row))], "s1 = t()"))
    assert "Kettle; text It is steel. It is steel." in answer.text
    assert "note short" in answer.text
    assert len(answer.text) < 700
