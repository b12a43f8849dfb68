"""Multi-hop questions as a test of two-parent retrieval: every paragraph becomes a case.

HotpotQA (Yang et al. 2018), 2WikiMultihopQA (Ho et al. 2020) and MuSiQue (Trivedi et al. 2022).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from casewright.bench.legal.data import PairQuestion, QaSet
from casewright.bench.legal.paragraphs import Paragraph, paragraph_case
from casewright.errors import InputError

#: The files of the three sets, by the sets' names.
FILES = {
    "hotpotqa": "hotpotqa-dev.jsonl",
    "2wikimultihop": "2wikimultihop-dev.jsonl",
    "musique": "musique-dev.jsonl",
}


def read_multihop(file: Path, name: str) -> QaSet:
    """Read a set: a case of every distinct paragraph, a question of every two-paragraph item.

    The cases are made of the paragraphs alone, in an order of their own, so that nothing of a
    question or of its labels is in them. Questions with more or fewer than two supporting
    paragraphs are left out.

    Args:
        file: One JSON object a line, in the form of HotpotQA or of MuSiQue.
        name: What to call the set.

    Raises:
        InputError: A line has another form.
    """
    items = list(read_items(file))
    everything = sorted({paragraph for _, paragraphs, _ in items for paragraph in paragraphs})
    places = {paragraph: place for place, paragraph in enumerate(everything)}
    questions = []
    for item, _, supporting in items:
        if len(supporting) == 2:
            first, second = sorted(places[paragraph] for paragraph in supporting)
            reference = reference_sentence(str(item["question"]), str(item["answer"]))
            questions.append(PairQuestion(str(item["question"]), (first, second), reference))
    cases = [paragraph_case(paragraph) for paragraph in everything]
    return QaSet(name, cases, questions, len(items) - len(questions))


def reference_sentence(question: str, answer: str) -> str:
    """Return a gold answer, which is a name or a word, as a sentence to compare answers with.

    It repeats the question, as the written answers of ALQA do.
    """
    return f"The answer to the question “{question.strip()}” is: {answer.strip()}."


def read_items(file: Path) -> Iterator[tuple[Mapping[str, Any], set[Paragraph], set[Paragraph]]]:
    """Yield each item with its paragraphs and the supporting ones; raises InputError."""
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}.") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
            yield (item, *_paragraphs(item))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{file}, line {number}: this is no item of HotpotQA, 2WikiMultihopQA or MuSiQue "
                f"({type(error).__name__}: {error})."
            ) from error


def _paragraphs(item: Mapping[str, Any]) -> tuple[set[Paragraph], set[Paragraph]]:
    if not (isinstance(item["question"], str) and isinstance(item["answer"], str)):
        raise TypeError("question and answer are texts")
    if "paragraphs" in item:
        marked = [
            (Paragraph.of(part["title"], part["paragraph_text"]), bool(part["is_supporting"]))
            for part in item["paragraphs"]
        ]
    else:
        titles = {title for title, _ in item["supporting_facts"]}
        marked = [
            (Paragraph.of(title, " ".join(sentences)), title in titles)
            for title, sentences in item["context"]
        ]
    return {part for part, _ in marked}, {part for part, gold in marked if gold}
