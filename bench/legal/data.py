"""The data of the legal bench: cases, and questions that each have two parent cases.

The domain's own cases, ALQA, and three sets of multi-hop questions, of which every paragraph
becomes a case (see ``paragraphs``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from casewright.bench.legal.paragraphs import paragraph_case
from casewright.domains.legal.alqa import read_alqa
from casewright.domains.legal.data import data_file
from casewright.domains.legal.question_pairs import cited_as
from casewright.errors import InputError
from casewright.finetune.judge_sets.paragraphs import FILES, read_items, read_lines
from casewright.stores import Case

#: The word for the cases that the legal domain ships, in place of a path; and the name of the set
#: of ALQA's files.
SHIPPED, ALQA = "shipped", "alqa"
#: Of every draw: the development half, the shuffled labels, the resamples.
SEED = 0
#: Questions that a set needs at least.
FEWEST = 4
_TELL = (
    "Give a folder with hotpotqa-dev.jsonl, 2wikimultihop-dev.jsonl or musique-dev.jsonl, with "
    "ALQA's qa.jsonl and a pairs.jsonl, or the word shipped."
)


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """A question that two cases are needed for.

    Attributes:
        text: The question.
        parents: The positions of the two cases in their set.
        reference: The gold answer.
    """

    text: str
    parents: tuple[int, int]
    reference: str


@dataclass(frozen=True, slots=True)
class QaSet:
    """Cases ⟨question, support, entities, answer⟩ and the questions to ask of them.

    Attributes:
        name: In tables.
        cases: All of them, those that no question needs too.
        questions: Those with exactly two parents.
        left_out: How many others the files hold.
    """

    name: str
    cases: Sequence[Case]
    questions: Sequence[PairQuestion]
    left_out: int = 0

    def halves(self) -> tuple[list[int], list[int]]:
        """Return the positions of the questions of the development half, and of the test half."""
        order = list(range(len(self.questions)))
        random.Random(SEED).shuffle(order)
        middle = len(order) // 2
        return sorted(order[:middle]), sorted(order[middle:])


def find_sets(data: Path | None, only: str | None = None, limit: int | None = None) -> list[QaSet]:
    """Return the sets of a folder, or the domain's own.

    Args:
        data: A folder with the three multi-hop files, with ALQA (``qa.jsonl`` beside
            ``pairs.jsonl``), or with folders ``multihop`` and ``alqa`` that hold these; ``None``
            takes the domain's own cases.
        only: The name of the one set that is wanted.
        limit: At most so many questions of each set.

    Raises:
        InputError: The folder holds no such set, or a file of another form.
    """
    there: list[tuple[str, Callable[[], QaSet]]] = []
    if data is None:
        cases, pairs = (Path(str(data_file(name))) for name in ("cases", "pairs"))
        there.append((SHIPPED, partial(read_pairs, SHIPPED, cases, pairs)))
    else:
        if not data.is_dir():
            raise InputError(f"--data {data}: there is no such folder. {_TELL}")
        for name, file_name in FILES.items():
            for folder in (data, data / "multihop"):
                if (file := folder / file_name).is_file():
                    there.append((name, partial(read_multihop, file, name)))
        for folder in (data, data / "alqa"):
            if (file := folder / "qa.jsonl").is_file():
                there.append((ALQA, partial(read_pairs, ALQA, file, folder / "pairs.jsonl")))
        if not there:
            raise InputError(
                f"--data {data}: it holds no set of questions with two parent cases. {_TELL}"
            )
    chosen = [read() for name, read in there if only in (None, name)]
    if not chosen:
        raise InputError(
            f"--data {data or SHIPPED}: it holds no set {only!r}. There are: "
            f"{', '.join(name for name, _ in there)}. Sets are: "
            f"{', '.join([*FILES, ALQA, SHIPPED])}."
        )
    for own in chosen:
        if len(own.questions) < FEWEST:
            raise InputError(
                f"Set {own.name} has {len(own.questions)} questions with two parent cases. "
                f"It needs {FEWEST}: two in each half."
            )
    return [replace(own, questions=own.questions[:limit]) for own in chosen]


def read_multihop(file: Path, name: str) -> QaSet:
    """Return a set: a case of every distinct paragraph, a question of every two-paragraph item.

    The cases are made of the paragraphs alone, in an order of their own, so that nothing of a
    question or of its labels is in them. Questions with more or fewer than two supporting
    paragraphs are left out.
    """
    items = read_items(file)
    everything = sorted({paragraph for item in items for paragraph in item.paragraphs})
    numbers = {paragraph: number for number, paragraph in enumerate(everything)}
    questions = []
    for record, _, supporting in items:
        if len(supporting) == 2:
            first, second = sorted(numbers[paragraph] for paragraph in supporting)
            reference = reference_sentence(record["question"], record["answer"])
            questions.append(PairQuestion(record["question"], (first, second), reference))
    cases = [paragraph_case(paragraph) for paragraph in everything]
    return QaSet(name, cases, questions, len(items) - len(questions))


def reference_sentence(question: str, answer: str) -> str:
    """Return a gold answer, which is a name or a word, as a sentence to compare answers with.

    It repeats the question, as the written answers of ALQA do.
    """
    return f"The answer to the question “{question.strip()}” is: {answer.strip()}."


def read_pairs(name: str, cases_file: Path, pairs_file: Path) -> QaSet:
    """Return cases, and questions whose parents are named by citation or counted from 0.

    A question is left out where several cases share the citation of a parent.
    """
    cases = read_alqa(cases_file)
    numbers: dict[str | int, list[int]] = {number: [number] for number in range(len(cases))}
    for number, case in enumerate(cases):
        numbers.setdefault(cited_as(case), []).append(number)
    form = "questions: question, answer, and parents, two citations of cases, a JSON object a line"
    everything = list(read_lines(pairs_file, partial(_question, numbers), form))
    questions = [question for question in everything if question is not None]
    return QaSet(name, cases, questions, len(everything) - len(questions))


def _question(
    numbers: Mapping[str | int, Sequence[int]], record: Mapping[str, Any]
) -> PairQuestion | None:
    """Return a question; ``None`` where a parent's citation is ambiguous."""
    question, answer, parents = record["question"], record["answer"], record["parents"]
    if not all(isinstance(text, str) and text for text in (question, answer)):
        raise TypeError("question and answer are texts")
    if not isinstance(parents, list):
        raise TypeError("parents are two citations of cases")
    known = [numbers.get(key if isinstance(key, int) else str(key), ()) for key in parents]
    if () in known:
        raise ValueError(f"no case is cited as {parents[known.index(())]!r}")
    apart = sorted({own[0] for own in known if len(own) == 1})
    return PairQuestion(question, (apart[0], apart[1]), answer) if len(apart) == 2 else None
