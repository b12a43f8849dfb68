"""The generator without a language model: quotations and their citations."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from casewright.graph import ExtractiveGenerator, GenerationRequest
from casewright.tools.spec import NEAREST_EVENT
from tests.graph.helpers import QUESTION, Ask, evidence, graph_of, tool
from tests.support.encoders import HashingEncoder

LONG = " ".join(f"Sentence {n} is about the weather on day {n}." for n in range(40))


def generated_text(request: GenerationRequest, **options: Any) -> str:
    return ExtractiveGenerator(**options).generate(request).text


def test_answer_quotes_short_evidence_with_its_id_and_adds_nothing() -> None:
    request = GenerationRequest(QUESTION, [evidence(1, "8 GB"), evidence(2, "16 GB")])
    generation = ExtractiveGenerator().generate(request)
    assert generation.text.splitlines() == ["- 8 GB [E1]", "- 16 GB [E2]"]
    assert generation.generator == "extractive"


def test_generate_and_agenerate_return_the_same_answer() -> None:
    request = GenerationRequest(QUESTION, [evidence(1, LONG)], ["s2 (find) failed."])
    generator = ExtractiveGenerator()
    assert asyncio.run(generator.agenerate(request)) == generator.generate(request)


@pytest.mark.parametrize("encoder", [None, HashingEncoder(4096)], ids=["no encoder", "encoder"])
def test_long_evidence_is_cut_to_whole_sentences(encoder: Any) -> None:
    request = GenerationRequest("what about the weather on day 31", [evidence(1, LONG)])
    (line,) = generated_text(request, encoder=encoder).splitlines()
    quoted = line.removeprefix("- ").removesuffix(" [E1]")
    begin, _, before = quoted.partition(" … ")
    assert begin in LONG
    assert before in LONG
    assert quoted.startswith("Sentence 31 " if encoder else "Sentence 0 ")
    assert quoted.endswith(".")
    assert len(quoted) < 470


def test_encoder_selects_the_sentences_nearest_to_the_question() -> None:
    text = LONG + " Umbrellas cost nine euros."
    request = GenerationRequest("umbrellas cost how many euros?", [evidence(1, text)])
    assert "Umbrellas cost nine euros." in generated_text(request, encoder=HashingEncoder(4096))
    assert "Umbrellas" not in generated_text(request)


def test_sentence_before_code_stays_before_it_although_the_code_is_nearest() -> None:
    text = f"{LONG}\n\nUse the tap.\n\n```\noil(mill)\n\nwait(mill)\n```"
    request = GenerationRequest("oil mill wait", [evidence(1, text)])
    answer = generated_text(request, encoder=HashingEncoder(4096))
    assert answer.index("Use the tap.") < answer.index("oil(mill)")
    assert "…" not in answer


def test_evidence_nearest_to_the_question_comes_first_and_full_quotes_all() -> None:
    items = [
        evidence(1, LONG),
        evidence(2, f"{LONG} Umbrellas cost nine euros."),
        evidence(3, LONG),
    ]
    request = GenerationRequest("umbrellas cost how many euros?", items)
    brief_text = generated_text(request, encoder=HashingEncoder(4096))
    assert brief_text.startswith("- Umbrellas cost nine euros. … Sentence")
    assert len(brief_text) < 700
    full_text = generated_text(request, encoder=HashingEncoder(4096), full=True)
    assert all(item.text in full_text for item in items)


def test_list_and_code_are_quoted_on_separate_lines_below_their_heading() -> None:
    list_text = "# Mill\n\nIt has:\n\n- a stone\n- a wheel"
    request = GenerationRequest("what has it?", [evidence(1, list_text)])
    assert generated_text(request) == "Mill: [E1]\nIt has:\n- a stone\n- a wheel"
    code = "# oil\n\n```python\nmill()\n\n    oil()\n```"
    request = GenerationRequest("how?", [evidence(1, code)])
    assert generated_text(request) == "oil: [E1]\n```python\nmill()\n\n    oil()\n```"


def test_short_text_is_quoted_with_all_rows_of_its_table_and_all_its_sections() -> None:
    table = "| Dish of the day | Price for staff |\n|---|---|\n| Soup | 2.10 |\n| Curry | 3.40 |"
    text = f"# Prices\n\n{table}\n| Fish | 4.90 |\n\n# Hours\n\nOpen from noon."
    answer = generated_text(GenerationRequest("what costs the fish?", [evidence(1, text)]))
    assert "Dish of the day: Fish; Price for staff: 4.90" in answer
    assert "Hours: Open from noon." in answer


def test_answer_quotes_at_most_three_results_of_a_step() -> None:
    items = [evidence(n, f"fact {n}") for n in range(1, 6)]
    items.append(evidence(6, "fact 6", step="s2"))
    text = generated_text(GenerationRequest(QUESTION, items))
    assert re.findall(r"\[(E\d)\]", text) == ["E1", "E2", "E3", "E6"]


def test_result_that_another_step_needed_is_quoted_as_looked_up() -> None:
    items = [evidence(1, "order 7", final=False), evidence(2, "8 GB", step="s2")]
    lines = generated_text(GenerationRequest(QUESTION, items)).splitlines()
    assert lines == ["- Looked up: order 7 [E1]", "- 8 GB [E2]"]


def test_answer_says_that_no_lookup_was_needed_when_no_tool_is_called(ask: Ask) -> None:
    answer = ask(graph_of([], "s1 = no_evidence()"))
    assert answer.text.startswith("No look-up was needed")
    assert answer.citations == []
    assert answer.missing == []


def test_answer_to_an_empty_search_names_the_query_and_the_nearest_titles(ask: Ask) -> None:
    def search(arguments: Any, context: Any) -> list[Any]:
        context.report({"event": NEAREST_EVENT, "query": "the moon", "titles": ["Mills", "Saws"]})
        return []

    answer = ask(graph_of([tool("search", search)], "s1 = search()"))
    assert answer.text == "Nothing found about “the moon”. Nearest: Mills; Saws."
    assert (answer.refused, answer.citations) == (True, [])


def test_answer_is_refused_only_when_all_last_steps_found_nothing(ask: Ask) -> None:
    tools = [tool("none", lambda *_: []), tool("t", lambda *_: "there")]
    assert ask(graph_of(tools, "s1 = none()")).refused
    assert not ask(graph_of(tools, "s1 = none()\ns2 = t()")).refused
    assert not ask(graph_of(tools, "s1 = no_evidence()")).refused


@pytest.mark.parametrize(
    ("name", "finds", "expected"),
    [
        ("find_bookings", "", "No bookings found."),
        ("prod_search", "product", "No product found."),
        ("search", "", "No result found."),
    ],
)
def test_answer_names_what_an_empty_step_looked_for(
    ask: Ask, name: str, finds: str, expected: str
) -> None:
    empty = replace(tool(name, lambda *_: []), finds=finds)
    assert ask(graph_of([empty], f"s1 = {name}()")).text == expected


def test_answer_ends_with_the_sentences_about_missing_results(ask: Ask) -> None:
    tools = [tool("none", lambda *_: []), tool("t", lambda *_: "there")]
    answer = ask(graph_of(tools, "s1 = none()\ns2 = t()\ns3 = t(a=s1.value)"))
    assert answer.missing == [
        "No none found.",
        "s3 (t) was skipped. It needs s1 (none), which ended empty.",
    ]
    assert answer.text.splitlines()[-1] == "Missing: " + " ".join(answer.missing)
    assert answer.citations == ["E1"]


def test_answer_cites_only_existing_and_quoted_evidence(ask: Ask) -> None:
    tools = [tool("t", lambda *_: [f"fact {n}" for n in range(5)])]
    answer = ask(graph_of(tools, "s1 = t()"))
    assert answer.citations == ["E1", "E2", "E3"]
    assert [item["id"] for item in answer.evidence] == ["E1", "E2", "E3", "E4", "E5"]
    assert answer.generator == "extractive"


@pytest.mark.parametrize("fake", ["[E4]", "[E1, E4]", "[E99]", "[E[E99]9]", "[E[E99]4]"])
def test_citation_in_the_text_of_evidence_is_removed(ask: Ask, fake: str) -> None:
    facts = [f"fact {fake} one", "fact two", "fact three", "fact four"]
    answer = ask(graph_of([tool("t", lambda *_: facts)], "s1 = t()"))
    assert answer.citations == ["E1", "E2", "E3"]
    assert re.findall(r"\[(E\d+)\]", answer.text) == ["E1", "E2", "E3"]


def test_citation_in_the_text_of_an_error_is_removed(ask: Ask) -> None:
    def fail(arguments: Any, context: Any) -> None:
        raise ValueError("see [E4]")

    tools = [tool("t", lambda *_: ["a", "b", "c", "d"]), tool("fails", fail)]
    answer = ask(graph_of(tools, "s1 = t()\ns2 = fails()"))
    assert answer.citations == ["E1", "E2", "E3"]
    assert "E4" not in re.findall(r"\[(E\d+)\]", answer.text)


@pytest.mark.parametrize(
    "fact", ["costs .99 euros", "from 3 to 5 ; then more", "really !important"]
)
def test_evidence_is_quoted_verbatim(ask: Ask, fact: str) -> None:
    answer = ask(graph_of([tool("t", lambda *_: fact)], "s1 = t()"))
    assert fact in answer.text


def test_sentence_over_wrapped_lines_is_quoted_on_one_line(ask: Ask) -> None:
    wrapped = (
        "The kettle is made of steel and holds as much water as six cups of\n"
        "tea would need. It must not be opened while it is hot, and it should\n"
        "stand on a level place.\n- one item of a list\n- another item of it\n"
    )
    answer = ask(graph_of([tool("t", lambda *_: wrapped + "More. " * 60)], "s1 = t()"))
    assert "holds as much water as six cups of tea would need. It must" in answer.text
    assert "list - another" not in answer.text


def test_long_field_of_a_row_is_cut_to_whole_sentences(ask: Ask) -> None:
    row = {"title": "Kettle", "text": "It is steel. " * 60, "note": "short"}
    answer = ask(graph_of([tool("t", lambda *_: [row], results=tuple(row))], "s1 = t()"))
    assert "Kettle; text It is steel. It is steel." in answer.text
    assert "note short" in answer.text
    assert len(answer.text) < 700


class RankingEncoder(HashingEncoder):
    """An encoder whose logit of a part is the number at the part's end, such as "(3)"."""

    def answer_logits(self, question: str, passages: Sequence[Sequence[str]]) -> list[Any]:
        return [[float(part.rpartition("(")[2][:-1]) for part in parts] for _, *parts in passages]


def ranked_citations(*texts: str) -> list[str]:
    items = [evidence(number, text) for number, text in enumerate(texts, 1)]
    generator = ExtractiveGenerator(RankingEncoder(), reads_passages=True)
    return list(generator.generate(GenerationRequest("question", items)).citations)


def test_five_passages_are_quoted_with_the_best_logit_even_in_seventh_place() -> None:
    others = (f"Rose {number} (2)" for number in range(6))
    assert ranked_citations(*others, "Answer (4)") == ["E1", "E2", "E3", "E4", "E7"]


def test_passage_far_below_the_best_logit_is_not_quoted() -> None:
    passages = ("Eggs (-9)", "Answer (4)", "Roses (-0.9)", "Water (-1.1)")
    assert ranked_citations(*passages) == ["E2", "E3"]


def test_equal_passages_are_quoted_once_and_leave_room_for_others() -> None:
    assert ranked_citations("Same (4)", "Same (4)", "Other (4)", "Best (5)") == ["E1", "E3", "E4"]


def test_long_passage_is_quoted_by_its_part_with_the_best_logit() -> None:
    filler = [f"{'Filler ' * 40}(1)" for _ in range(9)]
    passage = "\n\n".join([*filler, "The answer is here (9)", *filler])
    request = GenerationRequest("question", [evidence(1, passage)])
    text = ExtractiveGenerator(RankingEncoder(), reads_passages=True).generate(request).text
    assert "The answer is here" in text
    assert len(text) < 500


def test_at_most_three_long_results_are_quoted_without_a_cross_encoder() -> None:
    items = [
        evidence(number, f"{LONG} Umbrella {number} costs nine euros.") for number in range(1, 6)
    ]
    request = GenerationRequest("What does an umbrella cost?", items)
    assert len(ExtractiveGenerator(HashingEncoder()).generate(request).citations) == 3


def test_results_of_other_tools_are_ranked_without_the_cross_encoder() -> None:
    items = [evidence(1, f"{LONG} (9)"), evidence(2, f"{LONG} Umbrellas cost nine euros. (1)")]
    request = GenerationRequest("umbrellas cost how many euros?", items)
    generation = ExtractiveGenerator(RankingEncoder(4096)).generate(request)
    assert generation.citations[0] == "E2"
    assert "Umbrellas cost nine euros." in generation.text
